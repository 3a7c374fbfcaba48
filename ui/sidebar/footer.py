"""The footer of the sidebar: Settings with a word beside its icon; Trash, Commands and Help as icons."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QSizePolicy, QToolButton, QWidget

from ui.style.boxes import hbox
from ui.style.controls import IconButton
from ui.style.text import escape_mnemonics, native_shortcut, plain_tooltip
from ui.style.theme import ICON_SIZE, SPACE_XS, ThemeSource, themed_icon


class SidebarFooter(QWidget):
    """Settings with a word beside its icon; Trash, Commands and Help as icons."""

    def __init__(
        self, themes: ThemeSource, settings: QAction, trash: QAction, commands: QAction, helping: QAction
    ) -> None:
        super().__init__()
        self._themes = themes
        self._settings = _TextButton()
        # With a space: Qt leaves less between icon and text than the other controls here.
        self._settings.setText(" " + escape_mnemonics(settings.text()))
        self._settings.setAccessibleName(settings.text())
        self._trash = IconButton(themes, "trash", self.tr("Trash"))
        self._commands = IconButton(themes, "commands", self.tr("Commands"))
        self._help = IconButton(themes, "help", self.tr("Help"))
        hbox(*self.tab_stops, parent=self, spacing=SPACE_XS // 2, margins=0, grow=self._settings)
        for button, action in zip(self.tab_stops, (settings, trash, commands, helping), strict=True):
            keys = action.shortcut().toString()
            button.setToolTip(plain_tooltip(f"{action.text()} ({native_shortcut(keys)})" if keys else action.text()))
            button.clicked.connect(action.trigger)
        themes.changed.connect(self._apply_theme)
        self._apply_theme()

    @property
    def tab_stops(self) -> tuple[QToolButton, ...]:
        """Return the widgets in tab order."""
        return (self._settings, self._trash, self._commands, self._help)

    def _apply_theme(self) -> None:
        side = round(ICON_SIZE * self._themes.zoom / 100)
        self._settings.setIcon(themed_icon("settings", self._themes.theme, side))
        self._settings.setIconSize(QSize(side, side))


class _TextButton(QToolButton):
    """As wide as there is room, with its icon and text at the leading edge."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "quiet")
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
