"""The desktop around the window: notifications, and opening of links and folders in other programs.

On Linux the session's notification server shows notifications, elsewhere the system's tray. The protocol is the Desktop
Notifications Specification 1.3 of freedesktop.org. Qt's own D-Bus module cannot send it from Python: `Notify` wants an
unsigned number, and PySide6 makes a signed one of each int.
"""

import asyncio
import html
import logging
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QProcess, QTimer, QUrl, Signal
from PySide6.QtGui import QDesktopServices

from desktop_agent.types.errors import Sentence
from ui.bridge.event_loop import BackgroundTasks

if TYPE_CHECKING:
    from PySide6.QtWidgets import QSystemTrayIcon


_SOON_MS, _LATER_MS, _OFTEN = 250, 30_000, 60
"""A program that cannot open an address exits soon; one that stays is the browser itself."""


def start_program(folder: Path) -> None:
    """Start the program once more, with this data folder. A packaged one is its own interpreter."""
    module = [] if getattr(sys, "frozen", False) else ["-m", "ui"]
    QProcess.startDetached(sys.executable, [*module, "--data-dir", str(folder)])


class AddressOpener(QObject):
    """Opens links and folders. On Linux by xdg-open itself: Qt starts that too, but does not report its exit code."""

    failed = Signal(object)
    """A Sentence."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        # Kept until they have ended, so that none becomes a zombie.
        self._running: dict[subprocess.Popen[bytes], str] = {}
        self._looks = 0
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._poll_programs)

    def open_link(self, target: str) -> None:
        """Open a web or mail address that a model wrote; ignore every other kind."""
        if target.lower().startswith(("http://", "https://", "mailto:")):
            self._open(QUrl(target), target)

    def open_page(self, address: str) -> None:
        """Open an address that was checked; it is parsed as strictly here as in the check."""
        self._open(QUrl(address, QUrl.ParsingMode.StrictMode), address)

    def open_folder(self, folder: Path) -> None:
        """Open a folder in the file manager."""
        self._open(QUrl.fromLocalFile(str(folder)), str(folder))

    def _open(self, url: QUrl, address: str) -> None:
        program = shutil.which("xdg-open") if sys.platform.startswith("linux") else None
        if program is None:
            if not QDesktopServices.openUrl(url):
                self._report_failure(address)
            return
        encoded = bytes(url.toEncoded().data()).decode("ascii")
        # Late: nothing is opened before the first click.
        from desktop_agent.sandbox.environment import original_environment

        nowhere = subprocess.DEVNULL
        try:
            process = subprocess.Popen(  # noqa: S603  a program of the system, and an address
                [program, encoded],
                env=original_environment(),
                stdin=nowhere,
                stdout=nowhere,
                stderr=nowhere,
                start_new_session=True,
            )
        except OSError:
            self._report_failure(address)
            return
        self._running[process] = address
        self._looks = 0
        self._timer.start(_SOON_MS)

    def _poll_programs(self) -> None:
        for process, address in list(self._running.items()):
            code = process.poll()
            if code is not None:
                del self._running[process]
            if code:
                self._report_failure(address)
        self._looks += 1
        if not self._running:
            self._timer.stop()
        elif self._looks == _OFTEN:
            self._timer.start(_LATER_MS)

    def _report_failure(self, address: str) -> None:
        template = "“{address}” could not be opened. Copy it, and open it yourself."
        self.failed.emit(Sentence(template, {"address": address if len(address) <= 200 else f"{address[:199]}…"}))


_log = logging.getLogger(__name__)
_BUS_NAME = "org.freedesktop.Notifications"
_BUS_PATH = "/org/freedesktop/Notifications"
_REPLY_SECONDS = 5.0
"""Seconds after which a silent server counts as absent."""
_PROGRAM = "Desktop Agent"
_DESKTOP_ENTRY = "desktop-agent"


class DesktopNotifications(QObject):
    """Desktop notifications: one for each key, a new one replaces the one before."""

    activated = Signal(str)
    """The key of a notification that the person clicked."""

    def __init__(self, tasks: BackgroundTasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tasks = tasks
        self._server = _NotificationServer(self.activated.emit)
        self._tray: QSystemTrayIcon | None = None
        self._last = ""

    def show(self, key: str, title: str, text: str) -> None:
        """Show a notification, where the desktop can."""
        if sys.platform in {"win32", "darwin"}:
            self._show_in_tray(key, title, text)
        else:
            self._tasks.start(self._server.show(key, title, text))

    def withdraw(self, key: str) -> None:
        """Remove the notification with this key."""
        self._tasks.start(self._server.withdraw(key))

    async def close(self) -> None:
        """Remove the tray icon and leave the bus."""
        await self._server.close()
        if self._tray is not None:
            self._tray.hide()

    def _show_in_tray(self, key: str, title: str, text: str) -> None:
        from PySide6.QtWidgets import QApplication, QSystemTrayIcon

        if self._tray is None:
            self._tray = QSystemTrayIcon(QApplication.windowIcon(), self)
            self._tray.messageClicked.connect(lambda: self.activated.emit(self._last))
        self._last = key
        # A message needs a visible icon.
        self._tray.show()
        self._tray.showMessage(title, text, QApplication.windowIcon())


class _NotificationServer:
    """The client of the session's notification server."""

    def __init__(self, on_activated: Any) -> None:
        self._on_activated = on_activated
        self._lock = asyncio.Lock()
        self._opened: Any = None
        self._router: Any = None
        self._signals: asyncio.Task[None] | None = None
        self._reads_markup = False
        self._ids: dict[str, int] = {}

    async def show(self, key: str, title: str, text: str) -> None:
        async with self._lock:
            if not await self._connect():
                return
            hints = {"desktop-entry": ("s", _DESKTOP_ENTRY), "category": ("s", "im.received")}
            body = html.escape(text, quote=False) if self._reads_markup else text
            words = (_PROGRAM, self._ids.get(key, 0), _DESKTOP_ENTRY, title, body, ["default", _PROGRAM], hints, -1)
            answer = await self._call("Notify", "susssasa{sv}i", words)
            if answer:
                self._ids[key] = answer[0]

    async def withdraw(self, key: str) -> None:
        async with self._lock:
            if key in self._ids and self._router is not None:
                await self._call("CloseNotification", "u", (self._ids.pop(key),))

    async def close(self) -> None:
        signals, self._signals = self._signals, None
        if signals is not None:
            signals.cancel()
            with suppress(asyncio.CancelledError):
                await signals
        opened, self._opened, self._router = self._opened, None, None
        if opened is not None:
            with suppress(OSError, EOFError):
                await opened.__aexit__(None, None, None)

    async def _connect(self) -> bool:
        if self._router is not None:
            return True
        # Late: most starts show no notification.
        from jeepney.io.asyncio import open_dbus_router  # pyright: ignore[reportMissingTypeStubs]

        opened = open_dbus_router(bus="SESSION")
        try:
            async with asyncio.timeout(_REPLY_SECONDS):
                self._router = await opened.__aenter__()
        except (OSError, EOFError, KeyError, ValueError, TimeoutError) as error:
            _log.info("there is no session bus to notify by: %r", error)
            return False
        self._opened = opened
        capabilities = await self._call("GetCapabilities", None, ())
        if capabilities is None:
            await self.close()
            return False
        self._reads_markup = "body-markup" in capabilities[0]
        await self._listen()
        return True

    async def _listen(self) -> None:
        from jeepney import MatchRule, message_bus  # pyright: ignore[reportMissingTypeStubs]

        rule = MatchRule(type="signal", interface=_BUS_NAME, path=_BUS_PATH)
        bus: Any = message_bus
        with suppress(OSError, EOFError, TimeoutError):
            async with asyncio.timeout(_REPLY_SECONDS):
                await self._router.send_and_get_reply(bus.AddMatch(rule))
        queue: asyncio.Queue[Any] = asyncio.Queue()
        self._signals = asyncio.create_task(self._receive_signals(self._router.filter(rule, queue=queue), queue))

    async def _receive_signals(self, matching: Any, queue: "asyncio.Queue[Any]") -> None:
        with matching:
            while True:
                signal = await queue.get()
                name, about = signal.header.fields.get(3), signal.body[0]
                key = next((key for key, shown in self._ids.items() if shown == about), None)
                if key is None:
                    continue
                if name == "ActionInvoked":
                    self._on_activated(key)
                elif name == "NotificationClosed":
                    self._ids.pop(key, None)

    async def _call(self, method: str, signature: str | None, words: tuple[Any, ...]) -> Any:
        """Return the server's answer; None if it refuses, is gone or does not answer in time."""
        from jeepney import DBusAddress, MessageType  # pyright: ignore[reportMissingTypeStubs]
        from jeepney import new_method_call as call  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
        from jeepney.io.common import RouterClosed  # pyright: ignore[reportMissingTypeStubs]

        address = DBusAddress(_BUS_PATH, bus_name=_BUS_NAME, interface=_BUS_NAME)
        try:
            async with asyncio.timeout(_REPLY_SECONDS):
                reply = await self._router.send_and_get_reply(call(address, method, signature, words))
        except (OSError, EOFError, RouterClosed, TimeoutError) as error:
            _log.info("the notification server cannot be asked: %r", error)
            await self.close()
            return None
        if reply.header.message_type is MessageType.error:
            _log.info("the notification server refuses %s: %s", method, reply.body)
            return None
        return reply.body
