"""The HTTP/1.1 that the demo's server speaks: requests, errors, and answers as streams of events."""

import asyncio
import json
import secrets
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

HEAD_LIMIT = 64 * 1024
# Pictures come as base64 inside the body.
BODY_LIMIT = 256_000_000
STREAM_END = b"0\r\n\r\n"


class RequestError(Exception):
    """A request that gets an error status. `code` is a word for programs."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status = HTTPStatus(status)
        self.code = code

    def body(self) -> dict[str, Any]:
        """Return the body of the error response."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return {"error": {"message": str(self), "type": kind, "param": None, "code": self.code}}


@dataclass(frozen=True, slots=True)
class Request:
    """One request. Header names are in lower case; `query` is what follows the question mark."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes = field(repr=False)


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """Return the next request of a connection, or None if the client has closed it. Raises RequestError."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
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
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n{_request_id_header()}"
        f"Content-Length: {len(body)}\r\n"
    )
    return (head + ("Connection: close\r\n" if last else "") + "\r\n").encode() + body


def stream_head() -> bytes:
    """Return the head of an event stream."""
    return (
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
        f"{_request_id_header()}Transfer-Encoding: chunked\r\n\r\n"
    ).encode()


def stream_chunk(data: bytes) -> bytes:
    """Return one server-sent event as one chunk of the body."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _request_id_header() -> str:
    return f"x-request-id: req_{secrets.token_hex(12)}\r\n"
