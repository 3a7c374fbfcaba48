"""Desktop notifications: by the session's notification server on Linux, elsewhere by the system's tray.

The protocol is the Desktop Notifications Specification 1.3 of freedesktop.org. Qt's own D-Bus module cannot send it from
Python: `Notify` wants an unsigned number, and PySide6 makes a signed one of each int.
"""

import asyncio
import html
import logging
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal

from ui.bridge.event_loop import BackgroundTasks

if TYPE_CHECKING:
    from PySide6.QtWidgets import QSystemTrayIcon

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
