"""The HTTP/1.1 that the demo's server speaks: requests, errors, and answers as streams of events."""

import asyncio
import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from desktop_agent.providers.demo.script import Break, Call, ReceivedRequest, Say, Script, Step, Think, split_pieces
from desktop_agent.types.providers import Dialect

_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    413: "request_too_large",
    500: "api_error",
}
_GEMINI_STATUSES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 500: "INTERNAL"}


class RequestError(Exception):
    """A request that gets an error status. `code` is a word for programs, if the dialect has one."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status = HTTPStatus(status)
        self.code = code


def error_body(refusal: RequestError, dialect: Dialect) -> dict[str, Any]:
    """Return the body of an error response in this dialect."""
    message, status = str(refusal), int(refusal.status)
    match dialect:
        case "anthropic":
            error = {"type": _ANTHROPIC_TYPES.get(status, "invalid_request_error"), "message": message}
            return {"type": "error", "error": error, "request_id": new_request_id()}
        case "gemini":
            return {
                "error": {
                    "code": status,
                    "message": message,
                    "status": _GEMINI_STATUSES.get(status, "INVALID_ARGUMENT"),
                }
            }
        case "openai-chat" | "openai-responses":
            kind = "server_error" if status >= 500 else "invalid_request_error"
            return {"error": {"message": message, "type": kind, "param": None, "code": refusal.code}}


def new_request_id() -> str:
    """Return an id as vendors give each request."""
    return f"req_{secrets.token_hex(12)}"


HEAD_LIMIT = 64 * 1024
# Pictures come as base64 inside the body.
BODY_LIMIT = 256_000_000


@dataclass(frozen=True, slots=True)
class Request:
    """One request. Header names are in lower case; `query` is what follows the question mark."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes = field(repr=False)


async def read_request(reader: asyncio.StreamReader, begun: bytes) -> Request | None:
    """Return the next request of a connection, or None if the client has closed it. Raises RequestError.

    `begun` is what was already read of it.
    """
    try:
        head = begun + await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError:
        raise RequestError(431, "The head is too long.") from None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise RequestError(400, "This is not an HTTP/1.1 request.")
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    try:
        body = await reader.readexactly(_content_length(headers))
    except asyncio.IncompleteReadError:
        return None
    path, _, query = words[1].partition("?")
    return Request(words[0], path, query, headers, body)


def _content_length(headers: dict[str, str]) -> int:
    if "transfer-encoding" in headers:
        raise RequestError(411, "Send the body with a Content-Length.")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise RequestError(400, "The Content-Length is not a number.")
    if int(length) > BODY_LIMIT:
        raise RequestError(413, "The body is too large.")
    return int(length)


def json_response(value: Any, status: HTTPStatus = HTTPStatus.OK, *, last: bool = False) -> bytes:
    """Return a whole response. `last`: the connection is closed after it."""
    body = json.dumps(value).encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n{_request_id_headers()}"
        f"Content-Length: {len(body)}\r\n"
    )
    return (head + ("Connection: close\r\n" if last else "") + "\r\n").encode() + body


STREAM_END = b"0\r\n\r\n"


def stream_head() -> bytes:
    """Return the head of an event stream."""
    return (
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
        f"{_request_id_headers()}Transfer-Encoding: chunked\r\n\r\n"
    ).encode()


def stream_chunk(data: bytes) -> bytes:
    """Return one server-sent event as one chunk of the body."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _request_id_headers() -> str:
    """Return the id of the request under OpenAI's name and under Anthropic's."""
    request_id = new_request_id()
    return f"x-request-id: {request_id}\r\nrequest-id: {request_id}\r\n"


@dataclass(frozen=True, slots=True)
class TimedFrame:
    """One server-sent event as it is sent, and the seconds to wait before it."""

    data: bytes
    pause: float = 0.0


@dataclass
class AnswerWriter(ABC):
    """Writes one answer. Token counts are counts of pieces: a script has no tokens."""

    question: ReceivedRequest
    script: Script

    def __post_init__(self) -> None:
        self.id = secrets.token_hex(12)

    @abstractmethod
    def frames(self) -> Iterator[TimedFrame]:
        """Yield everything that is sent; after a Break nothing more, not even the end mark."""

    @abstractmethod
    def full_answer(self) -> Any:
        """Return the answer in one piece. Raises RequestError where the stream would break off."""

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(step for step in self.script if isinstance(step, Call))

    @property
    def written(self) -> int:
        """Return the number of pieces."""
        return sum(_piece_count(step) for step in self.script)

    @property
    def thought(self) -> int:
        """Return how many of the pieces are reasoning."""
        return sum(_piece_count(step) for step in self.script if isinstance(step, Think))

    def require_unbroken(self) -> None:
        """Raise RequestError where the stream would break off."""
        broken = next((step for step in self.script if isinstance(step, Break)), None)
        if broken is not None:
            raise RequestError(500, broken.message, "demo_error")


def sse_event(value: dict[str, Any], pause: float = 0.0, *, named: bool = False, end: str = "\n") -> TimedFrame:
    """Return an event with this data; `named`: with its type as the event's name; `end` ends its lines."""
    head = f"event: {value['type']}{end}" if named else ""
    return TimedFrame(
        f"{head}data: {json.dumps(value, ensure_ascii=False)}{end}{end}".encode("utf-8", "replace"), pause
    )


def _piece_count(step: Step) -> int:
    match step:
        case Think() | Say():
            return sum(1 for _ in split_pieces(step.text))
        case Call():
            return sum(1 for _ in split_pieces(step.arguments_json))
        case Break():
            return 0
