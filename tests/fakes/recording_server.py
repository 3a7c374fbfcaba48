"""The demo's server with a record of each request. It notices at once that a client has disconnected."""

import asyncio
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

from desktop_agent.providers.demo.chat_completions import ChatWriter, TimedFrame, answer_request
from desktop_agent.providers.demo.http import Request
from desktop_agent.providers.demo.scripted_model import ReceivedRequest
from desktop_agent.providers.demo.server import AnswerRequest, DemoServer


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


_record: ContextVar[RequestRecord] = ContextVar("_record")


class RecordingServer(DemoServer):
    """`on_disconnect` is called on the loop when a client disconnects before its answer has ended."""

    def __init__(
        self,
        speed: float = 1.0,
        on_disconnect: Callable[[RequestRecord], None] | None = None,
        answer: AnswerRequest = answer_request,
    ) -> None:
        async def recorded(request: Request) -> Any:
            response = await answer(request)
            if isinstance(response, ChatWriter):
                _record.get().question = response.question
            return response

        super().__init__(speed, recorded)
        self.on_disconnect = on_disconnect
        self.last_disconnect_at: float | None = None
        self._records: list[RequestRecord] = []

    @property
    def connections(self) -> tuple[RequestRecord, ...]:
        """All requests, oldest first."""
        return tuple(self._records)

    async def _handle(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        record = RequestRecord(request.method, request.path, time.monotonic())
        self._records.append(record)
        _record.set(record)
        producing = asyncio.create_task(super()._handle(request, reader, writer))
        watching = asyncio.create_task(_until_closed(reader))
        try:
            await asyncio.wait({producing, watching}, return_when=asyncio.FIRST_COMPLETED)
            if producing.done() and not isinstance(producing.exception(), ConnectionError):
                record.state = "finished"
                producing.result()
                return
            record.state = "disconnected"
            self.last_disconnect_at = time.monotonic()
        finally:
            record.ended_at = self.last_disconnect_at if record.state == "disconnected" else time.monotonic()
            producing.cancel()
            watching.cancel()
            await asyncio.gather(producing, watching, return_exceptions=True)
        if self.on_disconnect is not None:
            self.on_disconnect(record)
        raise ConnectionResetError

    async def _send_frame(self, frame: TimedFrame, writer: asyncio.StreamWriter) -> None:
        await super()._send_frame(frame, writer)
        _record.get().frames_sent += 1


async def _until_closed(reader: asyncio.StreamReader) -> None:
    while not reader.at_eof() and reader.exception() is None:
        await asyncio.sleep(0.001)
