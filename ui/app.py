"""The application controller: creates everything behind the window and closes it in order."""

import asyncio
import logging
import sys
import threading
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

from desktop_agent.api.command_line import API_KEY_VARIABLE, LaunchOptions
from desktop_agent.engine.connections import key_from_environment
from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.processes.program_version import program_version
from desktop_agent.storage.backups.migration_copies import note_program
from desktop_agent.types.errors import AgentError, Sentence, StorageFailed
from desktop_agent.types.preferences import Preferences
from ui.bridge.conversation import OpenConversation
from ui.bridge.desktop.crash_reports import CrashLog
from ui.bridge.desktop.notifications import DesktopNotifications
from ui.bridge.desktop.window_state import WindowStateFile
from ui.bridge.drafts import ComposerDraft, UnsavedContent
from ui.bridge.event_loop import FRAME_SECONDS, BackgroundTasks, FrameClock, IdleGarbageCollector
from ui.bridge.late_imports import import_in_thread
from ui.bridge.library import ConversationLibrary, find_first_shown
from ui.bridge.mcp.requests import McpCatalog, McpRequest
from ui.bridge.mcp.servers import McpNotices, McpServerSettings
from ui.bridge.model_servers import ModelServers
from ui.bridge.organiser import Organiser
from ui.bridge.schedule.schedules import ScheduledPrompts
from ui.bridge.settings import Settings, SettingsSources
from ui.bridge.storage import DiskMonitor, PictureStore
from ui.shell.banners import BannerArea
from ui.shell.commands.action import window_actions
from ui.shell.commands.actions import HelpPresenter, WindowActions
from ui.shell.commands.command_palette import PalettePresenter
from ui.shell.commands.page_shortcuts import PageShortcuts
from ui.shell.conversation_page import ConversationPage
from ui.shell.desktop.call_notifications import CallNotifier
from ui.shell.desktop.crash_report import CrashPresenter
from ui.shell.desktop.local_models import LocalModelPresenter
from ui.shell.desktop.notifications import ActivityNotifier
from ui.shell.desktop.request_notifications import RequestNotifier
from ui.shell.desktop.update_notice import UpdateNotice
from ui.shell.mcp import McpPresenter
from ui.shell.schedule.schedule_presenter import ScheduleNotifier, SchedulePresenter
from ui.shell.settings import SettingsPresenter, reading_style
from ui.shell.startup_errors import show_startup_error
from ui.shell.startup_window import StartupWindow, on_display_lost
from ui.shell.storage import CloseConfirmation, DiskBanner
from ui.shell.window import save_appearance
from ui.sidebar.organising import OrganisePresenter
from ui.style.text import translate_sentence
from ui.style.theme import app_icon

if TYPE_CHECKING:
    from ui.shell.desktop.desktop_parts import DesktopParts
    from ui.shell.exchange import ExchangePresenter
    from ui.shell.side_windows.conversation_window import ConversationWindow

_log = logging.getLogger(__name__)
_EMERGENCY_SAVE_SECONDS = 10.0
"""Seconds to save everything when the screen is lost: somebody may wait for the process to end."""
# Keys of window.json.
_LAST_CONVERSATION, _LAST_FOLDER = "window/conversation", "window/folder"
_PAINT_SECONDS = 0.3
"""Seconds after which an opened conversation is painted."""


async def run_app(startup: StartupWindow, options: LaunchOptions, folder: Path, crashes: CrashLog) -> int:
    """Create what is behind the window and wait until it is closed. Returns the exit code."""
    defaults = RunDefaults(
        program="window",
        endpoint=options.endpoint,
        api_key=key_from_environment(API_KEY_VARIABLE),
        model=options.model,
        questions=True,
        mode_requests=True,
        titles=True,
        read_interval=FRAME_SECONDS,
    )
    startup.app.setApplicationVersion(program_version())
    engine = None
    while engine is None:
        try:
            engine = await Engine.open(folder, defaults)
        except AgentError as error:
            _log.error("the data folder cannot be opened: %s", error)
            if not await show_startup_error(startup, error, can_retry=True):
                return 1
    controller = AppController(startup, engine)
    forget_screen = on_display_lost(controller.save_immediately)
    try:
        if not startup.is_ended:
            controller.begin(options)
            CrashPresenter(startup, crashes)
            await controller.wait_until_closed()
    finally:
        await controller.close()
        await engine.close(keeps_approvals=True)
        forget_screen()
    return await controller.exit_code()


def _run_on_another_loop(save: Callable[[], Coroutine[Any, Any, None]]) -> bool:
    """Run `save` in a thread with its own event loop, and wait for it. Return whether it ended without an error."""

    def work() -> None:
        try:
            asyncio.run(asyncio.wait_for(save(), _EMERGENCY_SAVE_SECONDS))
            saved.append(True)
        except Exception as error:  # noqa: BLE001  whatever it is, the process ends now
            _log.error("the emergency save failed: %s", type(error).__name__)

    saved: list[bool] = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return bool(saved)


