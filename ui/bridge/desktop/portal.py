"""Requests to xdg-desktop-portal: what a desktop lets a program do only through a dialog of its own.

The protocol is documented at https://flatpak.github.io/xdg-desktop-portal/docs/: a call names a request object, whose
signal `Response` answers it when the person has decided. A program outside of a sandbox has to say first who it is.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Any

_log = logging.getLogger(__name__)
_BUS_NAME = "org.freedesktop.portal.Desktop"
_PATH = "/org/freedesktop/portal/desktop"
_REGISTRY = "org.freedesktop.host.portal.Registry"
_REQUEST = "org.freedesktop.portal.Request"
_APPLICATION = "desktop-agent"
"""The name of the desktop entry."""
_REPLY_SECONDS = 5.0
"""For a reply to a call; a person may think for as long as they like."""
_CANCELLED = 1
_PATH_FIELD, _INTERFACE, _MEMBER, _SENDER = 1, 2, 3, 7
"""Fields of a message's header."""


class PortalMissing(Exception):
    """There is no bus, no portal, or none of this kind."""


class PortalRefused(Exception):
    """The portal refused the request, or ended before it answered. `is_cancelled`: the person did not want it."""

    def __init__(self, *, is_cancelled: bool) -> None:
        super().__init__("cancelled" if is_cancelled else "refused")
        self.is_cancelled = is_cancelled


