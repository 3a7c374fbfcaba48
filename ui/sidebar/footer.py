"""The footer of the sidebar: Settings with a word beside its icon; what is scheduled, Trash, Commands and Help as
icons; and what waits, while anything does.
"""

from functools import partial

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QToolButton, QWidget

from ui.style.boxes import hbox
from ui.style.controls import IconButton, set_keys_tooltip
from ui.style.text import escape_mnemonics
from ui.style.theme import ICON_SIZE, ThemeSource, icon, themed_icon


class SidebarFooter(QWidget):
    """Settings with a word beside its icon; the others as icons, with little between them: the word has to fit."""

    def __init__(
        self,
        themes: ThemeSource,
        settings: QAction,
        waiting: QAction,
        scheduled: QAction,
        trash: QAction,
        commands: QAction,
        helping: QAction,
    ) -> None:
        super().__init__()
        self._themes = themes
        self._settings = _TextButton()
        # With a space: Qt leaves less between icon and text than the other controls here.
        self._settings.setText(" " + escape_mnemonics(settings.text()))
        self._settings.setAccessibleName(settings.text())
        self._waiting = WaitingButton(themes)
        self._scheduled = IconButton(themes, "clock", self.tr("Scheduled prompts"))
        self._trash = IconButton(themes, "trash", self.tr("Trash"))
        self._commands = IconButton(themes, "commands", self.tr("Commands"))
        self._help = IconButton(themes, "help", self.tr("Help"))
        for each in self.tab_stops[1:]:
            each.setProperty("square", "narrow")
        hbox(*self.tab_stops, parent=self, spacing=0, margins=0, grow=self._settings)
        for button, action in zip(
            self.tab_stops, (settings, waiting, scheduled, trash, commands, helping), strict=True
        ):
            show_keys = partial(_show_keys, button, action)
            # Its keys can be changed.
            action.changed.connect(show_keys)
            show_keys()
            button.clicked.connect(action.trigger)
        themes.changed.connect(self._apply_theme)
        self._apply_theme()

    @property
    def tab_stops(self) -> tuple[QToolButton, ...]:
        """Return the widgets in tab order."""
        return (self._settings, self._waiting, self._scheduled, self._trash, self._commands, self._help)

    def show_waiting(self, count: int) -> None:
        """Say how many calls wait for the person."""
        self._waiting.show_count(count)

    def _apply_theme(self) -> None:
        side = round(ICON_SIZE * self._themes.zoom / 100)
        self._settings.setIcon(themed_icon("settings", self._themes.theme, side))
        self._settings.setIconSize(QSize(side, side))


class WaitingButton(IconButton):
    """Leads to the calls that wait, with their number beside its icon; hidden while there are none."""

    def __init__(self, themes: ThemeSource) -> None:
        self._count = 0
        self._keys = ""
        super().__init__(themes, "inbox", self.tr("Waiting approvals"))
        self.show_count(0)

    def show_count(self, count: int) -> None:
        """Show this number; 0 hides the button."""
        self._count = count
        self.setVisible(count > 0)
        self.setText(self.locale().toString(count) if count else "")
        beside, alone = Qt.ToolButtonStyle.ToolButtonTextBesideIcon, Qt.ToolButtonStyle.ToolButtonIconOnly
        self.setToolButtonStyle(beside if count else alone)
        self._describe()
        self._update_icon()

    def keep_keys(self) -> None:
        """Take the accessible description, which is the keys of its action now, and put the number before it."""
        self._keys = self.accessibleDescription()
        self._describe()

    def _describe(self) -> None:
        self.setAccessibleDescription(". ".join(filter(None, (self.text(), self._keys))))

    def _update_icon(self) -> None:
        super()._update_icon()
        if self._count:
            theme, side = self._themes.theme, self.iconSize().width()
            self.setIcon(icon("inbox", theme.warning, theme.muted, side))


_NARROW_MARGIN = 10
"""Pixels beside the icon of a button that has no room for its word."""


def _show_keys(button: QToolButton, action: QAction) -> None:
    set_keys_tooltip(button, action.text(), action.shortcut().toString())
    if isinstance(button, WaitingButton):
        button.keep_keys()


class _TextButton(QToolButton):
    """As wide as there is room, with its icon and text at the leading edge; the icon alone where that is too narrow."""

    def __init__(self) -> None:
        super().__init__()
        self._hint = QSize()
        self.setProperty("kind", "quiet")
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        """Return the size with the word, also while it is not shown."""
        if self.toolButtonStyle() is not Qt.ToolButtonStyle.ToolButtonIconOnly:
            self._hint = super().sizeHint()
        return self._hint

    def minimumSizeHint(self) -> QSize:
        """Return the size with the icon alone."""
        return QSize(self.iconSize().width() + 2 * _NARROW_MARGIN, self.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        beside, alone = Qt.ToolButtonStyle.ToolButtonTextBesideIcon, Qt.ToolButtonStyle.ToolButtonIconOnly
        self.setToolButtonStyle(beside if self.width() >= self.sizeHint().width() else alone)