def _current_workspace(library: ConversationLibrary) -> str | None:
    return None if library.current is None else library.current.workspace


def _open_last_folder(library: ConversationLibrary, file: WindowStateFile) -> str:
    """List the folder that was shown last, and return the id of the conversation that was shown last.

    Both are saved at each change, so that they survive a crash.
    """

    def note_place(_shown: object) -> None:
        conversation = library.current
        if conversation is not None:
            is_kept = conversation.is_stored and not conversation.is_in_memory
            folder = library.listing.folder or ""
            file.save({_LAST_CONVERSATION: conversation.id if is_kept else "", _LAST_FOLDER: folder})

    last = file.text(_LAST_CONVERSATION)
    library.opened.connect(note_place)
    library.listing.listed.connect(note_place)
    library.listing.open_folder(file.text(_LAST_FOLDER) or None)
    return last


def _offer_undo(banners: BannerArea, sentence: Sentence, undo: Callable[[], object]) -> None:
    banners.show_undo(translate_sentence(sentence), undo)


def _export(exchange: "Callable[[], ExchangePresenter]", ids: Sequence[str], title: str) -> None:
    exchange().export_marked(ids, title)


def _add_shortcuts(main: QWidget, page: ConversationPage) -> None:
    PageShortcuts(page, window_actions(main))


