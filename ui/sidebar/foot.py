"""The row at the bottom of the sidebar: from here a person finds the settings, the trash, every command, and help."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QToolButton, QWidget

from ui.look.controls import IconButton
from ui.look.icons import ICON_SIZE, themed_icon
from ui.look.sentences import escape_mnemonics, native_shortcut, plain_tooltip
from ui.look.theme import SPACE_XS, ThemeSource


class SidebarFooter(QWidget):
    """Settings with a word beside its icon; Trash, Commands and Help as icons."""

    def __init__(
        self, themes: ThemeSource, settings: QAction, trash: QAction, commands: QAction, helping: QAction
    ) -> None:
        super().__init__()
        self._themes = themes
        self._settings = _TextButton()
        # With a space: Qt leaves less between an icon and its word than everything else here has.
        self._settings.setText(" " + escape_mnemonics(settings.text()))
        self._settings.setAccessibleName(settings.text())
        self._trash = IconButton(themes, "trash", self.tr("Trash"))
        self._commands = IconButton(themes, "commands", self.tr("Commands"))
        self._help = IconButton(themes, "help", self.tr("Help"))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(SPACE_XS // 2)
        for each, action in zip(self.tab_stops, (settings, trash, commands, helping), strict=True):
            keys = action.shortcut().toString()
            each.setToolTip(plain_tooltip(f"{action.text()} ({native_shortcut(keys)})" if keys else action.text()))
            each.clicked.connect(action.trigger)
            row.addWidget(each, int(each is self._settings))
        themes.changed.connect(self._apply_theme)
        self._apply_theme()

    @property
    def tab_stops(self) -> tuple[QToolButton, ...]:
        """Where the Tab key stops, in order."""
        return (self._settings, self._trash, self._commands, self._help)

    def _apply_theme(self) -> None:
        side = round(ICON_SIZE * self._themes.zoom / 100)
        self._settings.setIcon(themed_icon("settings", self._themes.theme, side))
        self._settings.setIconSize(QSize(side, side))


class _TextButton(QToolButton):
    """As wide as there is room, with its icon and word at the leading edge."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "quiet")
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
