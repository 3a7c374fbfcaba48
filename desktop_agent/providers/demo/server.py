"""The demo's server: a scripted model on one loopback port, spoken to like any other server."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from desktop_agent.providers.demo.chat_completions import ChatWriter, answer_request
from desktop_agent.providers.demo.http import (
    HEAD_LIMIT,
    STREAM_END,
    Request,
    RequestError,
    json_response,
    read_request,
    stream_chunk,
    stream_head,
)
from desktop_agent.providers.demo.script import Json, ReceivedRequest

AnswerRequest: TypeAlias = Callable[[Request], Awaitable[ChatWriter | Json]]

# Old records are forgotten, so that a long session does not grow.
MAX_RECORDS = 100


@dataclass(eq=False, slots=True)
class RequestRecord:
    """The record of one request. Times are `time.monotonic()`; `frames_sent` counts events of a stream.

    `question` is the parsed request.
    """

    method: str
    path: str
    started_at: float
    frames_sent: int = 0
    state: Literal["answering", "finished", "disconnected"] = "answering"
    ended_at: float | None = None
    question: ReceivedRequest | None = None


class DemoServer:
    """A scripted model on 127.0.0.1, on a port that the system chooses.

    `speed` divides all pauses (`math.inf`: none). `on_disconnect` is called on the loop when a client disconnects in
    the middle of a stream, which ends it. `answer` finds the answer to a request, or raises RequestError.
    """

    def __init__(
        self,
        speed: float = 1.0,
        on_disconnect: Callable[[RequestRecord], None] | None = None,
        answer: AnswerRequest = answer_request,
    ) -> None:
        self.on_disconnect = on_disconnect
        self._find_answer = answer
        self.last_disconnect_at: float | None = None
        self._speed = speed
        self._records: deque[RequestRecord] = deque(maxlen=MAX_RECORDS)
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def connections(self) -> tuple[RequestRecord, ...]:
        """Return the latest requests, oldest first."""
        return tuple(self._records)

    async def start(self) -> str:
        """Listen, and return the base URL. Raises OSError if the system has no free port."""
        if self._server is None:
            self._server = await asyncio.start_server(self._on_connect, "127.0.0.1", 0, limit=HEAD_LIMIT)
        port = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}/v1"

    async def aclose(self) -> None:
        """Stop listening and end all connections. Idempotent."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await server.wait_closed()

    def _on_connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A client may disconnect at any moment.
        with contextlib.suppress(ConnectionError):
            try:
                await self._handle_requests(reader, writer)
            except RequestError as refusal:
                writer.write(json_response(refusal.body(), refusal.status, last=True))
                await writer.drain()
            finally:
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()

    async def _handle_requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        begun = b""
        while (request := await read_request(reader, begun)) is not None:
            record = RequestRecord(request.method, request.path, time.monotonic())
            self._records.append(record)
            try:
                begun = await self._answer(request, record, reader, writer)
            finally:
                record.ended_at = record.ended_at or time.monotonic()
            if record.state == "disconnected":
                return
            record.state = "finished"

    async def _answer(
        self, request: Request, record: RequestRecord, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes:
        """Answer one request; returns what was already read of the next."""
        try:
            answer = await self._find_answer(request)
            if isinstance(answer, ChatWriter):
                record.question = answer.question
                if answer.question.stream:
                    return await self._watched_stream(answer, record, reader, writer)
                answer = answer.full_answer()
            writer.write(json_response(answer))
        except RequestError as refusal:
            writer.write(json_response(refusal.body(), refusal.status))
        await writer.drain()
        return b""

    async def _watched_stream(
        self, answer: ChatWriter, record: RequestRecord, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes:
        """Stream, and stop at once when the client disconnects, which reading from it shows."""
        producing = asyncio.ensure_future(self._stream(answer, record, writer))
        watching = asyncio.ensure_future(_wait_for_byte(reader))
        try:
            await asyncio.wait({producing, watching}, return_when=asyncio.FIRST_COMPLETED)
            if watching.done() and watching.result():
                # The beginning of the next request, sent before this answer's end.
                await asyncio.wait({producing})
            finished = producing.done() and producing.result()
        finally:
            producing.cancel()
            watching.cancel()
            await asyncio.gather(producing, watching, return_exceptions=True)
        if not finished:
            self._on_disconnected(record)
            return b""
        return b"" if watching.cancelled() else watching.result()

    async def _stream(self, answer: ChatWriter, record: RequestRecord, writer: asyncio.StreamWriter) -> bool:
        """Send every frame at its time; False if the connection broke."""
        try:
            writer.write(stream_head())
            for frame in answer.frames():
                await asyncio.sleep(frame.pause / self._speed)
                writer.write(stream_chunk(frame.data))
                await writer.drain()
                record.frames_sent += 1
            writer.write(STREAM_END)
            await writer.drain()
        except ConnectionError:
            return False
        return True

    def _on_disconnected(self, record: RequestRecord) -> None:
        record.state = "disconnected"
        record.ended_at = self.last_disconnect_at = time.monotonic()
        if self.on_disconnect is not None:
            self.on_disconnect(record)


async def _wait_for_byte(reader: asyncio.StreamReader) -> bytes:
    """Wait until the client sends something; no bytes mean that it has disconnected."""
    try:
        return await reader.read(1)
    except ConnectionError:
        return b""
