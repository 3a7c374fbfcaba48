"""Builds everything, once, and ends it in order."""

import asyncio
import gc
import importlib
import logging
import os
import sys
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QMessageLogContext, QSettings, Qt, QtMsgType, qInstallMessageHandler
from PySide6.QtWidgets import QApplication, QMessageBox

from desktop_agent.engine.connections import key_from_environment
from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.faces.arguments import API_KEY_VARIABLE, Place, program_version
from desktop_agent.storage.paths import data_folder
from desktop_agent.vocabulary.errors import AgentError, RemedyAction
from desktop_agent.vocabulary.preferences import Preferences
from ui.bridge.calls.rules import Rules
from ui.bridge.end_signals import EndSignals
from ui.bridge.frame_clock import FrameClock
from ui.bridge.idle.garbage import Garbage
from ui.bridge.library import Library
from ui.bridge.loop import run
from ui.bridge.mcp.asking import Asking
from ui.bridge.mcp.notices import ServerNotices
from ui.bridge.mcp.offers import Offers
from ui.bridge.mcp.tool_servers import ToolServers
from ui.bridge.pictures import Pictures
from ui.bridge.servers import Servers
from ui.bridge.settings import Settings
from ui.bridge.tasks import Tasks
from ui.look.scheme import SchemeFollower
from ui.look.sentences import spoken
from ui.look.style import Style
from ui.look.theme import ThemeSource
from ui.shell.actions import Actions
from ui.shell.mcp.at_work import ServersAtWork
from ui.shell.settings import SettingsPresenter
from ui.shell.single_instance import SingleInstance
from ui.shell.window import MainWindow

_log = logging.getLogger(__name__)
NO_DISPLAY = (
    "Desktop Agent needs a screen, and there is none: neither DISPLAY nor WAYLAND_DISPLAY is set. "
    "Start it in a desktop session, or ask from the terminal: desktop-agent ask PROMPT\n"
)

DISPLAY_GONE = (
    "Desktop Agent needs a screen, and the one that is named (DISPLAY, WAYLAND_DISPLAY) does not answer. "
    "Start it in a desktop session, or ask from the terminal: desktop-agent ask PROMPT\n"
)

_DRAWN = 0.3
"""Seconds after which a conversation that was opened is on the screen."""


def run_window(place: Place) -> int:
    """Open the window and stay until it is closed; returns the exit code (2: there is no screen)."""
    if not has_display():
        sys.stderr.write(NO_DISPLAY)
        return 2
    before = qInstallMessageHandler(_explain_no_display)
    app = QApplication(sys.argv[:1])
    qInstallMessageHandler(before)
    app.setApplicationName("desktop-agent")
    app.setApplicationDisplayName("Desktop Agent")
    app.setApplicationVersion(program_version())
    app.setDesktopFileName("desktop-agent")
    try:
        folder = data_folder(place.data_dir)
    except AgentError as error:
        sys.stderr.write(f"{error} {error.remedy}\n")
        return 1
    instance = SingleInstance(folder)
    if not instance.is_first():
        sys.stderr.write("Desktop Agent is already open; its window comes to the front.\n")
        return 0
    try:
        return run(app, lambda: _main(app, place, folder, instance))
    finally:
        instance.close()


