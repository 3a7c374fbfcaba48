"""The footer of the sidebar: Settings with a word beside its icon; what is scheduled, Trash, Commands and Help as
icons; and a line above them for what waits, while anything does.
"""

from functools import partial
from typing import Literal

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from ui.style.boxes import hbox, vbox
from ui.style.controls import IconButton, ToolButton, set_keys_tooltip
from ui.style.text import escape_mnemonics, in_brackets
from ui.style.theme import ICON_SIZE, ThemeSource, icon


class SidebarFooter(QWidget):
    """A line for what waits; below it Settings with a word beside its icon, and the others as icons."""

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
        words_button = _TextButton(themes, "settings", settings.text())
        words_button.show_words(settings.text())
        self.waiting = WaitingButton(themes)
        icons = (
            IconButton(themes, "clock", self.tr("Scheduled prompts")),
            IconButton(themes, "trash", self.tr("Trash")),
            IconButton(themes, "commands", self.tr("Commands")),
            IconButton(themes, "help", self.tr("Help")),
        )
        for icon_button in icons:
            icon_button.setProperty("square", "narrow")
        self.tab_stops: tuple[ToolButton, ...] = (self.waiting, words_button, *icons)
        row = hbox(words_button, *icons, spacing=0, margins=0, grow=words_button)
        vbox(self.waiting, row, parent=self, spacing=0, margins=0)
        actions = (waiting, settings, scheduled, trash, commands, helping)
        for button, action in zip(self.tab_stops, actions, strict=True):
            show_keys = partial(_show_keys, button, action)
            # Its keys can be changed.
            action.changed.connect(show_keys)
            show_keys()
            button.clicked.connect(action.trigger)


_NARROW_MARGIN = 10
"""Pixels beside the icon of a button that has no room for its word."""
_ICON_ALONE = " "
"""The text where there is room for none: the icon stays at the leading edge."""


def _show_keys(button: ToolButton, action: QAction) -> None:
    set_keys_tooltip(button, action.text(), action.shortcut().toString())
    if isinstance(button, WaitingButton):
        button.keep_keys()


class _TextButton(ToolButton):
    """As wide as there is room, with its icon and text at the leading edge; the icon alone where that is too narrow."""

    def __init__(
        self, themes: ThemeSource, icon_name: str, name: str, colour: Literal["text", "warning"] = "text"
    ) -> None:
        super().__init__()
        self._themes = themes
        self._icon = icon_name, colour
        self._words = [_ICON_ALONE]
        self._hint = QSize()
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setAccessibleName(name)
        self.setProperty("kind", "quiet")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        themes.follow(self._apply_theme)

    def show_words(self, *words: str) -> None:
        """Show the first of these texts that there is room for."""
        # With a space: Qt leaves less between icon and text than the other controls here.
        self._words = [f" {escape_mnemonics(text)}" for text in words]
        self._measure()

    def _measure(self) -> None:
        self.setText(self._words[0])
        self.updateGeometry()
        self._fit()

    def sizeHint(self) -> QSize:
        """Return the size with the longest text, also while it is not shown."""
        if self.text() == self._words[0]:
            self._hint = super().sizeHint()
        return self._hint

    def minimumSizeHint(self) -> QSize:
        """Return the size with the icon alone."""
        return QSize(self.iconSize().width() + 2 * _NARROW_MARGIN, self.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        advance = self.fontMetrics().horizontalAdvance
        padding = self.sizeHint().width() - advance(self._words[0])
        fitting = (text for text in self._words if padding + advance(text) <= self.width())
        self.setText(next(fitting, _ICON_ALONE))

    def _apply_theme(self) -> None:
        theme, side = self._themes.theme, self._themes.scaled(ICON_SIZE)
        name, colour = self._icon
        self.setIcon(icon(name, theme.warning if colour == "warning" else theme.text, theme.muted, side))
        self.setIconSize(QSize(side, side))
        self._measure()


class WaitingButton(_TextButton):
    """Leads to the calls that wait, and says how many; hidden while there are none."""

    def __init__(self, themes: ThemeSource) -> None:
        self._count = self._keys = ""
        super().__init__(themes, "inbox", self.tr("Waiting approvals"), "warning")
        self.show_count(0)

    def show_count(self, count: int) -> None:
        """Show this number; 0 hides the button."""
        self._count = self.locale().toString(count) if count else ""
        self.show_words(in_brackets(self.accessibleName(), self._count), self._count)
        self.setVisible(count > 0)
        self._describe()

    def keep_keys(self) -> None:
        """Put the number before the accessible description, which is now the keys of the action."""
        self._keys = self.accessibleDescription()
        self._describe()

    def _describe(self) -> None:
        self.setAccessibleDescription(". ".join(filter(None, (self._count, self._keys))))
