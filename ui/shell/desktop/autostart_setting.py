"""Keep the setting “Start with the computer” and the entry of the desktop in step."""

import asyncio

from PySide6.QtCore import QObject

from desktop_agent.types.errors import StorageFailed
from desktop_agent.types.preferences import Preferences
from ui.bridge.desktop.autostart import Autostart, is_offered, why_impossible
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.settings import Settings


class AutostartPresenter(QObject):
    """Writes and removes the entry when the setting changes, and updates the setting when others changed the entry."""

    def __init__(self, settings: Settings, autostart: Autostart, tasks: BackgroundTasks, parent: QObject) -> None:
        super().__init__(parent)
        self._settings = settings
        self._autostart = autostart
        self._tasks = tasks
        self._lock = asyncio.Lock()
        self._problem: StorageFailed | None = None
        """Reported only after the setting was reset, as a change of the settings clears their problems."""
        self._is_enabled = settings.preferences.chat.start_with_computer
        settings.changed.connect(self._on_changed)

    def refresh(self) -> None:
        """Set the setting to whether the entry exists."""
        self._tasks.start(self._refresh())

    def _on_changed(self, preferences: Preferences) -> None:
        is_enabled = preferences.chat.start_with_computer
        if self._problem is not None:
            self.refresh()
        elif is_enabled != self._is_enabled:
            self._is_enabled = is_enabled
            self._tasks.start(self._set_enabled(enabled=is_enabled))

    async def _set_enabled(self, *, enabled: bool) -> None:
        try:
            async with self._lock:
                if is_offered() and why_impossible() is None:
                    await asyncio.to_thread(self._autostart.set_enabled, enabled=enabled)
        except StorageFailed as error:
            self._problem = error
        await self._refresh()

    async def _refresh(self) -> None:
        async with self._lock:
            is_on = is_offered() and why_impossible() is None and await asyncio.to_thread(self._autostart.is_on)
        preferences = self._settings.preferences
        if is_on != preferences.chat.start_with_computer:
            self._is_enabled = is_on
            self._settings.change(preferences.with_changes("chat", start_with_computer=is_on))
        elif self._problem is not None:
            problem, self._problem = self._problem, None
            raise problem
