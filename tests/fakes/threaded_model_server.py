"""A model server on loopback in threads of its own, for a program with its window in another process.

with ModelServer(Story(words("one two three"))) as server:
    ... desktop-agent --base-url server.url --model test-model
server.asked[0].json, server.streams[0].gone_at

At the end the posted bodies are checked with the vendors' own types (tests/desktop_agent/providers/sdk_types.py).
"""

import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any, Self

MODEL = "test-model"
JSON_HEADERS = {"content-type": "application/json"}


@dataclass(frozen=True)
class Asked:
    """A request; `at` is the moment when it came, on the monotonic clock."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    at: float

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Plain:
    """A whole answer."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: JSON_HEADERS)


@dataclass(frozen=True)
class Story:
    """A streamed answer, with `pace` seconds before each piece. Without `ends` the connection stays open."""

    pieces: Iterable[str]
    pace: float = 0.0
    ends: bool = True


@dataclass(frozen=True)
class Silence:
    """Accept the request and send no byte."""


Answer = Plain | Story | Silence


@dataclass
class Stream:
    """The record of a streamed answer; times are on the monotonic clock. `gone_at`: when the client disconnected."""

    sent: list[tuple[float, str]] = field(default_factory=list)
    gone_at: float | None = None
    ended: bool = False

    @property
    def text(self) -> str:
        return "".join(piece for _, piece in tuple(self.sent))

    def sent_by(self, moment: float) -> str:
        return "".join(piece for at, piece in tuple(self.sent) if at <= moment)


def numbered(most: int = 100_000) -> Iterable[str]:
    """Words that are all different, so that a lost one is noticed."""
    return (f"w{number} " for number in range(most))


def error(status: int, message: str, code: str) -> Plain:
    """An error as OpenAI's servers write it."""
    return Plain(json.dumps({"error": {"message": message, "type": code, "code": code}}).encode(), status)


class ModelServer:
    """Speaks Chat Completions. `answer` is for prompts, `listing` for the list of models, by default one model."""

    def __init__(
        self, answer: Answer | Callable[[Asked], Answer], listing: Answer | None = None, port: int = 0
    ) -> None:
        self.asked: list[Asked] = []
        self.streams: list[Stream] = []
        self.answer = answer
        self._port = port
        self._listing = listing or Plain(json.dumps({"object": "list", "data": [{"id": MODEL}]}).encode())
        self._closing = threading.Event()

    def __enter__(self) -> Self:
        outer = self

        class Handler(StreamRequestHandler):
            def handle(self) -> None:
                try:
                    while outer._answer_one(self.rfile, self.connection):
                        pass
                except OSError:
                    pass

        class Server(ThreadingTCPServer):
            allow_reuse_address = True

        self._server = Server(("127.0.0.1", self._port), Handler)
        self._connections: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="model server")
        self._thread.start()
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        for connection in tuple(self._connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        self._server.server_close()
        if failure is None and self.prompts:
            # Imported here: the SDKs take more than a second to load.
            from tests.desktop_agent.providers.sdk_types import judge_bytes

            faults = {line for prompt in self.prompts for line in judge_bytes(prompt.path, prompt.body, prompt.headers)}
            assert not faults, "the SDK's own types refuse what was sent:\n  " + "\n  ".join(sorted(faults))

    @property
    def url(self) -> str:
        """The base URL as a person enters it."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return self._server.server_address[1]

    @property
    def prompts(self) -> list[Asked]:
        """The requests to the model, without listings."""
        return [request for request in self.asked if request.method == "POST"]

    def _answer_one(self, incoming: Any, connection: socket.socket) -> bool:
        self._connections.add(connection)
        request = _read(incoming)
        if request is None:
            return False
        self.asked.append(request)
        answer = self._listing if request.method == "GET" else self.answer
        if callable(answer):
            answer = answer(request)
        match answer:
            case Plain():
                head = {**answer.headers, "content-length": str(len(answer.body))}
                connection.sendall(_head(answer.status, head) + answer.body)
                return True
            case Story():
                return self._stream(answer, connection)
            case Silence():
                self._wait_for_disconnect(connection, None)
                return False

    def _stream(self, story: Story, connection: socket.socket) -> bool:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = Stream()
        self.streams.append(stream)
        try:
            connection.sendall(_head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"}))
            for piece in story.pieces:
                if self._wait_for_disconnect(connection, story.pace):
                    stream.gone_at = time.monotonic()
                    return False
                # Before sending: afterwards the client may be quicker than this thread.
                stream.sent.append((time.monotonic(), piece))
                connection.sendall(_chunk({"content": piece}))
            if not story.ends:
                self._wait_for_disconnect(connection, None)
                stream.gone_at = time.monotonic()
                return False
            connection.sendall(_chunk({}, "stop") + _framed(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        except OSError:
            stream.gone_at = stream.gone_at or time.monotonic()
            return False
        stream.ended = True
        return True

    def _wait_for_disconnect(self, connection: socket.socket, seconds: float | None) -> bool:
        """Whether the client disconnects within these seconds; None waits until it does or the server ends."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while not self._closing.is_set():
            timeout = 0.1 if deadline is None else max(0.0, min(0.1, deadline - time.monotonic()))
            readable, _, _ = select.select([connection], [], [], timeout)
            if readable:
                try:
                    return not connection.recv(1, socket.MSG_PEEK)
                except OSError:
                    return True
            if deadline is not None and time.monotonic() >= deadline:
                return False
        return True


_ids = count()


def _chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    data = {"id": f"c{next(_ids)}", "object": "chat.completion.chunk", "model": MODEL, "choices": [choice]}
    return _framed(f"data: {json.dumps(data)}\n\n".encode())


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Said", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1")


def _read(incoming: Any) -> Asked | None:
    first = incoming.readline().decode("latin-1").split()
    if len(first) < 2:
        return None
    headers: dict[str, str] = {}
    while line := incoming.readline().decode("latin-1").strip():
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    body = incoming.read(int(headers.get("content-length", "0")))
    return Asked(first[0], first[1], headers, body, time.monotonic())


def pieces_of(text: str) -> Sequence[str]:
    """A text in pieces of a few characters."""
    return [text[start : start + 4] for start in range(0, len(text), 4)]
