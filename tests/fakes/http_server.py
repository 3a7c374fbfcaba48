"""A small HTTP/1.1 server on loopback: sends given bytes in given pieces, and records the requests.

    async with Loopback(Reply(b"...")) as server:
        ... OpenAIChat(base_url=server.url, ...)
    server.requests[0].json["model"]

Replies are used in order, the last one again and again; or a function of the request chooses. At the end the posted
bodies are checked with the vendors' own types (sdk_types.py); `judged=False` is for tests that send wrong ones.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self


@dataclass(frozen=True)
class Reply:
    """One answer. `hold` keeps the body open after the last piece until the event is set. Then `late` is sent, or with
    `cut` the connection breaks off.
    """

    body: bytes | Sequence[bytes] = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    framing: Literal["chunked", "length", "close"] = "chunked"
    cut: bool = False
    hold: asyncio.Event | None = None
    late: bytes = b""

    @property
    def pieces(self) -> list[bytes]:
        return [self.body] if isinstance(self.body, bytes) else list(self.body)


@dataclass(frozen=True)
class Request:
    """What a client sent. `connection` counts connections from 0."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def sse(*chunks: Any, done: bool = True) -> bytes:
    """Chunks as an event stream; strings are sent as they are."""
    texts = [chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks]
    return "".join(f"data: {text}\n\n" for text in [*texts, *(["[DONE]"] if done else [])]).encode()


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """One chunk of Chat Completions."""
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}


class Loopback:
    """The server; `async with` starts and stops it."""

    def __init__(self, *replies: Reply, choose: Callable[[Request], Reply] | None = None, judged: bool = True) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        self.disconnected = asyncio.Event()
        self.asked = asyncio.Event()
        self._replies = list(replies)
        self._choose = choose
        self._judged = judged
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self.loop = asyncio.get_running_loop()
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    async def __aexit__(self, failure: type[BaseException] | None = None, *_: object) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()
        if self._judged and failure is None:
            self._judge()

    def _judge(self) -> None:
        posts = [request for request in self.requests if request.method == "POST"]
        if posts:
            # Imported here: the SDKs take more than a second to load.
            from tests.desktop_agent.providers.sdk_types import judge_bytes

            faults = {
                f"{post.path} {line}" for post in posts for line in judge_bytes(post.path, post.body, post.headers)
            }
            assert not faults, "the SDK's own types refuse what was sent:\n  " + "\n  ".join(sorted(faults))

    @property
    def port(self) -> int:
        return self._server.sockets[0].getsockname()[1]

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The base URL as a person enters it."""
        return f"{self.root}/v1"

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer, self.connections))
        self.connections += 1
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int) -> None:
        try:
            while True:
                request = await _read(reader, connection)
                self.requests.append(request)
                self.asked.set()
                reply = self._choose(request) if self._choose else self._next()
                if not await self._answer(reply, reader, writer):
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            self.disconnected.set()
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    def _next(self) -> Reply:
        return self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]

    async def _answer(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Send the reply; return whether the connection can serve another request."""
        headers = dict(reply.headers)
        if reply.framing == "chunked":
            headers["transfer-encoding"] = "chunked"
        elif reply.framing == "length":
            headers["content-length"] = str(sum(map(len, reply.pieces)) + len(reply.late) + (9 if reply.cut else 0))
        lines = [f"HTTP/1.1 {reply.status} X", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        writer.write("\r\n".join(lines).encode("latin-1"))
        for piece in reply.pieces:
            if piece:
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece) if reply.framing == "chunked" else piece)
                await writer.drain()
                # One turn of the loop, so that the client reads the pieces one by one.
                await asyncio.sleep(0)
        if reply.hold is not None and not await self._wait_for_hold(reply.hold, reader):
            return False
        if reply.cut:
            return False
        if reply.late:
            writer.write(b"%x\r\n%s\r\n" % (len(reply.late), reply.late) if reply.framing == "chunked" else reply.late)
        if reply.framing == "chunked":
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        return reply.framing != "close"

    async def _wait_for_hold(self, hold: asyncio.Event, reader: asyncio.StreamReader) -> bool:
        """Wait until `hold` is set; False if the client disconnects first."""
        released, disconnected = asyncio.ensure_future(hold.wait()), asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({released, disconnected}, return_when=asyncio.FIRST_COMPLETED)
            if disconnected.done():
                self.disconnected.set()
                return False
            return True
        finally:
            released.cancel()
            disconnected.cancel()
            await asyncio.gather(released, disconnected, return_exceptions=True)


async def _read(reader: asyncio.StreamReader, connection: int) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    method, path, _ = first.split(" ")
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, body, connection)
