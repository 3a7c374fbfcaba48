"""As much of HTTP/1.1 (RFC 9112) as one chat client on loopback needs: requests with a length, answers in chunks."""

import asyncio
import json
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from desktop_agent.providers.demo.refusals import RequestError, new_request_id

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
    """The next request of a connection, or None when the client has closed it. Raises Refusal.

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
    given = headers.get("content-length", "0")
    if not (given.isascii() and given.isdigit()):
        raise RequestError(400, "The Content-Length is not a number.")
    if int(given) > BODY_LIMIT:
        raise RequestError(413, "The body is too large.")
    return int(given)


def json_response(value: Any, status: HTTPStatus = HTTPStatus.OK, *, last: bool = False) -> bytes:
    """A whole answer. `last`: the connection is closed after it."""
    body = json.dumps(value).encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n{_request_id_headers()}"
        f"Content-Length: {len(body)}\r\n"
    )
    return (head + ("Connection: close\r\n" if last else "") + "\r\n").encode() + body


STREAM_END = b"0\r\n\r\n"


def stream_head() -> bytes:
    """What stands before the events."""
    return (
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
        f"{_request_id_headers()}Transfer-Encoding: chunked\r\n\r\n"
    ).encode()


def stream_chunk(data: bytes) -> bytes:
    """One server-sent event, written out, as one chunk of the body."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _request_id_headers() -> str:
    """The id of the request, under OpenAI's name and under Anthropic's."""
    request_id = new_request_id()
    return f"x-request-id: {request_id}\r\nrequest-id: {request_id}\r\n"