class AppController:
    """The objects between the window and the engine, and how they are connected."""

    _lost_draft: ComposerDraft | None = None
    _exchange: "ExchangePresenter | None" = None
    _desktop: "DesktopParts | None" = None

    def __init__(self, startup: StartupWindow, engine: Engine) -> None:
        app, themes = startup.app, startup.themes
        self._startup, self._engine = startup, engine
        self._tasks = BackgroundTasks(self._on_problem)
        clock = self._clock = FrameClock(app)
        pictures = self._pictures = PictureStore(engine.store)
        self.library = ConversationLibrary(engine, clock, self._tasks, pictures, app)
        self.servers = ModelServers(engine, self._tasks, app)
        self.window = startup.window
        page = ConversationPage(
            self.window.frame, self.window.banners, themes, self.library, self.servers, pictures, self._tasks
        )
        self.window.set_content(page, self.library, self.servers)
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._garbage_collector = IdleGarbageCollector(clock.tick, lambda: bool(self.library.working_sessions), app)
        settings = self._settings = Settings(engine, self._tasks, app)
        self._notifications = DesktopNotifications(self._tasks, app)
        self._create_notifiers()
        self._help = HelpPresenter(pictures, engine.folder, self._tasks, settings.updates, self.window)
        disk = self._disk = DiskMonitor(engine, self._tasks, self.window)
        disk.recovered.connect(self.library.refresh)
        disk.recovered.connect(self._save_refused)
        self.mcp_servers = McpServerSettings(engine, clock, self._tasks, partial(_current_workspace, self.library), app)
        sources = SettingsSources(settings, self.servers, self.mcp_servers, disk, self.library, self._tasks)
        self._settings_presenter = SettingsPresenter(sources, self.window)
        pages, self._organising = self._settings_presenter, self._organise()
        palette = PalettePresenter(self.window, self.library, self.servers, pages.show)
        WindowActions(self.window, settings, pages, self._help, palette, disk, self.exchange, self._organising)
        self._mcp = self._create_mcp()
        self._close_confirmation = CloseConfirmation(self.window.unstored, self._unsaved, lambda: startup.can_ask)
        self._disk_banner = DiskBanner(disk, self.window.banners, self.window)
        self._connect()

    def _organise(self) -> OrganisePresenter:
        organiser = Organiser(self._engine, self.library, self._tasks, self._startup.app)
        organiser.done.connect(partial(_offer_undo, self.window.banners))
        presenter = OrganisePresenter(self.window.themes, self.window.sidebar, organiser, self.library, self.window)
        presenter.export_requested.connect(partial(_export, self.exchange))
        presenter.branches_requested.connect(self.window.page.branches.tree.open_for)
        return presenter

    def _create_notifiers(self) -> None:
        notifications, settings = self._notifications, self._settings
        ActivityNotifier(
            self.window, self.library, notifications, settings, self._startup.state_file, self._show_conversation
        )
        CallNotifier(self.library, notifications, settings, self._tasks, self._show_call)
        schedules = ScheduledPrompts(self._engine, self.library, self._tasks, self._startup.app)
        self._scheduled = SchedulePresenter(schedules, settings, self.servers, self.window)
        ScheduleNotifier(self._scheduled, notifications, settings, self._startup.raise_window)

    def _create_mcp(self) -> McpPresenter:
        engine, app = self._engine, self._startup.app
        engine.consent_handlers = self.library.requests.consent_handlers
        catalog, notices = McpCatalog(engine, self._tasks, app), McpNotices(engine, app)
        presenter = McpPresenter(catalog, notices, self._tasks, self.library, self.window)
        RequestNotifier(self.library, self._notifications, self._settings, self._show_request)
        return presenter

    def exchange(self) -> "ExchangePresenter":
        """Return the presenter of exports and imports, created at the first call: it is seldom needed."""
        if self._exchange is None:
            from ui.bridge.exchange import Exchange
            from ui.shell.exchange import ExchangePresenter

            exchange = Exchange(self._engine, self.library.unstored, self._tasks, self._startup.app)
            self._exchange = ExchangePresenter(exchange, self.library, self.window)
        return self._exchange

    def begin(self, options: LaunchOptions) -> None:
        """Apply the preferences, fill the window and open the first conversation."""
        self._on_preferences(self._engine.preferences)
        self._garbage_collector.watch(self.window.windowHandle())
        last = _open_last_folder(self.library, self._startup.state_file)
        self._disk_banner.show()
        for notice in self._engine.notices:
            self.window.banners.show_notice(notice)
        if options.demo:
            self.library.new_demo()
        elif options.endpoint is not None or self.window.new_was_requested:
            self.library.new()
        else:
            connected = bool(self._engine.connections.endpoints())
            self.library.open_last(last, self.library.new if connected else self.window.show_welcome)
        self._tasks.start(self._complete(options))

    async def _complete(self, options: LaunchOptions) -> None:
        """Add what can come after the first conversation."""
        parts = self._create_desktop_parts()
        self.library.waiting.find_interrupted()
        # Paint the conversation first: a thread that imports would take half of the processor.
        await asyncio.sleep(_PAINT_SECONDS)
        self._startup.app.setWindowIcon(app_icon())
        await parts.join(self._engine.folder, self._settings_presenter.opened, in_background=options.background)
        try:
            await self._engine.connections.warm_up()
        finally:
            self.servers.refresh_models()
        await import_in_thread("desktop_agent.tools.builtin_tools")
        self._scheduled.schedules.start()
        self._engine.store.search.start_indexing()
        await note_program(self._engine.store, QCoreApplication.applicationVersion())
        await import_in_thread("desktop_agent.engine.exchange.found_histories")
        from ui.shell.found_conversations import FoundPresenter
        from ui.shell.usage import BudgetBanners

        show_usage = partial(self._settings_presenter.show, "usage")
        BudgetBanners(self._settings.usage, self.window.banners, show_usage, self.window)
        FoundPresenter(self.library, self.window)
        self.library.found.start_indexing()
        UpdateNotice(self._settings.updates, self.window.banners, self.window)

    def _create_desktop_parts(self) -> "DesktopParts":
        from ui.bridge.side_conversation import SideConversation
        from ui.shell.desktop.desktop_parts import DesktopParts
        from ui.shell.side_windows.side_windows import SideWindows

        def create_source() -> SideConversation:
            return SideConversation(self.library, self._engine, self._clock, self._tasks)

        windows = SideWindows(self._startup, self.library, self.servers, self._pictures, self._tasks, create_source)
        parts = self._desktop = DesktopParts(self._startup, self.library, self._settings, self._tasks, windows)
        windows.page_created.connect(self._connect_page)
        windows.page_created.connect(partial(_add_shortcuts, self.window))
        self._organising.window_requested.connect(windows.open)
        self._mcp.elicitation.side_windows = lambda: windows.all
        parts.targets.open_requested()
        return parts

    async def wait_until_closed(self) -> None:
        """Return when the program may end: nothing is unsaved, or the person agreed to lose it."""
        await self.closed
        while not await self._close_confirmation.confirm():
            self.closed = asyncio.get_running_loop().create_future()
            self._startup.cancel_end()
            await self.closed

    async def exit_code(self) -> int:
        """Return 1 and write to standard error if something was lost. Call it after the engine is closed."""
        lost = UnsavedContent(self._engine.unsaved, self._lost_draft)
        if not lost or await self._close_confirmation.is_saved_elsewhere(lost):
            return 0
        sys.stderr.write(f"{lost.sentence}\n")
        return 1

    async def close(self) -> None:
        """Save the draft, end the background tasks and close the window."""
        self._settings_presenter.close()
        # Let the task that saves the last edit start: a task that has not started is dropped.
        await asyncio.sleep(0)
        await self._save_draft()
        self._disk.close()
        self.library.requests.close()
        self._help.close()
        if self._desktop is not None:
            await self._desktop.close()
        await self._scheduled.schedules.close()
        await self._tasks.close()
        await self._notifications.close()
        self.library.close()
        self._clock.stop()
        # MCP servers still emit signals while they end; the window no longer needs them.
        self._clock.blockSignals(True)
        self._garbage_collector.close()
        self.window.page.transcript.close_workers()
        self._startup.close_window()

    def end(self) -> None:
        """Begin the end of the program."""
        if not self._startup.can_ask:
            self._close_confirmation.cancel()
        if not self.closed.done():
            self.closed.set_result(None)

    def save_immediately(self) -> bool:
        """Save everything on another loop while the window's loop is stopped. Returns whether all was saved."""
        draft = self.window.page.save_draft_immediately()

        async def save() -> None:
            try:
                await self._engine.write_all(at_once=True)
            except Exception:  # not on a timeout
                await draft
                raise
            await draft

        return _run_on_another_loop(save)

    async def _unsaved(self) -> UnsavedContent:
        """Try to write everything that waits; return what the disk refused."""
        await self._save_draft()
        await self._engine.write_all()
        return UnsavedContent(self._engine.unsaved, self._lost_draft)

    async def _save_draft(self) -> None:
        self._lost_draft = None
        try:
            await self.window.page.save_draft(self._conversation_for_draft)
        except AgentError as error:
            _log.error("the draft could not be saved: %s", error)
            self._lost_draft = self.window.page.unsaved_draft

    async def _conversation_for_draft(self) -> OpenConversation:
        """Return the conversation for a draft that was written before any was shown."""
        last = self._startup.state_file.text(_LAST_CONVERSATION)
        first = "" if self.window.new_was_requested else await find_first_shown(self._engine.store, last)
        if not first:
            return OpenConversation(self._engine.new_session(), self._clock, self.library)
        try:
            session = await self._engine.session(first, whole=False)
        except StorageFailed as error:
            session = (await self._engine.follow_conversation(first, error)).session
        return OpenConversation(session, self._clock, self.library)

    def _connect(self) -> None:
        self.library.trash.purged.connect(self._disk.backups.find_deleted_conversations)
        self._connect_page(self.window.page)
        self._settings.changed.connect(self._on_preferences)
        self._settings_presenter.about_requested.connect(partial(self._help.show, "about"))
        self._mcp.catalog.settings_requested.connect(lambda: self._settings_presenter.show("mcp"))
        self._startup.ended.connect(self.end)
        self.window.page.providers_requested.connect(lambda: self._settings_presenter.show("providers"))
        self.window.model_file_requested.connect(lambda: self._settings_presenter.show("local"))
        LocalModelPresenter(self.window, self.library, self.servers)
        self.window.page.usage_meter.usage_requested.connect(partial(self._settings_presenter.show, "usage"))

    def _connect_page(self, page: ConversationPage) -> None:
        """Connect the page of any window with the objects that exist only once."""
        page.branches.deletion.deleted.connect(self._disk.backups.find_deleted_message)
        page.transcript.zoom_requested.connect(self._settings.zoom)

    def _raise_beside(self, conversation_id: str | None) -> "ConversationWindow | None":
        return None if self._desktop is None else self._desktop.windows.raise_showing(conversation_id)

    def _show_conversation(self, conversation_id: str | None) -> None:
        if self._raise_beside(conversation_id) is None:
            self._startup.raise_window()
            if conversation_id is not None:
                self.window.sidebar.conversation_chosen.emit(conversation_id)

    def _show_call(self, approval_id: str) -> None:
        window = self._raise_beside(self.library.waiting.live_calls.get(approval_id))
        if window is not None:
            window.page.approvals.show_call(approval_id)
            return
        self._startup.raise_window()
        self.window.inbox.open_call(approval_id)

    def _show_request(self, request: McpRequest) -> None:
        self._show_conversation(request.request.conversation_id)
        self._mcp.elicitation.show_request(request.id)

    def _on_problem(self, error: AgentError) -> None:
        self._settings_presenter.show_problem(error)
        self.window.trash.show_problem(error)
        self._scheduled.show_problem(error)
        if not self._disk_banner.covers(error):
            self.window.banners.show_error(error)

    def _save_refused(self) -> None:
        self._tasks.start(self._engine.preferences_file.save_unsaved())
        self._tasks.start(self.library.drafts.retry_refused())

    def _on_preferences(self, preferences: Preferences) -> None:
        appearance = preferences.appearance
        self._startup.scheme.choose(appearance.theme, appearance.zoom)
        save_appearance(self._startup.state_file, preferences, reading_style(appearance))
        for page in (self.window.page, *([] if self._desktop is None else self._desktop.windows.pages)):
            page.composer.set_enter_sends(preferences.chat.enter_sends)
            page.session_controls.refresh_modes()
