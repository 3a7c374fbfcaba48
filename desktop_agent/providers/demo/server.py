"""The demo's server: a scripted model on one loopback port, used like any other server."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from desktop_agent.providers.demo.chat_completions import ChatWriter, TimedFrame, answer_request
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
from desktop_agent.providers.demo.scripted_model import Json

AnswerRequest: TypeAlias = Callable[[Request], Awaitable[ChatWriter | Json]]


class DemoServer:
    """A scripted model on 127.0.0.1, on a port that the system chooses.

    `speed` divides all pauses (`math.inf`: none). `answer` finds the answer to a request, or raises RequestError.
    """

    def __init__(self, speed: float = 1.0, answer: AnswerRequest = answer_request) -> None:
        self._speed = speed
        self._find_answer = answer
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        """Listen, and return the base URL. Raises OSError if the system has no free port."""
        if self._server is None:
            # Serving starts separately: asyncio waits there, and a server whose start is cancelled could not be closed.
            self._server = await asyncio.start_server(
                self._on_connect, "127.0.0.1", 0, limit=HEAD_LIMIT, start_serving=False
            )
        await self._server.start_serving()
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
                while (request := await read_request(reader)) is not None:
                    await self._handle(request, reader, writer)
            except RequestError as refusal:
                writer.write(json_response(refusal.body(), refusal.status, last=True))
                await writer.drain()
            finally:
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()

    async def _handle(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answer = await self._find_answer(request)
            if isinstance(answer, ChatWriter):
                if answer.question.stream:
                    await self._stream(answer, reader, writer)
                    return
                answer = answer.full_answer()
            writer.write(json_response(answer))
        except RequestError as refusal:
            writer.write(json_response(refusal.body(), refusal.status))
        await writer.drain()

    async def _stream(self, answer: ChatWriter, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send every frame at its time. Raises ConnectionError when the client has disconnected."""
        writer.write(stream_head())
        for frame in answer.frames():
            await asyncio.sleep(frame.pause / self._speed)
            if reader.at_eof():
                raise ConnectionResetError
            await self._send_frame(frame, writer)
        writer.write(STREAM_END)
        await writer.drain()

    async def _send_frame(self, frame: TimedFrame, writer: asyncio.StreamWriter) -> None:
        writer.write(stream_chunk(frame.data))
        await writer.drain()
