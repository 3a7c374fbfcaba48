"""Servers that misbehave, on loopback, and a connector and a resolver that lead public names to them."""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Self

import httpcore

from desktop_agent.network.fetch import Connector

PUBLIC = "93.184.216.34"
Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Detour(httpcore.AsyncNetworkBackend):
    """Connects to loopback instead of a public address, and records the address that it was given."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(self, host, port, timeout=None, local_address=None, socket_options=None):  # noqa: ASYNC109
        self.told.append(host)
        return await self._inner.connect_tcp("127.0.0.1", port, timeout, local_address, socket_options)

    async def connect_unix_socket(self, path, timeout=None, socket_options=None):  # noqa: ASYNC109
        raise AssertionError("nobody asks for this")

    async def sleep(self, seconds):
        await asyncio.sleep(seconds)


class Names:
    """A resolver. The table has the addresses of each name at the first lookup, the second, and so on."""

    def __init__(self, table: Mapping[str, Sequence[Sequence[str]]] | None = None) -> None:
        self.asked: list[str] = []
        self._table = table or {}

    async def __call__(self, host: str, port: int) -> list[str]:
        answers = self._table.get(host, [[PUBLIC]])
        self.asked.append(host)
        return list(answers[min(self.asked.count(host), len(answers)) - 1])


def way_of(names: Names | None = None, detour: Detour | None = None) -> Connector:
    return Connector(names or Names(), detour or Detour())


class RawServer:
    """Reads the request of each connection, then lets a function write whatever it likes."""

    def __init__(self, script: Script, context: ssl.SSLContext | None = None) -> None:
        self._script = script
        self._context = context
        self._tasks: set[asyncio.Task[None]] = set()
        self.requests: list[bytes] = []
        self.disconnected = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._context)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def url(self, host: str = "site.example", path: str = "/") -> str:
        return f"http://{host}:{self._server.sockets[0].getsockname()[1]}{path}"

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.requests.append(await reader.readuntil(b"\r\n\r\n"))
            await self._script(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.disconnected.set()
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


def sending(*pieces: bytes) -> Script:
    async def script(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()

    return script


def answer(body: bytes = b"", status: str = "200 OK", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def endless(head: bytes, piece: bytes, pause: float = 0.0) -> Script:
    async def script(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)

    return script
