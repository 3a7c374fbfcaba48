"""Answers over HTTP, whole or as events, such that the library can read them, and at once."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing

import httpx2

from desktop_agent.tools.mcp.wire.messages import Read, read
from desktop_agent.tools.mcp.wire.pace import Pace

_LARGE = 4_000
_MOST_LINES = 10_000
_LONGEST_STRAY = 50_000


async def _read(data: bytes) -> Read:
    return read(data) if len(data) < _LARGE else await asyncio.to_thread(read, data)


def _readable(data: bytes, found: Read) -> bytes:
    """The same where it can be read; of a batch, which the library knows nothing of, the first answer."""
    if found.is_whole or not found.messages:
        return data
    first = next((each for each in found.messages if not hasattr(each, "method")), found.messages[0])
    return first.model_dump_json(by_alias=True, exclude_unset=True).encode("utf-8", "replace")


class WholeAnswer(httpx2.AsyncByteStream):
    """One message, of at most so many bytes."""

    def __init__(self, inner: httpx2.AsyncByteStream, most: int) -> None:
        self._inner = inner
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Raises ReadError where it is larger."""
        pieces: list[bytes] = []
        left = self._most
        async for piece in self._inner:
            left -= len(piece)
            if left < 0:
                raise _too_large(self._most)
            pieces.append(piece)
        data = b"".join(pieces)
        yield _readable(data, await _read(data))

    async def aclose(self) -> None:
        """As the library wants it."""
        await self._inner.aclose()


class EventStream(httpx2.AsyncByteStream):
    """Events (https://html.spec.whatwg.org/multipage/server-sent-events.html), each of at most so many bytes.

    Those that are no message are told as `stray` and not passed on.
    """

    def __init__(self, inner: httpx2.AsyncByteStream, most: int, stray: Callable[[str], None] = lambda _: None) -> None:
        self._inner = inner
        self._most = most
        self._stray = stray
        self._pace = Pace()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Raises ReadError where one is larger."""
        pending: list[bytes] = []
        size, lines = 0, 0
        async with aclosing(_one_line_end(self._inner)) as pieces:
            async for piece in pieces:
                *whole, rest = _parts(pending, piece)
                for each in whole:
                    self._pace.begin()
                    if event := await self._event(each):
                        yield event + b"\n\n"
                    await self._pace.done()
                if whole:
                    pending, size, lines = [], 0, 0
                pending.append(rest)
                size, lines = size + len(rest), lines + rest.count(b"\n")
                if size > self._most or lines > _MOST_LINES:
                    raise _too_large(self._most)
        if pending:
            yield await self._event(b"".join(pending))

    async def aclose(self) -> None:
        """As the library wants it."""
        await self._inner.aclose()

    async def _event(self, event: bytes) -> bytes:
        lines = event.split(b"\n")
        data = b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
        if not data:
            # Nothing in it but comments says nothing; an id or a pause may be alone.
            return event if any(line.startswith((b"id", b"retry", b"data")) for line in lines) else b""
        found = await _read(data)
        if not found.messages:
            self._stray(data[:_LONGEST_STRAY].decode("utf-8", "replace"))
            return b""
        if found.is_whole:
            return event
        others = [line for line in lines if not line.startswith(b"data")]
        return b"\n".join([*others, b"data: " + _readable(data, found)])


def _parts(pending: list[bytes], piece: bytes) -> list[bytes]:
    """Events that are whole with this piece, and what is left; joined only then, as one may come in many pieces."""
    meets = piece.startswith(b"\n") and bool(pending) and pending[-1].endswith(b"\n")
    if meets or b"\n\n" in piece:
        return b"".join([*pending, piece]).split(b"\n\n")
    return [piece]


async def _one_line_end(inner: httpx2.AsyncByteStream) -> AsyncGenerator[bytes]:
    held = b""
    async for piece in inner:
        text = held + piece
        # The second half of a line end may come with the next piece.
        held = b"\r" if text.endswith(b"\r") else b""
        text = text[:-1] if held else text
        if text:
            yield text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if held:
        yield b"\n"


def _too_large(most: int) -> httpx2.ReadError:
    return httpx2.ReadError(f"the answer is larger than {most:,} bytes, or has too many lines")
