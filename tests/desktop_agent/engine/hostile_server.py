"""A hostile model server: a real socket, and an endless answer that is made as it is read."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any, Self

from tests.desktop_agent.engine.enemy import FINE
from tests.fakes.http_server import chunk, sse

_HEAD = "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"

Written = AsyncIterator[bytes]


class HostileServer:
    """Writes what `answer` makes of each request (from 0), until it `is_tame`. `disconnects`: clients that hung up."""

    def __init__(self, answer: Callable[[int], Written], *, status: int = 200) -> None:
        self.answer = answer
        self.status = status
        self.is_tame = False
        self.requests = 0
        self.disconnects = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        # A small buffer: no more is made than the client reads. Connections inherit it from the listening socket.
        self._server.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16_000)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = next((line for line in head.split(b"\r\n") if line.startswith(b"content-length:")), b":0")
            await reader.readexactly(int(length.partition(b":")[2]))
            await self._write(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.disconnects += 1
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _write(self, writer: asyncio.StreamWriter) -> None:
        writer.transport.set_write_buffer_limits(high=0)
        status = 200 if self.is_tame else self.status
        kind = "text/event-stream" if status == 200 else "application/json"
        writer.write(_HEAD.format(status=status, kind=kind).encode())
        pieces = fine() if self.is_tame else self.answer(self.requests)
        self.requests += not self.is_tame
        async for piece in pieces:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()


async def fine() -> Written:
    yield sse(chunk({"content": FINE}), chunk({}, "stop"))


async def these(*pieces: bytes) -> Written:
    for piece in pieces:
        yield piece


async def repeated(make: Callable[[int], dict[str, Any]], together: int = 50) -> Written:
    """Yield chunks for ascending numbers, for ever, `together` in one write."""
    number = 0
    while True:
        yield b"".join(event(make(number + offset)) for offset in range(together))
        number += together


def event(data: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


def piece_of_call(arguments: str, index: int = 0, **more: Any) -> dict[str, Any]:
    """Return a chunk with a piece of a call; `more` may have its `id`, and the `name` of its function."""
    function = {"arguments": arguments, **({"name": more.pop("name")} if "name" in more else {})}
    return chunk({"tool_calls": [{"index": index, "function": function, **more}]})
