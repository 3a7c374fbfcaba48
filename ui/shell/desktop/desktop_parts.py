"""The parts around the window: the tray, side windows, global keys, autostart, spelling, targets of later starts."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QLocale, QObject, SignalInstance

from desktop_agent.types.errors import StorageFailed
from desktop_agent.types.preferences import Preferences
from ui.bridge.desktop.autostart import Autostart, is_offered, why_impossible
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.library import ConversationLibrary
from ui.bridge.settings import Settings
from ui.bridge.spelling.dictionaries import FOLDER, is_library_installed
from ui.bridge.spelling.spell_checker import SpellChecker
from ui.composer.spelling import SpellingMarks
from ui.shell.conversation_page import ConversationPage
from ui.shell.desktop.open_targets import TargetPresenter
from ui.shell.desktop.quick_ask_keys import QuickAskKeys
from ui.shell.desktop.tray import TrayPresenter
from ui.shell.side_windows.quick_ask import QuickAsk
from ui.shell.side_windows.side_windows import SideWindows
from ui.shell.startup_window import StartupWindow
from ui.style.text import show_hidden
from ui.style.theme import ThemeSource

if TYPE_CHECKING:
    from ui.settings.settings_dialog import SettingsDialog


class DesktopParts(QObject):
    """Creates and closes these parts. None of them is needed before the first conversation is shown."""

    _tray: TrayPresenter | None = None
    _keys: QuickAskKeys | None = None
    _spelling: "SpellingPresenter | None" = None

    def __init__(
        self,
        startup: StartupWindow,
        library: ConversationLibrary,
        settings: Settings,
        tasks: BackgroundTasks,
        windows: SideWindows,
    ) -> None:
        super().__init__(startup)
        self._startup = startup
        self._library = library
        self._settings = settings
        self._tasks = tasks
        self.windows = windows
        self.quick_ask = QuickAsk(startup.themes, windows, tasks)
        self.targets = TargetPresenter(startup, library, self.quick_ask, tasks)
        startup.window.quick_ask_requested.connect(self.quick_ask.show)
        self.quick_ask.hidden.connect(self._on_quick_ask_hidden)
        startup.window.has_other_windows = lambda: windows.are_open
        windows.last_closed.connect(self._on_last_closed)

    async def join(self, folder: Path, settings_opened: SignalInstance, *, in_background: bool) -> None:
        """Show the icon in the tray. After a start in the background without one, show a minimised window."""
        window = self._startup.window
        tray = self._tray = TrayPresenter(
            self._startup, self._library, self._settings, window.inbox.show, self.quick_ask.show
        )
        autostart = AutostartPresenter(self._settings, Autostart(folder), self._tasks, self)
        settings_opened.connect(autostart.refresh)
        keys = self._keys = QuickAskKeys(self._settings, self._tasks, self.quick_ask.show, self)
        settings_opened.connect(keys.on_settings_opened)
        self._check_spelling(folder, settings_opened)
        if in_background:
            if not await tray.wait_until_shown() and not window.isVisible():
                window.showMinimized()
        else:
            self.windows.reopen()

    async def close(self) -> None:
        """Save the drafts of other windows and close all parts: the program ends."""
        if self._tray is not None:
            self._tray.close()
        if self._keys is not None:
            await self._keys.close()
        await self.windows.close()
        if self._spelling is not None:
            await self._spelling.checker.close()

    def _check_spelling(self, folder: Path, settings_opened: SignalInstance) -> None:
        spelling = self._spelling = SpellingPresenter(self._startup.themes, folder, self._settings, self._tasks, self)
        settings_opened.connect(spelling.on_settings_opened)
        for page in (self._startup.window.page, *self.windows.pages):
            spelling.watch(page)
        self.windows.page_created.connect(spelling.watch)

    def _on_last_closed(self) -> None:
        """Quit if the main window is hidden and the program does not stay in the tray."""
        window = self._startup.window
        if window.isHidden() and not (self._tray is not None and self._tray.stays_in_tray()):
            window.quit()

    def _on_quick_ask_hidden(self) -> None:
        """Quit if no window is left, and no icon that leads back to one."""
        is_anything_shown = self.windows.are_open or not self._startup.window.isHidden()
        if not is_anything_shown and not (self._tray is not None and self._tray.show_icon()):
            self._startup.window.quit()


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


class SpellingPresenter(QObject):
    """Looks for dictionaries when it is created, and whenever the settings are opened."""

    def __init__(
        self, themes: ThemeSource, folder: Path, settings: Settings, tasks: BackgroundTasks, parent: QObject
    ) -> None:
        """`folder` is the data folder."""
        super().__init__(parent)
        self._themes = themes
        self._folder = folder
        self._dialog: SettingsDialog | None = None
        languages = QLocale.system().uiLanguages()
        self.checker = SpellChecker(folder, settings, tasks, languages, self)
        self.checker.found.connect(self._show_languages)
        self.checker.refresh()

    def watch(self, page: ConversationPage) -> None:
        """Check the spelling in the composer of this page, as long as the page exists."""
        SpellingMarks(self._themes, page.composer.editor, self.checker)

    def on_settings_opened(self, dialog: "SettingsDialog") -> None:
        """Show the available languages, now and after each search for dictionaries."""
        self._dialog = dialog
        self._show_languages()
        self.checker.refresh()

    def _show_languages(self) -> None:
        if self._dialog is None:
            return
        checker, default = self.checker, self.checker.system_dictionary
        self._dialog.spelling.show_languages(
            [dictionary.language for dictionary in checker.dictionaries],
            "" if default is None else default.language,
            show_hidden(str(self._folder / FOLDER)) if is_library_installed() else "",
        )
