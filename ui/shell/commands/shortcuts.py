"""Keep the page of shortcuts in the settings up to date."""

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from ui.bridge.settings import Settings
from ui.settings.shortcuts_form import Shortcut, ShortcutSettings
from ui.shell.commands.action import WindowAction, window_actions

SEND, NEW_LINE = "send", "new-line"
SEND_KEYS = ("Enter", "Ctrl+Enter")
"""Where Enter sends, and where it does not."""
NEW_LINE_KEYS = ("Shift+Enter", "Enter")


class ShortcutsPresenter(QObject):
    """Keeps the page of shortcuts up to date, and stores how messages are sent."""

    def __init__(self, page: ShortcutSettings, window: QWidget, settings: Settings) -> None:
        super().__init__(page)
        self._page = page
        self._window = window
        self._settings = settings
        page.choice_changed.connect(self._choose)
        # The window's actions have their new keys by then: their slot was connected first.
        settings.changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show the current keys."""
        self._page.show_shortcuts([self._shortcut(action) for action in window_actions(self._window)])

    def _shortcut(self, action: WindowAction) -> Shortcut:
        fixed = self.tr("These keys are fixed.") if action.is_handled_elsewhere else ""
        choices = {SEND: SEND_KEYS, NEW_LINE: NEW_LINE_KEYS}.get(action.name, ())
        default = choices[0] if choices else action.keys if fixed else action.default_keys
        return Shortcut(
            action.name, action.text(), action.keys, default, action.synonyms, "" if choices else fixed, choices
        )

    def _choose(self, _name: str, index: int) -> None:
        self._settings.change(self._settings.preferences.with_changes("chat", enter_sends=index == 0))
