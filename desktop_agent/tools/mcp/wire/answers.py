"""Answers over HTTP, whole or as events, such that the library can read them, and at once."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import httpx2

from desktop_agent.tools.mcp.wire.messages import read

_LARGE = 50_000
_MOST_LINES = 10_000


def _readable(data: bytes) -> bytes:
    """The same where it can be read; of a batch, which the library knows nothing of, the first answer."""
    found = read(data)
    if found.is_whole or not found.messages:
        return data
    first = next((each for each in found.messages if not hasattr(each, "method")), found.messages[0])
    return first.model_dump_json(by_alias=True, exclude_unset=True).encode("utf-8", "replace")


async def _made_readable(data: bytes) -> bytes:
    return _readable(data) if len(data) < _LARGE else await asyncio.to_thread(_readable, data)


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
        yield await _made_readable(b"".join(pieces))

    async def aclose(self) -> None:
        """As the library wants it."""
        await self._inner.aclose()


class EventStream(httpx2.AsyncByteStream):
    """Events (https://html.spec.whatwg.org/multipage/server-sent-events.html), each of at most so many bytes."""

    def __init__(self, inner: httpx2.AsyncByteStream, most: int) -> None:
        self._inner = inner
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Raises ReadError where one is larger."""
        pending: list[bytes] = []
        size, lines = 0, 0
        async with aclosing(_one_line_end(self._inner)) as pieces:
            async for piece in pieces:
                *whole, rest = _parts(pending, piece)
                for each in whole:
                    yield await _event(each) + b"\n\n"
                if whole:
                    pending, size, lines = [], 0, 0
                pending.append(rest)
                size, lines = size + len(rest), lines + rest.count(b"\n")
                if size > self._most or lines > _MOST_LINES:
                    raise _too_large(self._most)
        if pending:
            yield await _event(b"".join(pending))

    async def aclose(self) -> None:
        """As the library wants it."""
        await self._inner.aclose()


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


async def _event(event: bytes) -> bytes:
    lines = event.split(b"\n")
    data = b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
    if not data:
        return event
    readable = await _made_readable(data)
    if readable is data:
        return event
    others = [line for line in lines if not line.startswith(b"data")]
    return b"\n".join([*others, b"data: " + readable])


def _too_large(most: int) -> httpx2.ReadError:
    return httpx2.ReadError(f"the answer is larger than {most:,} bytes, or has too many lines")
