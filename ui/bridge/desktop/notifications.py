"""Desktop notifications: by the session's notification server on Linux, elsewhere by the system's tray.

The protocol is the Desktop Notifications Specification 1.3 of freedesktop.org. Qt's own D-Bus module cannot send it
from Python: `Notify` wants an unsigned number, and PySide6 makes a signed one of each int.
"""

import asyncio
import html
import logging
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication

from ui.bridge.desktop.message_bus import MEMBER, MessageBus, sender_of
from ui.bridge.event_loop import BackgroundTasks

if TYPE_CHECKING:
    from PySide6.QtWidgets import QSystemTrayIcon

_log = logging.getLogger(__name__)
_BUS_NAME = "org.freedesktop.Notifications"
_BUS_PATH = "/org/freedesktop/Notifications"
_PROGRAM = "Desktop Agent"
_DESKTOP_ENTRY = "desktop-agent"
SHOW = "show"
"""The action of a click on a notification, which every notification has."""


def is_active() -> bool:
    """Return whether the program is in front."""
    return QGuiApplication.applicationState() is Qt.ApplicationState.ApplicationActive


def on_application_state(command: Callable[[], object]) -> None:
    """Run the command whenever `is_active` may have changed."""
    app = QGuiApplication.instance()
    if isinstance(app, QGuiApplication):
        app.applicationStateChanged.connect(command)


