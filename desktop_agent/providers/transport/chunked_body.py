"""A chunked body (RFC 9112, section 7.1) read past the HTTP library, which pays for each chunk in four layers.

Everything else stays the library's: connecting, heads, other framings, the end of the body, the way back to the pool.
This is the only module that knows private names of httpx, httpcore and h11. Where one of them is missing or behaves
otherwise, `fast_body` answers None and the library reads the body itself.
"""

import asyncio
import re
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import h11
import httpcore
import httpx

from desktop_agent.vocabulary.requests import Timeouts

_READ_SIZE = 64 * 1024
# Without extensions and spaces. What is written otherwise is no fault: the library reads it.
_HEADER = re.compile(rb"([0-9A-Fa-f]{1,16})\r\n")
_MAX_HEADER = 18
_INVALID_HEADER = b"!\r\n"  # for a chunk that is longer than it said: the library finds the fault in its turn
_SMALL = 16
_FIRST_RUN = 8


@dataclass(slots=True)
class ReadLimits:
    """How long the next piece of a body is waited for; who reads may change it between two.

    `silence`: seconds between two pieces. `until`: when waiting ends however many pieces come, on the loop's clock.
    """

    silence: float = Timeouts().idle
    until: float | None = None

    @property
    def seconds(self) -> float:
        """For the next piece."""
        return self.silence if self.until is None else max(0.0, min(self.silence, self._left(self.until)))

    @property
    def is_over(self) -> bool:
        """Whether `until` has come."""
        return self.until is not None and self._left(self.until) <= 0

    def _left(self, until: float) -> float:
        return until - asyncio.get_running_loop().time()


class ResponseBody(Protocol):
    """The bytes of an answer."""

    limits: ReadLimits

    def __aiter__(self) -> AsyncIterator[bytes]: ...


def fast_body(response: httpx.Response) -> "ChunkedBody | None":
    """A reader for the body of an answer whose head has just come; None for what the library must read itself."""
    network = response.extensions.get("network_stream")
    ordinary = response.stream
    machine = _nested_attribute(ordinary, "_httpcore_stream", "_stream", "_connection", "_h11_state")
    if (
        not isinstance(machine, h11.Connection)
        or not isinstance(ordinary, httpx.AsyncByteStream)
        or not isinstance(network, httpcore.AsyncNetworkStream)
        or not _is_h11_supported()
        or not _expects_chunk(machine)
    ):
        return None
    return ChunkedBody(machine, network, HttpxBody(ordinary), _take_buffered(machine))


class HttpxBody:
    """A body that the library reads."""

    def __init__(self, source: AsyncIterable[bytes]) -> None:
        self.limits = ReadLimits()
        self._source = aiter(source)

    def __aiter__(self) -> "HttpxBody":
        return self

    async def __anext__(self) -> bytes:
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await anext(self._source)
        except TimeoutError:
            raise httpx.ReadTimeout("nothing came") from None