class DesktopPortal:
    """One interface of the portal, on a connection of its own. What was asked for lasts as long as the connection.

    Signals count from the very process that answered first. `on_signal` gets the name and the values of each that
    answers no request; `on_gone` is called when the portal ends.
    """

    def __init__(
        self,
        interface: str,
        on_signal: Callable[[str, tuple[Any, ...]], object] | None = None,
        on_gone: Callable[[], object] = lambda: None,
    ) -> None:
        self._interface = interface
        self._on_signal = on_signal
        self._on_gone = on_gone
        self._opened: Any = None
        self._router: Any = None
        self._signals: asyncio.Task[None] | None = None
        self._owner = ""
        self._waiting: dict[str, asyncio.Future[tuple[int, dict[str, Any]]]] = {}

    async def open(self) -> int:
        """Connect; return the version of the interface. Raises PortalMissing."""
        # Late: most starts ask the portal for nothing.
        from jeepney.io.asyncio import open_dbus_router  # pyright: ignore[reportMissingTypeStubs]

        opened = open_dbus_router(bus="SESSION")
        try:
            async with asyncio.timeout(_REPLY_SECONDS):
                self._router = await opened.__aenter__()
        except (OSError, EOFError, KeyError, ValueError, TimeoutError) as error:
            raise PortalMissing(f"there is no session bus: {error!r}") from error
        self._opened = opened
        try:
            return await self._find()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Leave the bus: the portal forgets what this connection had."""
        signals, self._signals = self._signals, None
        if signals is not None and signals is not asyncio.current_task():
            signals.cancel()
            with suppress(asyncio.CancelledError):
                await signals
        self._fail_requests()
        opened, self._opened, self._router = self._opened, None, None
        if opened is None:
            return
        try:
            await opened.__aexit__(None, None, None)
        except (OSError, EOFError, asyncio.InvalidStateError):
            # As in ui.bridge.desktop.notifications.
            with suppress(OSError):
                await opened.conn.close()

    async def request(
        self, method: str, signature: str, values: Callable[[dict[str, Any]], tuple[Any, ...]], **options: Any
    ) -> dict[str, Any]:
        """Ask for something and wait for what the person says to it; return the results by their names.

        `values` gets the options, to which the name of the request is added. Raises PortalMissing and PortalRefused.
        """
        if self._router is None:
            raise PortalMissing("the connection is closed")
        token = f"desktop_agent_{secrets.token_hex(8)}"
        sender = str(self._opened.conn.unique_name).removeprefix(":").replace(".", "_")
        path = f"{_PATH}/request/{sender}/{token}"
        answered: asyncio.Future[tuple[int, dict[str, Any]]] = asyncio.get_running_loop().create_future()
        self._waiting[path] = answered
        try:
            reply = await self._call(
                self._interface, method, signature, values({"handle_token": ("s", token), **options})
            )
            # Portals before 0.9 choose the path themselves.
            self._waiting[str(reply.body[0])] = answered
            response, results = await answered
        finally:
            self._waiting = {path: other for path, other in self._waiting.items() if other is not answered}
        if response:
            raise PortalRefused(is_cancelled=response == _CANCELLED)
        return results

    async def _find(self) -> int:
        """Say who asks, and find out whether the portal has the interface."""
        with suppress(PortalRefused):
            # Known to newer portals, which ask those outside of a sandbox for it.
            await self._call(_REGISTRY, "Register", "sa{sv}", (_APPLICATION, {}))
        properties = "org.freedesktop.DBus.Properties"
        try:
            reply = await self._call(properties, "Get", "ss", (self._interface, "version"))
        except PortalRefused as error:
            raise PortalMissing(f"the portal has no {self._interface}") from error
        self._owner = str(reply.header.fields.get(_SENDER, ""))
        await self._listen()
        return int(reply.body[0][1])

    async def _listen(self) -> None:
        from jeepney import MatchRule, message_bus  # pyright: ignore[reportMissingTypeStubs]

        bus: Any = message_bus
        of_portal = MatchRule(type="signal", sender=self._owner, path_namespace=_PATH)
        of_bus = MatchRule(type="signal", interface="org.freedesktop.DBus", member="NameOwnerChanged")
        of_bus.add_arg_condition(0, self._owner)
        queue: asyncio.Queue[Any] = asyncio.Queue()
        filters: list[Any] = []
        for rule in (of_portal, of_bus):
            with suppress(OSError, EOFError, TimeoutError):
                async with asyncio.timeout(_REPLY_SECONDS):
                    await self._router.send_and_get_reply(bus.AddMatch(rule))
            filters.append(self._router.filter(rule, queue=queue))
        self._signals = asyncio.create_task(self._receive(filters, queue))

    async def _receive(self, filters: list[Any], queue: "asyncio.Queue[Any]") -> None:
        try:
            while True:
                self._take(await queue.get())
        finally:
            for handle in filters:
                handle.close()

    def _take(self, signal: Any) -> None:
        fields = signal.header.fields
        if fields.get(_MEMBER) == "NameOwnerChanged":
            self._fail_requests()
            self._on_gone()
        elif fields.get(_INTERFACE) == _REQUEST:
            answered = self._waiting.get(fields.get(_PATH_FIELD))
            if answered is not None and not answered.done():
                response, results = signal.body
                answered.set_result((response, {name: value for name, (_, value) in results.items()}))
        elif self._on_signal is not None:
            self._on_signal(str(fields.get(_MEMBER)), signal.body)

    def _fail_requests(self) -> None:
        for answered in self._waiting.values():
            if not answered.done():
                answered.set_result((_CANCELLED + 1, {}))

    async def _call(self, interface: str, method: str, signature: str, values: tuple[Any, ...]) -> Any:
        from jeepney import DBusAddress, MessageType  # pyright: ignore[reportMissingTypeStubs]
        from jeepney import new_method_call as call  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
        from jeepney.io.common import RouterClosed  # pyright: ignore[reportMissingTypeStubs]

        address = DBusAddress(_PATH, bus_name=self._owner or _BUS_NAME, interface=interface)
        try:
            async with asyncio.timeout(_REPLY_SECONDS):
                reply = await self._router.send_and_get_reply(call(address, method, signature, values))
        except (OSError, EOFError, KeyError, RouterClosed, TimeoutError) as error:
            raise PortalMissing(f"the portal cannot be asked: {error!r}") from error
        if reply.header.message_type is MessageType.error:
            _log.info("the portal refuses %s: %s", method, reply.body)
            raise PortalRefused(is_cancelled=False)
        return reply
