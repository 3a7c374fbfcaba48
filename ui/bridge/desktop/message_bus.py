"""Connections to the message buses of the desktop, over D-Bus."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

_log = logging.getLogger(__name__)
_REPLY_SECONDS = 5.0
"""Seconds after which a service that does not reply counts as absent."""
_BUS, _BUS_PATH = "org.freedesktop.DBus", "/org/freedesktop/DBus"
PATH_FIELD, INTERFACE, MEMBER, _SENDER = 1, 2, 3, 7
"""Fields of a message's header."""


class MessageBus:
    """A separate connection to the bus SESSION or SYSTEM. `on_signal` gets the signals that `listen` asks for."""

    def __init__(self, name: str = "SESSION", on_signal: Callable[[Any], object] = lambda _: None) -> None:
        self._name = name
        self._on_signal = on_signal
        self._opened: Any = None
        self._router: Any = None
        self._signals: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        return self._router is not None

    @property
    def unique_name(self) -> str:
        return str(self._opened.conn.unique_name)

    async def open(self) -> None:
        """Connect. Raises ConnectionError."""
        # Late: most starts need no bus.
        from jeepney.io.asyncio import open_dbus_router  # pyright: ignore[reportMissingTypeStubs]

        opened = open_dbus_router(bus=self._name)
        try:
            async with asyncio.timeout(_REPLY_SECONDS):
                self._router = await opened.__aenter__()
        except (OSError, EOFError, KeyError, ValueError, TimeoutError) as error:
            raise ConnectionError(f"there is no bus {self._name}: {error!r}") from error
        self._opened = opened

    async def close(self) -> None:
        """Leave the bus; `is_open` is false at once."""
        signals, self._signals = self._signals, None
        opened, self._opened, self._router = self._opened, None, None
        if signals is not None and signals is not asyncio.current_task():
            signals.cancel()
            with suppress(asyncio.CancelledError):
                await signals
        if opened is None:
            return
        try:
            await opened.__aexit__(None, None, None)
        except (OSError, EOFError, KeyError, ValueError, asyncio.InvalidStateError):
            # Errors at which jeepney stopped reading, such as an invalid message; InvalidStateError if a reply came
            # just when its call was cancelled. jeepney raises them before it closes the connection.
            with suppress(OSError):
                await opened.conn.close()

    async def listen(self, *rules: Any) -> None:
        """Call `on_signal` with the signals that match one of these MatchRules, from now on."""
        queue: asyncio.Queue[Any] = asyncio.Queue()
        filters: list[Any] = []
        for rule in rules:
            with suppress(OSError):
                await self.call(_BUS, _BUS_PATH, (_BUS, "AddMatch"), "s", (rule.serialise(),))
            if self._router is None:
                return
            filters.append(self._router.filter(rule, queue=queue))
        self._signals = asyncio.create_task(self._receive(filters, queue))

    async def _receive(self, filters: list[Any], queue: "asyncio.Queue[Any]") -> None:
        try:
            while True:
                self._on_signal(await queue.get())
        finally:
            for handle in filters:
                handle.close()

    async def call(
        self, to: str, path: str, method: tuple[str, str], signature: str | None, values: Any, *, starts: bool = True
    ) -> Any:
        """Call a method, given as interface and name, and return the reply; None if it is refused.

        `starts`: start the service if it does not run. Raises TimeoutError, and ConnectionError if nobody is there to
        reply, half a reply came, or the connection is closed.
        """
        if self._router is None:
            raise ConnectionError("the connection is closed")
        from jeepney import DBusAddress, MessageFlag, MessageType  # pyright: ignore[reportMissingTypeStubs]
        from jeepney import new_method_call as call  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
        from jeepney.io.common import RouterClosed  # pyright: ignore[reportMissingTypeStubs]
        from jeepney.low_level import SizeLimitError  # pyright: ignore[reportMissingTypeStubs]

        interface, name = method
        message: Any = call(DBusAddress(path, bus_name=to, interface=interface), name, signature, values)
        if not starts:
            message.header.flags |= MessageFlag.no_auto_start
        try:
            async with asyncio.timeout(_REPLY_SECONDS):
                reply = await self._router.send_and_get_reply(message)
        except TimeoutError:
            _log.info("%s does not reply", interface)
            raise
        except (OSError, EOFError, KeyError, ValueError, RouterClosed, SizeLimitError) as error:
            _log.info("%s cannot be asked: %r", interface, error)
            raise ConnectionError(f"{interface} cannot be asked: {error!r}") from error
        if reply.header.message_type is MessageType.error:
            _log.info("%s refuses %s: %s", interface, name, reply.body)
            return None
        return reply


def sender_of(message: Any) -> str:
    """Return the unique name of the sender, which the bus itself writes."""
    return str(message.header.fields.get(_SENDER, ""))
