"""Grab the global keys of the quick question that the person chose, and show the result in the settings."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from desktop_agent.types.errors import AgentError, Sentence
from desktop_agent.types.preferences import Preferences
from ui.bridge.desktop.global_keys import create_keys, why_impossible
from ui.bridge.desktop.key_names import KeysUnavailable, parse_keys
from ui.bridge.desktop.portal_keys import PortalKeys
from ui.bridge.desktop.x11_keys import X11Keys
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.settings import Settings
from ui.style.text import translate_sentence

if TYPE_CHECKING:
    from ui.settings.settings_dialog import SettingsDialog

_LOST = "The desktop's portal has ended, so the keys for a quick question no longer work."


class QuickAskKeys(QObject):
    """Grabs the keys that the person chose, none by default."""

    def __init__(
        self, settings: Settings, tasks: BackgroundTasks, show_window: Callable[[], object], parent: QObject
    ) -> None:
        super().__init__(parent)
        self._settings = settings
        self._tasks = tasks
        self._shortcut = create_keys(self)
        self._dialog: SettingsDialog | None = None
        self._keys = ""
        self._impossible: Sentence | None = None
        self._problem: AgentError | None = None
        self._name = ""
        """The desktop's own name for the grabbed keys, or ""."""
        shortcut = self._shortcut
        if shortcut is None:
            return
        shortcut.pressed.connect(show_window)
        if isinstance(shortcut, PortalKeys):
            shortcut.renamed.connect(self._on_renamed)
            shortcut.lost.connect(self._on_lost)
            shortcut.lost.connect(lambda: tasks.start(shortcut.release()))
        else:
            shortcut.layout_changed.connect(lambda: tasks.start(self._adapt(shortcut)))
        settings.changed.connect(self._on_changed)
        if keys := settings.preferences.chat.quick_ask_keys:
            self._keys = keys
            tasks.start(self._begin(keys))

    def on_settings_opened(self, dialog: "SettingsDialog") -> None:
        """Show the state of the keys in the settings, now and after each change."""
        self._dialog = dialog
        self._show()
        self._tasks.start(self._check_availability())

    async def close(self) -> None:
        """Release the keys: the program ends."""
        if self._shortcut is not None:
            await self._shortcut.release()

    def _on_changed(self, preferences: Preferences) -> None:
        keys = preferences.chat.quick_ask_keys
        if keys != self._keys:
            self._keys = keys
            self._tasks.start(self._change(keys))

    async def _begin(self, keys: str) -> None:
        """Grab the keys at the start. Raise a problem, which the window shows: the settings are not open yet."""
        await self._change(keys)
        if self._problem is not None:
            raise self._problem

    async def _change(self, keys: str) -> None:
        shortcut = self._shortcut
        if shortcut is None:
            return
        self._name, self._problem = "", None
        self._show()
        name, problem = "", None
        try:
            if keys:
                name = await shortcut.grab(parse_keys(keys))
            else:
                await shortcut.release()
        except KeysUnavailable as error:
            problem = error
        # The person may have chosen others while the desktop asked about these.
        if keys == self._keys:
            self._name, self._problem = name, problem
            self._show()

    async def _adapt(self, shortcut: X11Keys) -> None:
        try:
            await shortcut.adapt()
            self._problem = None
        except KeysUnavailable as error:
            self._problem = error
        self._show()

    async def _check_availability(self) -> None:
        self._impossible = await why_impossible()
        self._show()

    def _on_renamed(self, name: str) -> None:
        self._name = name
        self._show()

    def _on_lost(self) -> None:
        self._problem = KeysUnavailable(_LOST, "Choose the keys again.")
        self._show()

    def _show(self) -> None:
        if self._dialog is None:
            return
        problem = self._impossible or (None if self._problem is None else self._problem.whole)
        note = self.tr("Your desktop calls these keys {0}.").format(self._name) if self._name else ""
        self._dialog.show_quick_ask_keys(
            is_possible=self._impossible is None,
            problem="" if problem is None else translate_sentence(problem),
            note=note,
        )
