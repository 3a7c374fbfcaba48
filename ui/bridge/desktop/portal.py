"""Requests to xdg-desktop-portal, for actions that a desktop allows only through its own dialog.

The protocol is documented at https://flatpak.github.io/xdg-desktop-portal/docs/: a call names a request object, whose
signal `Response` answers it when the person has decided. A program outside of a sandbox has to register first.
"""

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ui.bridge.desktop.message_bus import INTERFACE, MEMBER, PATH_FIELD, MessageBus, sender_of

_BUS_NAME = "org.freedesktop.portal.Desktop"
_PATH = "/org/freedesktop/portal/desktop"
_REGISTRY = "org.freedesktop.host.portal.Registry"
_REQUEST = "org.freedesktop.portal.Request"
_APPLICATION = "desktop-agent"
"""The name of the desktop entry."""
_CANCELLED = 1


class PortalMissing(Exception):
    """There is no bus, no portal, or the portal lacks the interface."""


class PortalRefused(Exception):
    """The portal refused the request, or ended before it answer. `is_cancelled`: the person cancelled it."""

    def __init__(self, *, is_cancelled: bool) -> None:
        super().__init__("cancelled" if is_cancelled else "refused")
        self.is_cancelled = is_cancelled


class DesktopPortal:
    """One interface of the portal, on a separate connection. A grant lasts as long as the connection.

    Only signals of the process that answer first count. `on_signal` gets the name and the values of each signal that
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
        self._bus = MessageBus(on_signal=self._on_bus_signal)
        self._owner = ""
        self._waiting: dict[str, asyncio.Future[tuple[int, dict[str, Any]]]] = {}

    async def open(self) -> int:
        """Connect; return the version of the interface. Raises PortalMissing."""
        try:
            await self._bus.open()
        except ConnectionError as error:
            raise PortalMissing(str(error)) from error
        try:
            return await self._find()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Leave the bus: the portal forgets what this connection had."""
        self._fail_requests()
        await self._bus.close()

    async def request(
        self, method: str, signature: str, values: Callable[[dict[str, Any]], tuple[Any, ...]], **options: Any
    ) -> dict[str, Any]:
        """Send a request and wait for the person's decision; return the results by their names.

        `values` gets the options, to which the name of the request is added. Raises PortalMissing and PortalRefused.
        """
        if not self._bus.is_open:
            raise PortalMissing("the connection is closed")
        token = f"desktop_agent_{secrets.token_hex(8)}"
        sender = self._bus.unique_name.removeprefix(":").replace(".", "_")
        path = f"{_PATH}/request/{sender}/{token}"
        answer: asyncio.Future[tuple[int, dict[str, Any]]] = asyncio.get_running_loop().create_future()
        self._waiting[path] = answer
        try:
            reply = await self._call(
                self._interface, method, signature, values({"handle_token": ("s", token), **options})
            )
            # Portals before 0.9 choose the path themselves.
            self._waiting[str(reply.body[0])] = answer
            response, results = await answer
        finally:
            self._waiting = {path: other for path, other in self._waiting.items() if other is not answer}
        if response:
            raise PortalRefused(is_cancelled=response == _CANCELLED)
        return results

    async def _find(self) -> int:
        """Register the program, and return the version of the interface. Raises PortalMissing."""
        with suppress(PortalRefused):
            # Newer portals require this of programs outside of a sandbox; older ones do not know it.
            await self._call(_REGISTRY, "Register", "sa{sv}", (_APPLICATION, {}))
        properties = "org.freedesktop.DBus.Properties"
        try:
            reply = await self._call(properties, "Get", "ss", (self._interface, "version"))
        except PortalRefused as error:
            raise PortalMissing(f"the portal has no {self._interface}") from error
        self._owner = sender_of(reply)
        await self._listen()
        return int(reply.body[0][1])

    async def _listen(self) -> None:
        from jeepney import MatchRule  # pyright: ignore[reportMissingTypeStubs]

        of_portal = MatchRule(type="signal", sender=self._owner, path_namespace=_PATH)
        of_bus = MatchRule(type="signal", interface="org.freedesktop.DBus", member="NameOwnerChanged")
        of_bus.add_arg_condition(0, self._owner)
        await self._bus.listen(of_portal, of_bus)

    def _on_bus_signal(self, signal: Any) -> None:
        fields = signal.header.fields
        if fields.get(MEMBER) == "NameOwnerChanged":
            self._fail_requests()
            self._on_gone()
        elif fields.get(INTERFACE) == _REQUEST:
            answer = self._waiting.get(fields.get(PATH_FIELD))
            if answer is not None and not answer.done():
                response, results = signal.body
                answer.set_result((response, {name: value for name, (_, value) in results.items()}))
        elif self._on_signal is not None:
            self._on_signal(str(fields.get(MEMBER)), signal.body)

    def _fail_requests(self) -> None:
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_result((_CANCELLED + 1, {}))

    async def _call(self, interface: str, method: str, signature: str, values: tuple[Any, ...]) -> Any:
        try:
            reply = await self._bus.call(self._owner or _BUS_NAME, _PATH, (interface, method), signature, values)
        except OSError as error:
            raise PortalMissing(f"the portal cannot be asked: {error!r}") from error
        if reply is None:
            raise PortalRefused(is_cancelled=False)
        return reply
