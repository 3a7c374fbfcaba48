"""As much of HTTP/1.1 (RFC 9112) as one chat client on loopback needs: requests with a length, answers in chunks."""

import asyncio
import json
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

HEAD_LIMIT = 64 * 1024
# Pictures come as base64 inside the body.
BODY_LIMIT = 256_000_000


class Unanswerable(Exception):
    """A request that gets an error status; the connection is closed after it."""

    def __init__(self, status: HTTPStatus, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class Request:
    """One request. Header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = field(repr=False)


async def read_request(reader: asyncio.StreamReader, begun: bytes) -> Request | None:
    """The next request of a connection, or None when the client has closed it. Raises Unanswerable.

    `begun` is what was already read of it.
    """
    try:
        head = begun + await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError:
        raise Unanswerable(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "The head is too long.") from None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise Unanswerable(HTTPStatus.BAD_REQUEST, "This is not an HTTP/1.1 request.")
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    try:
        body = await reader.readexactly(_length(headers))
    except asyncio.IncompleteReadError:
        return None
    return Request(words[0], words[1].partition("?")[0], headers, body)


def _length(headers: dict[str, str]) -> int:
    if "transfer-encoding" in headers:
        raise Unanswerable(HTTPStatus.LENGTH_REQUIRED, "Send the body with a Content-Length.")
    given = headers.get("content-length", "0")
    if not (given.isascii() and given.isdigit()):
        raise Unanswerable(HTTPStatus.BAD_REQUEST, "The Content-Length is not a number.")
    if int(given) > BODY_LIMIT:
        raise Unanswerable(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The body is too large.")
    return int(given)


def json_answer(value: Any, status: HTTPStatus = HTTPStatus.OK, *, last: bool = False) -> bytes:
    """A whole answer. `last`: the connection is closed after it."""
    body = json.dumps(value).encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    )
    return (head + ("Connection: close\r\n" if last else "") + "\r\n").encode() + body


def error_answer(error: Unanswerable, *, last: bool = False) -> bytes:
    """An error in the shape of the Chat Completions API."""
    return json_answer({"error": error_body(str(error), error.code)}, error.status, last=last)


def error_body(message: str, code: str | None, kind: str = "invalid_request_error") -> dict[str, Any]:
    """What stands under the key `error`."""
    return {"message": message, "type": kind, "param": None, "code": code}


STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
STREAM_END = b"0\r\n\r\n"


def stream_part(data: bytes) -> bytes:
    """One server-sent event as one chunk of the body."""
    event = b"data: " + data + b"\n\n"
    return f"{len(event):x}\r\n".encode() + event + b"\r\n"
