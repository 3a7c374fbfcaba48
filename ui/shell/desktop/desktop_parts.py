"""The parts around the window: the tray, side windows, global keys, spelling, and the targets of later starts."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, SignalInstance

from ui.bridge.desktop.autostart import Autostart
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.library import ConversationLibrary
from ui.bridge.model_servers import ModelServers
from ui.bridge.settings import Settings
from ui.bridge.side_conversation import SideConversation
from ui.bridge.storage import PictureStore
from ui.shell.desktop.autostart_setting import AutostartPresenter
from ui.shell.desktop.open_targets import TargetPresenter
from ui.shell.desktop.quick_ask_keys import QuickAskKeys
from ui.shell.desktop.spelling import SpellingPresenter
from ui.shell.desktop.tray import TrayPresenter
from ui.shell.side_windows.quick_ask import QuickAsk
from ui.shell.side_windows.side_windows import SideWindows
from ui.shell.startup_window import StartupWindow


class DesktopParts(QObject):
    """Creates and closes these parts. None of them is needed before the first conversation is shown."""

    _tray: TrayPresenter | None = None
    _keys: QuickAskKeys | None = None
    _spelling: SpellingPresenter | None = None

    def __init__(
        self,
        startup: StartupWindow,
        library: ConversationLibrary,
        servers: ModelServers,
        pictures: PictureStore,
        settings: Settings,
        tasks: BackgroundTasks,
        create_source: Callable[[], SideConversation],
    ) -> None:
        super().__init__(startup)
        self._startup = startup
        self._library = library
        self._settings = settings
        self._tasks = tasks
        self.windows = SideWindows(startup, library, servers, pictures, tasks, create_source)
        self._targets = TargetPresenter(startup, library, tasks)
        self.quick_ask = QuickAsk(startup.themes, self.windows, tasks)
        self._targets.quick_ask_requested.connect(self.quick_ask.show)
        startup.window.quick_ask_requested.connect(self.quick_ask.show)
        self.quick_ask.hidden.connect(self._on_quick_ask_hidden)
        startup.window.has_other_windows = lambda: self.windows.are_open
        self.windows.last_closed.connect(self._on_last_closed)

    def open_requested(self) -> None:
        """Open the links and files that this start and later ones named."""
        self._targets.open_requested()

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