class DesktopNotifications(QObject):
    """Desktop notifications: one for each key, a new one replaces the one before."""

    activated = Signal(str, str)
    """The key of a notification, and the action in it that the person chose. It is removed then."""

    def __init__(self, tasks: BackgroundTasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tasks = tasks
        self._server = _NotificationServer(self._on_action)
        self._tray: QSystemTrayIcon | None = None
        self._last_key = ""

    def show(self, key: str, title: str, text: str, actions: Sequence[tuple[str, str]] = ()) -> None:
        """Show a notification, if the desktop can. `actions` are further actions: their names and the texts of buttons.

        The texts may be anybody's: hidden characters are spelled out, the title is one line, and nothing is markup.
        """
        title, text = " ".join(_spell_hidden(title).split()), _spell_hidden(text)
        if sys.platform in {"win32", "darwin"}:
            self._show_in_tray(key, title, text)
        else:
            self._tasks.start(self._server.show(key, title, text, actions))

    def withdraw(self, key: str) -> None:
        """Remove the notification with this key."""
        self._tasks.start(self._server.withdraw(key))

    async def close(self) -> None:
        """Remove the tray icon and leave the bus."""
        await self._server.close()
        if self._tray is not None:
            self._tray.hide()

    def _on_action(self, key: str, action: str, number: int) -> None:
        # Not every server removes a notification that was clicked.
        self._tasks.start(self._server.dismiss(number))
        self.activated.emit(key, action)

    def _show_in_tray(self, key: str, title: str, text: str) -> None:
        from PySide6.QtWidgets import QApplication, QSystemTrayIcon

        if self._tray is None:
            self._tray = QSystemTrayIcon(QApplication.windowIcon(), self)
            self._tray.messageClicked.connect(lambda: self.activated.emit(self._last_key, SHOW))
        self._last_key = key
        # A message needs a visible icon.
        self._tray.show()
        self._tray.showMessage(title, text, QApplication.windowIcon())


@dataclass(frozen=True, slots=True)
class _Shown:
    """A notification on the screen: the server's number for it, and the actions that it offers."""

    number: int
    actions: frozenset[str]


class _NotificationServer:
    """The client of the session's notification server.

    It addresses the process that reported its capabilities, by its unique name: a process that takes its place may read
    markup where the first did not. Only signals of that process count; anybody on the bus can send one.
    """

    def __init__(self, on_action: Callable[[str, str, int], object]) -> None:
        self._on_action = on_action
        self._lock = asyncio.Lock()
        self._bus = MessageBus(on_signal=self._on_signal)
        self._owner = ""
        self._capabilities: frozenset[str] = frozenset()
        self._shown: dict[str, _Shown] = {}

    async def show(self, key: str, title: str, text: str, actions: Sequence[tuple[str, str]]) -> None:
        async with self._lock:
            # Try twice: the server may have been replaced by another one.
            for _ in range(2):
                if not await self._connect() or not await self._find_server():
                    return
                try:
                    number = await self._notify(key, title, text, actions)
                except TimeoutError:
                    # The notification may be shown nevertheless: never send it again.
                    return
                if number is not None:
                    offered = [name for name, _ in actions] if "actions" in self._capabilities else []
                    self._shown[key] = _Shown(number, frozenset((SHOW, *offered)))
                    return
                self._forget_server()

    async def withdraw(self, key: str) -> None:
        async with self._lock:
            shown = self._shown.pop(key, None)
            if shown is not None:
                await self._close_notification(shown.number)

    async def dismiss(self, number: int) -> None:
        """Remove a notification that was clicked and is not known any more."""
        async with self._lock:
            if all(shown.number != number for shown in self._shown.values()):
                await self._close_notification(number)

    async def close(self) -> None:
        self._forget_server()
        await self._bus.close()

    async def _connect(self) -> bool:
        if self._bus.is_open:
            return True
        try:
            await self._bus.open()
        except ConnectionError as error:
            _log.info("notifications are not possible: %s", error)
            return False
        # Late: most starts show no notification.
        from jeepney import MatchRule  # pyright: ignore[reportMissingTypeStubs]

        await self._bus.listen(MatchRule(type="signal", interface=_BUS_NAME, path=_BUS_PATH))
        return self._bus.is_open

    async def _find_server(self) -> bool:
        """Find the server and its capabilities, unless they are known."""
        if self._owner:
            return True
        reply = await self._call(_BUS_NAME, "GetCapabilities", None, ())
        if reply is None:
            await self.close()
            return False
        self._owner, self._capabilities = sender_of(reply), frozenset(reply.body[0])
        return True

    def _forget_server(self) -> None:
        self._owner, self._capabilities = "", frozenset()
        self._shown.clear()

    async def _notify(self, key: str, title: str, text: str, actions: Sequence[tuple[str, str]]) -> int | None:
        hints = {"desktop-entry": ("s", _DESKTOP_ENTRY), "category": ("s", "im.received")}
        body = html.escape(text, quote=False) if "body-markup" in self._capabilities else text
        names: list[str] = []
        if "actions" in self._capabilities:
            names = ["default", _PROGRAM, *(part for action in actions for part in action)]
        replaces = self._shown[key].number if key in self._shown else 0
        # A notification with actions stays until it is decided; the server chooses for how long it shows the others.
        expiry = 0 if actions else -1
        words = (_PROGRAM, replaces, _DESKTOP_ENTRY, title, body, names, hints, expiry)
        reply = await self._request(self._owner, "Notify", "susssasa{sv}i", words)
        return None if reply is None else int(reply.body[0])

    async def _close_notification(self, number: int) -> None:
        if self._owner and self._bus.is_open:
            await self._call(self._owner, "CloseNotification", "u", (number,))

    def _on_signal(self, signal: Any) -> None:
        """Handle a click or the end of a notification; ignore other senders, and actions that were not offered."""
        if not self._owner or sender_of(signal) != self._owner or not signal.body:
            return
        number, name = signal.body[0], signal.header.fields.get(MEMBER)
        key = next((key for key, shown in self._shown.items() if shown.number == number), None)
        if key is None:
            return
        if name == "NotificationClosed":
            del self._shown[key]
        elif name == "ActionInvoked":
            action = SHOW if signal.body[1] == "default" else str(signal.body[1])
            if action in self._shown[key].actions:
                # Remove it now, so that a second click has no effect.
                del self._shown[key]
                self._on_action(key, action, number)

    async def _call(self, to: str, method: str, signature: str | None, words: tuple[Any, ...]) -> Any:
        """Return the server's reply; None if it refuses, is gone or does not answer in time."""
        try:
            return await self._request(to, method, signature, words)
        except TimeoutError:
            return None

    async def _request(self, to: str, method: str, signature: str | None, words: tuple[Any, ...]) -> Any:
        """Return the server's reply; None if it refuses or is gone. Raises TimeoutError."""
        try:
            return await self._bus.call(to, _BUS_PATH, (_BUS_NAME, method), signature, words)
        except OSError as error:
            await self.close()
            if isinstance(error, TimeoutError):
                raise
            return None


@cache
def _hidden_characters() -> re.Pattern[str]:
    from desktop_agent.types.hidden_characters import HIDDEN_CHARACTERS, PRIVATE_USE_CHARACTERS

    return re.compile(f"[{HIDDEN_CHARACTERS}{PRIVATE_USE_CHARACTERS}]")


def _spell_hidden(text: str) -> str:
    """Return the text with ⟨U+202E⟩ for each control, direction and zero-width character; tab and line feed stay."""
    return _hidden_characters().sub(lambda match: f"⟨U+{ord(match.group()):04X}⟩", text)
