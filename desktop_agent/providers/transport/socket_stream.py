"""Connections for the HTTP library on asyncio's own transports. Imported late: it loads httpcore.

The library's own streams start and stop watching the socket, and start a timer, for each read. In a window that costs
more than all parsing. Here the socket is watched as long as there is room, and one timer detects silence.
"""

import asyncio
import math
import selectors
import socket
import ssl
from asyncio.staggered import staggered_race
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, cast

import httpcore

# Unread bytes: above the first limit the socket is not watched, until there are fewer than the second.
_HIGH_WATER, _LOW_WATER = 64 * 1024, 16 * 1024
# Bytes that are read at once even if the reader reads in intervals.
_SMALL = 4 * 1024
# The most bytes of one read: while they are parsed and shown, the loop does nothing else.
_MAX_READ = 8 * 1024
# Seconds until the next address of a host is tried beside the one before (RFC 8305, section 5).
_NEXT_ADDRESS = 0.25


class SocketBackend(httpcore.AsyncNetworkBackend):
    """Opens connections with asyncio.

    `interval`: small pieces that follow each other within so many seconds are read together. The first one after a
    pause is read at once.
    """

    def __init__(self, interval: float = 0.0) -> None:
        self._interval = interval

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  the library's own interface
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the address of the host that answers first. Raises ConnectError and ConnectTimeout."""
        try:
            async with asyncio.timeout(timeout):
                stream = await _connect_first(host, port, local_address, self._interval)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(str(error)) from error
        # For names with an empty or a long part Python raises UnicodeError.
        except (OSError, UnicodeError, ExceptionGroup) as error:
            raise httpcore.ConnectError(str(error)) from error
        try:
            for option in socket_options or ():
                stream.get_extra_info("socket").setsockopt(*option)
        except OSError as error:  # macOS, where the other side has closed already
            stream.abort()
            raise httpcore.ConnectError(str(error)) from error
        return stream


async def _connect_first(host: str, port: int, local_address: str | None, interval: float) -> "SocketStream":
    """Connect. Raises OSError, and a group of them if the host has several addresses."""
    loop = asyncio.get_running_loop()
    local = None if local_address is None else (local_address, 0)
    opened: list[SocketStream] = []

    async def connect(address: str) -> SocketStream:
        transport, reader = await loop.create_connection(partial(_Reader, interval), address, port, local_addr=local)
        opened.append(SocketStream(transport, reader))
        return opened[-1]

    infos = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(_address(info[4]) for info in infos))
    if len(addresses) == 1:
        return await connect(addresses[0])
    attempts = [partial(connect, address) for address in addresses]
    winner: SocketStream | None = None
    try:
        winner, _, failures = await staggered_race(attempts, _NEXT_ADDRESS, loop=loop)
    finally:
        # A cancel may arrive when one has won already.
        for stream in opened:
            if stream is not winner:
                stream.abort()
    if winner is None:
        raise ExceptionGroup(f"no address of {host}", [error for error in failures if isinstance(error, Exception)])
    return winner


def _address(socket_address: tuple[Any, ...]) -> str:
    """Return the address in it, with the zone of a link-local one."""
    zone = socket_address[3] if len(socket_address) == 4 else 0
    return f"{socket_address[0]}%{zone}" if zone else str(socket_address[0])


class _Reader(asyncio.Protocol):
    """Keeps what has arrived until it is read, and knows whether more can be written."""

    transport: asyncio.Transport

    def __init__(self, interval: float) -> None:
        self.pieces = deque[bytes]()
        self.is_at_end = False
        self.failure: BaseException | None = None
        self.is_paused = False
        self.reading: asyncio.Future[None] | None = None
        self.writing: asyncio.Future[None] | None = None
        self._may_write = True
        self._size = 0
        self._interval = interval
        self._next_read = 0.0
        self._loop = asyncio.get_running_loop()

    @property
    def is_ready(self) -> bool:
        """Whether there is something that should be read now."""
        if not self.pieces or not self._interval:
            return bool(self.pieces) or self.is_at_end
        return self.is_at_end or self._size >= _SMALL or self._loop.time() >= self._next_read

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        # All bytes that the system has not accepted count. With a limit of 0, TLS transports would never allow writing.
        self.transport.set_write_buffer_limits(high=1, low=0)

    def data_received(self, data: bytes) -> None:
        self.pieces.append(data)
        self._size += len(data)
        if self._size > _HIGH_WATER and not self.is_paused:
            self.is_paused = True
            self.transport.pause_reading()
        if self.reading is None:
            return
        if self.is_ready:
            _wake(self.reading)
        elif len(self.pieces) == 1:
            self._loop.call_at(self._next_read, _wake, self.reading)

    def eof_received(self) -> bool:
        """Return whether the transport stays open for writing."""
        self.is_at_end = True
        _wake(self.reading)
        return self.transport.get_extra_info("ssl_object") is None

    def connection_lost(self, exc: BaseException | None) -> None:
        self.is_at_end, self.failure = True, exc
        self.resume_writing()
        _wake(self.reading)

    def pause_writing(self) -> None:
        self._may_write = False

    def resume_writing(self) -> None:
        self._may_write = True
        _wake(self.writing)

    async def wait(self) -> None:
        """Return when something should be read."""
        self.reading = self._loop.create_future()
        if self.pieces:
            self._loop.call_at(self._next_read, _wake, self.reading)
        try:
            await self.reading
        finally:
            self.reading = None

    def take(self, max_bytes: int) -> bytes:
        """Return the bytes that have arrived, at most `max_bytes`."""
        if self._size <= max_bytes:
            data = self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)
            self.pieces.clear()
        else:
            joined = b"".join(self.pieces)
            data = joined[:max_bytes]
            self.pieces = deque([joined[max_bytes:]])
        self._size -= len(data)
        if self.is_paused and self._size < _LOW_WATER:
            self.is_paused = False
            self.transport.resume_reading()
        if self._interval:
            self._next_read = self._loop.time() + self._interval
        return data

    def successor(self) -> "_Reader":
        """Return the reader of the same connection once it is encrypted, without any bytes of this one."""
        reader = _Reader(self._interval)
        reader.transport = self.transport
        return reader

    async def drain(self) -> None:
        """Return when all that was written has reached the system."""
        if not self._may_write:
            self.writing = asyncio.get_running_loop().create_future()
            await self.writing


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)


class SocketStream(httpcore.AsyncNetworkStream):
    """One connection. Errors are those of the HTTP library."""

    def __init__(self, transport: asyncio.Transport, reader: _Reader) -> None:
        self._transport = transport
        self._reader = reader
        self._loop = asyncio.get_running_loop()
        self._silence_timer: asyncio.TimerHandle | None = None
        self._silent_at = 0.0
        self._is_closed = False
        self.has_left_over: Callable[[], bool] = lambda: False
        """Whether more was read than belongs to the answer."""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        """Return what has arrived, or wait for something; empty at the end."""
        reader = self._reader
        if self._is_closed:
            raise httpcore.ReadError("closed here")
        if reader.is_ready:
            # A server that never pauses must not block the loop.
            await asyncio.sleep(0)
        else:
            self._limit_silence(math.inf if timeout is None else self._loop.time() + timeout)
            await reader.wait()
        if reader.pieces:
            return reader.take(min(max_bytes, _MAX_READ))
        if reader.failure is not None:
            raise httpcore.ReadError(str(reader.failure)) from reader.failure
        return b""

    def _limit_silence(self, until: float) -> None:
        self._silent_at = until
        timer = self._silence_timer
        # A later moment is checked when the timer fires: one timer lasts for many reads.
        if timer is None or timer.when() > until:
            self._start_silence_timer()

    def _stop_silence_timer(self) -> None:
        if self._silence_timer is not None:
            self._silence_timer.cancel()
            self._silence_timer = None

    def _start_silence_timer(self) -> None:
        self._stop_silence_timer()
        if self._silent_at < math.inf:
            self._silence_timer = self._loop.call_at(self._silent_at, self._on_silence)

    def _on_silence(self) -> None:
        self._silence_timer = None
        waiter = self._reader.reading
        if waiter is None or waiter.done():
            return
        if self._loop.time() < self._silent_at:
            self._start_silence_timer()
        else:
            waiter.set_exception(httpcore.ReadTimeout("nothing came"))

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Return when all of it has reached the system."""
        if not buffer:
            return
        if self._transport.is_closing():
            raise httpcore.WriteError("closed")
        self._transport.write(buffer)
        try:
            async with asyncio.timeout(timeout):
                await self._reader.drain()
        except TimeoutError as error:
            raise httpcore.WriteTimeout(str(error)) from error
        if self._reader.failure is not None:
            raise httpcore.WriteError(str(self._reader.failure)) from self._reader.failure

    def abort(self) -> None:
        """Close in the loop's next turn."""
        self._is_closed = True
        self._stop_silence_timer()
        self._transport.abort()

    async def aclose(self) -> None:
        """Close at once: unsent and unread bytes are dropped."""
        self.abort()
        # The loop closes the socket in its next turn.
        await asyncio.sleep(0)

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore.AsyncNetworkStream:
        """Return the same connection, encrypted. Raises ConnectError and ConnectTimeout, and closes it then."""
        self._stop_silence_timer()
        if self._reader.pieces or self._reader.is_at_end:
            # Unencrypted bytes must not count as encrypted ones.
            await self.aclose()
            raise httpcore.ConnectError("closed, or spoke before TLS")
        reader = self._reader.successor()
        try:
            async with asyncio.timeout(timeout):
                transport = await self._loop.start_tls(
                    self._transport, reader, ssl_context, server_hostname=server_hostname
                )
        except BaseException as error:
            await self.aclose()
            if isinstance(error, TimeoutError):
                raise httpcore.ConnectTimeout(str(error)) from error
            if isinstance(error, OSError):  # as are those of TLS
                raise httpcore.ConnectError(str(error)) from error
            raise
        if transport is None:
            raise httpcore.ConnectError("closed")
        reader.connection_made(transport)
        return SocketStream(transport, reader)

    def get_extra_info(self, info: str) -> Any:
        """Return what the library needs to know about a connection; `is_readable`: it has more to read, or was closed.

        The library closes such a connection instead of sending another request over it.
        """
        names = {"client_addr": "sockname", "server_addr": "peername"}
        if info == "is_readable":
            reader = self._reader
            has_read_more = bool(reader.pieces) or reader.is_at_end or self.has_left_over()
            return has_read_more or _is_readable(self._transport.get_extra_info("socket"))
        return self._transport.get_extra_info(names.get(info, info))


def _is_readable(sock: socket.socket) -> bool:
    if sock.fileno() < 0:
        return True
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(0))
