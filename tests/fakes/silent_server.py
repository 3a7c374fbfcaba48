"""A server that begins an answer, pauses, and then goes on; and how the provider's request ends.

async with quiet_server(Pause(1.5, every=0.1, sign=PING)) as port:
    assert await heard("gemini", port, idle=0.5) == "done"
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pydantic import SecretStr

from desktop_agent.providers.provider import make_provider
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.types.errors import ProviderError
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.providers import ModelRequest, ProviderConfig, Timeouts
from tests.fakes.vendor_streams import ROOTS, dialect_of, events

SIGNS_OF_LIFE = {
    "comment": b": keep-alive\n\n",
    "ping": b'event: ping\ndata: {"type": "ping"}\n\n',
    "empty data": b"data:\n\n",
    "half a line": b":",
}
"""What servers send to keep the connection alive while there is no content."""

_PIECES = 4
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@dataclass(frozen=True)
class Pause:
    """A pause of so many seconds without content; meanwhile `sign`, if not empty, is sent every `every` seconds.

    It comes when some text was sent already, or with `at_start` before the first event.
    """

    seconds: float
    every: float = 1.0
    sign: bytes = b""
    at_start: bool = False


@asynccontextmanager
async def quiet_server(pause: Pause) -> AsyncGenerator[int, None]:
    """Serve, and yield the port. The server answers in the dialect of the request."""
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_answer(pause, reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def heard(dialect: str, port: int, idle: float | None = None, first_event: float | None = None) -> str:
    """Ask the server; return "done" for the whole answer, else the kind of the error. None: the default limits."""
    timeouts = Timeouts(first_event=first_event, **({} if idle is None else {"idle": idle}))
    http = HttpClient()
    provider = make_provider(dialect, f"http://127.0.0.1:{port}/{ROOTS[dialect]}", SecretStr("key"), http)
    request = ModelRequest("m", (Message.user("hi"),), config=ProviderConfig(timeouts=timeouts))
    pieces = 0
    try:
        async for event in provider.stream(request):
            pieces += isinstance(event, ContentDelta)
    except ProviderError as error:
        return error.kind
    finally:
        await http.aclose()
    return "done" if pieces == _PIECES else f"{pieces} of {_PIECES} pieces"


async def _answer(pause: Pause, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        wire = events(dialect_of(head.split(b" ")[1].decode()), _PIECES)
        middle = 0 if pause.at_start else max(index for index, event in enumerate(wire) if b"tok2" in event)
        writer.write(_HEAD + _chunks(*wire[:middle]))
        deadline = asyncio.get_running_loop().time() + pause.seconds
        while (remaining := deadline - asyncio.get_running_loop().time()) > 0:
            await asyncio.sleep(min(remaining, pause.every))
            if pause.sign:
                writer.write(_chunks(pause.sign))
                await writer.drain()
        ending = b"\n\n" if pause.sign and not pause.sign.endswith(b"\n") else b""
        writer.write(_chunks(*([ending] if ending else []), *wire[middle:]) + b"0\r\n\r\n")
        await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def _chunks(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