class ChunkedBody:
    """The payload, all that came at once joined. Raises what the library raises.

    The library's machine waits in front of the first chunk. It gets the last chunk, or whatever is no plain chunk, and
    reads on from there: so trailers, extensions, faults and the way back to the pool are exactly the library's.
    """

    def __init__(
        self,
        machine: h11.Connection,
        network: httpcore.AsyncNetworkStream,
        ordinary: HttpxBody,
        early: bytes,
    ) -> None:
        self._machine = machine
        self._network = network
        self._ordinary = ordinary
        self.limits = ordinary.limits
        self._early = early  # came together with the head
        self._kept = b""  # a header, or the end of a chunk, of which more must come
        self._missing = -1  # bytes of the open chunk's payload; -1: none is open
        self._is_handed_over = False

    def __aiter__(self) -> "ChunkedBody":
        return self

    async def __anext__(self) -> bytes:
        while not self._is_handed_over:
            data = await self._received()
            if not data:
                self._hand_to_library(b"")  # the connection ended in the middle of the body
            elif payload := self._read_payload(data):
                return payload
        return await anext(self._ordinary)

    async def _received(self) -> bytes:
        if self._early:
            early, self._early = self._early, b""
            return early
        try:
            return await self._network.read(_READ_SIZE, self.limits.seconds)
        except httpcore.TimeoutException:
            raise httpx.ReadTimeout("nothing came") from None
        except httpcore.NetworkError:
            raise httpx.ReadError("the connection broke") from None

    def _read_payload(self, data: bytes) -> bytes:
        if self._kept:
            data = self._kept + data
            self._kept = b""
        pieces: list[bytes] = []
        at = 0 if self._missing < 0 else self._read_rest_of_chunk(data, pieces)
        self._read_chunks(data, at, pieces)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _read_rest_of_chunk(self, data: bytes, pieces: list[bytes]) -> int:
        """Take what belongs to the open chunk. Where the next one begins."""
        missing = self._missing
        pieces.append(data[:missing])
        if missing + 2 > len(data):
            self._stay_open(data, missing)
            return len(data)
        self._missing = -1
        if data[missing : missing + 2] != b"\r\n":
            self._hand_to_library(_INVALID_HEADER)
            return len(data)
        return missing + 2

    def _read_chunks(self, data: bytes, at: int, pieces: list[bytes]) -> None:
        """Take chunk after chunk; the last one may stay open."""
        length = len(data)
        header = _HEADER.match
        before = 0
        while at < length:
            found = header(data, at)
            size = 0 if found is None else int(found[1], 16)
            if found is None or not size:
                self._handle_unusual_header(data[at:], is_header=found is not None)
                return
            start = found.end()
            end = start + size
            if end + 2 > length:
                pieces.append(data[start:end])
                self._stay_open(data, end)
                return
            if before == size <= _SMALL and (after := _read_equal_chunks(data, at, start - at, size, pieces)) > at:
                at = after
                continue
            pieces.append(data[start:end])
            if data[end : end + 2] != b"\r\n":
                self._hand_to_library(_INVALID_HEADER)
                return
            before = size
            at = end + 2

    def _stay_open(self, data: bytes, end: int) -> None:
        self._missing = max(0, end - len(data))
        self._kept = data[end:]

    def _handle_unusual_header(self, rest: bytes, *, is_header: bool) -> None:
        if is_header or len(rest) >= _MAX_HEADER or b"\n" in rest:
            self._hand_to_library(rest)
        else:
            self._kept = rest

    def _hand_to_library(self, rest: bytes) -> None:
        self._machine.receive_data(rest)
        self._is_handed_over = True


def _read_equal_chunks(data: bytes, at: int, header: int, size: int, pieces: list[bytes]) -> int:
    """Take neighbouring chunks of one small size, many in one step. Where the first other one begins.

    `header` is the length of their header. A server that writes character by character would else cost per byte what
    others cost per event.
    """
    stride = header + size + 2
    one = data[at : at + header] + bytes(size) + b"\r\n"
    fixed = [*range(header), header + size, header + size + 1]
    count = _FIRST_RUN
    while at + count * stride <= len(data):
        part = data[at : at + count * stride]
        if any(part[offset::stride] != one[offset : offset + 1] * count for offset in fixed):
            break
        payload = bytearray(count * size)
        for offset in range(size):
            payload[offset::size] = part[header + offset :: stride]
        pieces.append(bytes(payload))
        at += len(part)
        count *= 2
    return at


def _expects_chunk(machine: h11.Connection) -> bool:
    """Whether a head has come and chunks follow."""
    return type(_nested_attribute(machine, "_reader")).__name__ == "ChunkedReader"


def _take_buffered(machine: h11.Connection) -> bytes:
    """What it received and has not looked at; it forgets that."""
    received, _ = machine.trailing_data
    _nested_attribute(machine, "_receive_buffer", "maybe_extract_at_most")(len(received))
    return received


@cache
def _is_h11_supported() -> bool:
    """Whether h11 still works as this module believes: tried once, on an answer in memory."""
    machine = h11.Connection(h11.CLIENT)
    machine.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    machine.send(h11.EndOfMessage())
    machine.receive_data(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel")
    machine.next_event()
    if not _expects_chunk(machine) or not callable(
        _nested_attribute(machine, "_receive_buffer", "maybe_extract_at_most")
    ):
        return False
    received = _take_buffered(machine)
    machine.receive_data(b"0\r\n\r\n")
    end = machine.next_event()
    return received == b"5\r\nhel" and isinstance(end, h11.EndOfMessage) and machine.their_state is h11.DONE


def _nested_attribute(start: Any, *names: str) -> Any:
    """What these names lead to, or None."""
    for name in names:
        start = getattr(start, name, None)
    return start
