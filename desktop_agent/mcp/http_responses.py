"""HTTP responses, bounded and repaired before the library reads them. Loaded late.

The library does not bound the body of a single message, and waits for a response with the id of its request: each body
knows that request, and whatever ends the body becomes a response to it.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from typing import cast

import httpx2
from mcp_types import CONNECTION_CLOSED, METHOD_NOT_FOUND, JSONRPCError, JSONRPCMessage, JSONRPCRequest, JSONRPCResponse

from desktop_agent.mcp.limits import (
    SERVER_FAILED,
    ParsedMessages,
    ReadPacer,
    error_response,
    parse_messages_by_size,
    unreadable_response,
    with_error_code,
)

_MAX_STRAY_LENGTH = 50_000
_BOM = b"\xef\xbb\xbf"
_PENDING_KEY = "desktop-agent/question"
_HTTP_BAD_REQUEST, _HTTP_NOT_FOUND = 400, 404


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """The request that a response belongs to. `request_id` None: no response is expected.

    `has_session`: the request named a session.
    """

    request_id: int | str | None = None
    has_session: bool = False


async def pending_request(request: httpx2.Request) -> PendingRequest:
    """Find it in what was sent, and keep it in the extensions: a request that follows a redirect has no body."""
    if _PENDING_KEY not in request.extensions:
        parsed = await parse_messages_by_size(request.content)
        request_id = next((message.id for message in parsed.messages if isinstance(message, JSONRPCRequest)), None)
        request.extensions[_PENDING_KEY] = PendingRequest(request_id, "mcp-session-id" in request.headers)
    return cast("PendingRequest", request.extensions[_PENDING_KEY])


class Body(httpx2.AsyncByteStream):
    """The body of a response: `chunks`, which are made of those of `inner`, which is closed with it."""

    def __init__(self, inner: httpx2.AsyncByteStream, chunks: AsyncIterator[bytes]) -> None:
        self._inner = inner
        self._chunks = chunks

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def aclose(self) -> None:
        """Close the connection."""
        await self._inner.aclose()


async def bound_size(inner: httpx2.AsyncByteStream, max_bytes: int) -> AsyncGenerator[bytes]:
    """Yield the chunks. Raises ReadError if they are larger."""
    remaining = max_bytes
    async for chunk in inner:
        remaining -= len(chunk)
        if remaining < 0:
            raise _too_large(max_bytes)
        yield chunk


async def repair_message(
    inner: httpx2.AsyncByteStream, max_bytes: int, pending: PendingRequest, status: int = 200
) -> AsyncGenerator[bytes]:
    """Yield the one message that the library can read. Raises ReadError where it is larger."""
    data = b"".join([chunk async for chunk in bound_size(inner, max_bytes)]).removeprefix(_BOM)
    if pending.request_id is None:
        yield data
        return
    parsed = await parse_messages_by_size(data)
    if status >= _HTTP_BAD_REQUEST:
        yield _error_response(pending, pending.request_id, data, parsed, status)
        return
    message = next((message for message in _select_response(pending, parsed) if _is_response(message)), None)
    if message is None:
        reason = "it is not an answer of the protocol" if data.strip() else "it is empty"
        message = unreadable_response(pending.request_id, reason)
    yield _write(message, parsed, data)


async def repair_events(
    inner: httpx2.AsyncByteStream,
    max_bytes: int,
    pending: PendingRequest,
    on_stray: Callable[[str], None] = lambda _: None,
) -> AsyncGenerator[bytes]:
    """Yield server-sent events that the library can read, each of at most `max_bytes`. Raises ReadError for more.

    Events that are no message go to `on_stray`. The last one needs no blank line, if it is complete.
    """
    progress = _StreamProgress()
    # The encoding leaves out a byte order mark.
    headers = {"content-type": "text/event-stream; charset=utf-8-sig"}
    stream = Body(inner, _complete_events(inner, max_bytes, progress))
    source = httpx2.Response(200, headers=headers, stream=stream, request=httpx2.Request("GET", "http://localhost/"))
    pacer, last_id = ReadPacer(), ""
    async for event in httpx2.EventSource(source, max_event_size=None):
        pacer.begin()
        progress.event_size = 0
        data = event.data.encode()
        parsed = await parse_messages_by_size(data)
        if data and not parsed.messages:
            on_stray(event.data[:_MAX_STRAY_LENGTH])
        if progress.is_ended and not parsed.is_json:
            continue
        head = _event_head(event, last_id)
        last_id = event.id
        messages = [_write(message, parsed, data) for message in _select_response(pending, parsed)]
        # An id or a retry time may come alone. The library ignores events with another name than “message”.
        for text in messages or [b""] * (bool(head) and not data):
            yield _event(head, text)
            head = ""
        await pacer.pause_if_busy()
    if progress.failure is not None:
        raise progress.failure


@dataclass
class _StreamProgress:
    """How far a stream was read. `event_size` is that of the event that is not complete yet, in bytes."""

    event_size: int = 0
    is_ended: bool = False
    failure: httpx2.TransportError | None = None


async def _complete_events(
    inner: httpx2.AsyncByteStream, max_bytes: int, progress: _StreamProgress
) -> AsyncGenerator[bytes]:
    """Yield the chunks, and complete the last event. Raises ReadError for a larger one."""
    try:
        async for chunk in inner:
            progress.event_size += len(chunk)
            if progress.event_size > max_bytes:
                break
            yield chunk
            # After a blank line no part of an event is pending.
            if chunk.endswith((b"\n\n", b"\r\r", b"\r\n\r\n")):
                progress.event_size = 0
    except httpx2.TransportError as error:
        progress.failure = error
    if progress.event_size > max_bytes:
        raise _too_large(max_bytes)
    progress.is_ended = True
    yield b"\n\n"


def _event_head(event: httpx2.ServerSentEvent, last_id: str) -> str:
    retry = f"retry: {event.retry}\n" if event.retry is not None else ""
    return retry if event.id == last_id else f"id: {event.id}\n{retry}"


def _event(head: str, data: bytes) -> bytes:
    lines = (b"data: " + line if line else b"data:" for line in data.split(b"\n"))
    return head.encode() + b"\n".join([*lines, b"", b""])


def failure_body(pending: PendingRequest, message: str) -> bytes:
    """Return the body of an error response; empty where none is expected."""
    return b"" if pending.request_id is None else _to_bytes(error_response(pending.request_id, message))


def _error_response(
    pending: PendingRequest, request_id: int | str, data: bytes, parsed: ParsedMessages, status: int
) -> bytes:
    """Return the error in it, whatever its id: servers invent one (“server-error”). Without one the status counts."""
    failure = next((message for message in parsed.messages if isinstance(message, JSONRPCError)), None)
    if failure is None or not parsed.is_json:
        return data
    if pending.has_session and _is_session_lost(status, failure.error.code):
        failure = with_error_code(failure, CONNECTION_CLOSED)
    return _to_bytes(failure.model_copy(update={"id": request_id}))


def _is_session_lost(status: int, code: int) -> bool:
    """Whether a server does not know the session: 404 by the protocol; with the TypeScript library it may be 400."""
    return (status == _HTTP_NOT_FOUND and code != METHOD_NOT_FOUND) or (
        status == _HTTP_BAD_REQUEST and code == SERVER_FAILED
    )


def _select_response(pending: PendingRequest, parsed: ParsedMessages) -> list[JSONRPCMessage]:
    """Return what is no response, and the response to this request. Responses to others become its failure."""
    responses = [message for message in parsed.messages if isinstance(message, JSONRPCResponse | JSONRPCError)]
    if pending.request_id is None or not responses:
        return list(parsed.messages)
    matching = [message for message in responses if str(message.id) == str(pending.request_id)]
    # Without an id: the server could not read the id of the request.
    matching = matching or [message for message in responses if message.id is None]
    response = matching[0] if matching else unreadable_response(pending.request_id, "it answers another question")
    if response.id != pending.request_id:
        response = response.model_copy(update={"id": pending.request_id})
    return [*(message for message in parsed.messages if not _is_response(message)), response]


def _is_response(message: JSONRPCMessage) -> bool:
    return isinstance(message, JSONRPCResponse | JSONRPCError)


def _write(message: JSONRPCMessage, parsed: ParsedMessages, data: bytes) -> bytes:
    """Return the received bytes if they are unchanged: writing a large message takes long."""
    return data if parsed.is_whole and message is parsed.messages[0] else _to_bytes(message)


def _to_bytes(message: JSONRPCMessage) -> bytes:
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode("utf-8", "replace")


def _too_large(limit: int) -> httpx2.ReadError:
    return httpx2.ReadError(f"the answer is larger than {limit:,} bytes")