def has_display() -> bool:
    """Whether Qt can open a window here."""
    if sys.platform in {"win32", "darwin"} or os.environ.get("QT_QPA_PLATFORM"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _explain_no_display(kind: QtMsgType, _context: QMessageLogContext, message: str) -> None:
    """Qt aborts the process where no screen answers; there is no error to catch, only this last message."""
    sys.stderr.write(f"{message.strip()}\n")
    if kind is QtMsgType.QtFatalMsg:
        sys.stderr.write(DISPLAY_GONE)
        sys.stderr.flush()
        os._exit(2)


async def _main(app: QApplication, place: Place, folder: Path, instance: SingleInstance) -> int:
    themes = ThemeSource()
    _style = Style(app, themes, app)
    defaults = RunDefaults(
        endpoint=place.endpoint,
        api_key=key_from_environment(API_KEY_VARIABLE),
        model=place.model,
        questions=True,
        mode_requests=True,
    )
    try:
        engine = await Engine.open(folder, defaults)
    except AgentError as error:
        await _tell_and_wait(error)
        return 1
    desk = Desk(app, themes, engine, folder)
    instance.raise_requested.connect(desk.raise_window)
    signals = EndSignals(app)
    signals.end_requested.connect(desk.end)
    try:
        desk.begin(place)
        await desk.closed
    finally:
        await desk.close()
        await engine.close()
        signals.close()
    return 0


class Desk:
    """The window and what stands between it and the engine."""

    def __init__(self, app: QApplication, themes: ThemeSource, engine: Engine, folder: Path) -> None:
        self._app = app
        self._engine = engine
        self._tasks = Tasks(self._on_problem)
        clock = FrameClock(app)
        pictures = Pictures(engine.pictures)
        self.library = Library(engine, clock, self._tasks, pictures, app)
        self.servers = Servers(engine, self._tasks, app)
        self.window = MainWindow(themes, self.library, self.servers, pictures, self._tasks)
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._clock = clock
        self._garbage = Garbage(clock.tick, lambda: self.library.working, app)
        self._places = QSettings(str(folder / "window.ini"), QSettings.Format.IniFormat)
        self._scheme = SchemeFollower(themes, app.styleHints(), self.window)
        settings = Settings(engine, self._tasks, app)
        settings.changed.connect(self._on_preferences)
        self._actions = Actions(self.window, settings)
        self._settings_presenter = SettingsPresenter(
            themes,
            settings,
            self.servers,
            Rules(engine, self._tasks, app),
            self._tasks,
            self.window,
            lambda: None if self.library.current is None else self.library.current.id,
        )
        self._settings_presenter.connect_requested.connect(self.window.show_welcome)
        self.tool_servers = ToolServers(engine, clock, self._tasks, self._open_folder, app)
        self._settings_presenter.offer_tool_servers(self.tool_servers)
        asking = Asking(app)
        engine.people = asking.people
        self._servers_at_work = ServersAtWork(
            themes,
            (asking, Offers(engine, self._tasks, app), ServerNotices(engine, app)),
            self.window.page.composer,
            self.window.page.banners,
            self._tasks,
            lambda: self.library.current,
            self.window,
        )
        self._servers_at_work.settings_requested.connect(lambda: self._settings_presenter.show().open_tool_servers())
        self.window.close_requested.connect(self.end)
        self.window.settings_requested.connect(self._show_settings)
        banners = self.window.page.banners
        banners.offer(
            RemedyAction.OPEN_SETTINGS,
            QCoreApplication.translate("Desk", "Open settings"),
            lambda: self._settings_presenter.show(providers=True),
        )
        app.aboutToQuit.connect(self.end)

    def begin(self, place: Place) -> None:
        """Show the window where it was, with what belongs into it."""
        self._on_preferences(self._engine.preferences)
        self.window.return_to_place(self._places)
        self.window.show()
        self._garbage.watch(self.window.windowHandle())
        self.library.refresh()
        for notice in self._engine.notices:
            self.window.page.banners.show_notice(notice)
        if place.endpoint is not None:
            self.library.new()
        self._tasks.start(self._go_on(place))

    async def _go_on(self, place: Place) -> None:
        await _load("desktop_agent.engine.reopening")
        if place.demo:
            self.library.new_demo()
        elif place.endpoint is None:
            connected = bool(self._engine.preferences.providers.endpoints)
            self.library.open_latest(self.library.new if connected else self.window.show_welcome)
        # What was opened is drawn first: threads that import would take half of the processor from it.
        await asyncio.sleep(_DRAWN)
        self.servers.refresh_models()
        self._tasks.start(self._engine.connections.warm_up())
        await _load("desktop_agent.tools.toolsets")

    def raise_window(self) -> None:
        """Come to the front: the program was started again."""
        self.window.setWindowState(self.window.windowState() & ~Qt.WindowState.WindowMinimized)
        self.window.show()
        self.window.raise_()
        self.window.activateWindow()

    async def close(self) -> None:
        """Keep the place, end the tasks, take the window away."""
        self.window.remember_place(self._places)
        try:
            await self.window.page.keep_draft()
        except AgentError:
            _log.exception("what was being written could not be kept")
        self._servers_at_work.close()
        await self._tasks.close()
        self.library.close()
        self._clock.stop()
        # MCP servers have something to say while they end; nobody looks any more.
        self._clock.blockSignals(True)
        self._garbage.close()
        self.window.page.transcript.close_workers()
        self.window.allow_closing()
        self.window.close()
        self.window.deleteLater()

    def end(self) -> None:
        """Let the program end, in order."""
        if not self.closed.done():
            self.closed.set_result(None)

    def _show_settings(self) -> None:
        self._settings_presenter.show()

    def _open_folder(self) -> str | None:
        return None if self.library.current is None else self.library.current.workspace

    def _on_problem(self, error: AgentError) -> None:
        self.window.show_problem(error)

    def _on_preferences(self, preferences: Preferences) -> None:
        self._scheme.choose(preferences.appearance.theme, preferences.appearance.zoom)
        self.window.page.composer.set_enter_sends(preferences.chat.enter_sends)
        self.window.page.conduct.look_at_modes()


async def _tell_and_wait(error: AgentError) -> None:
    """A problem before there is a window to show it in."""
    _log.error("the data folder cannot be opened: %s", error)
    box = QMessageBox(QMessageBox.Icon.Critical, "Desktop Agent", spoken(error.sentence))
    box.setInformativeText(spoken(error.remedy))
    done: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def on_finished(code: int) -> None:
        if not done.done():
            done.set_result(code)

    box.finished.connect(on_finished)
    box.open()
    await done


async def _load(room: str) -> None:
    """Import it in a thread, so that neither the first frame nor what needs it waits.

    Python looks for garbage in whatever thread makes objects, and Qt's must go in the one that they were made in.
    """
    gc.disable()
    try:
        await asyncio.to_thread(importlib.import_module, room)
    finally:
        gc.enable()
