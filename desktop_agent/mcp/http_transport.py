"""The httpx2 side of the HTTP transport: address checks before each connection, and bounded, repaired responses. Loaded
late.

The library's client has transports of its own kind (httpx2), so the checks of `desktop_agent.network` are done here
once more. The library waits for a response with the id of its request: each response knows it, and whatever ends it
becomes a response to that request.
"""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import httpcore2
import httpx2

from desktop_agent.mcp.host_policy import host_of_url, is_private_host, is_secure, proxy_for
from desktop_agent.mcp.limits import (
    PARSE_IN_THREAD_BYTES,
    SERVER_FAILED,
    ParsedMessages,
    ReadPacer,
    error_response,
    parse_messages_by_size,
    unreadable_response,
    with_error_code,
)
from desktop_agent.network.fetch import Resolver, resolve_host
from desktop_agent.network.hosts import PrivateHost, is_public_address
from desktop_agent.types.errors import Sentence, ToolFailed

if TYPE_CHECKING:
    from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCResponse


class RedirectRefused(ToolFailed):
    """The server leads to a place where requests do not go."""

    default_remedy = "Correct its address with Edit, or ask who runs it."


class CheckedBackend(httpcore2.AsyncNetworkBackend):
    """Connects only to addresses that were checked. `private_hosts` may have a private address."""

    def __init__(self, private_hosts: frozenset[str], resolve: Resolver = resolve_host) -> None:
        self._inner = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())
        self._private_hosts = private_hosts
        self._resolve = resolve

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's own interface
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first address that answers. Raises PrivateHost when one of them is private."""
        try:
            addresses = await self._resolve(host, port)
        except OSError as error:
            raise httpcore2.ConnectError(f"“{host}” is not known") from error
        for address in addresses:
            if host.rstrip(".") not in self._private_hosts and not is_public_address(address):
                raise PrivateHost(host, address)
        failure: Exception = httpcore2.ConnectError(f"no address of {host}")
        for address in addresses:
            try:
                stream = await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
            else:
                return _ClosingStream(stream)
        raise failure

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ARG002, ASYNC109 - the library's own interface
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> httpcore2.AsyncNetworkStream:
        """Raise ConnectError: no server is there."""
        raise httpcore2.ConnectError(path)

    async def sleep(self, seconds: float) -> None:
        """Sleep as the library does."""
        await self._inner.sleep(seconds)


class _ClosingStream(httpcore2.AsyncNetworkStream):
    """Closes the connection of a TLS handshake that is given up, also after a cancel: the library leaves it open."""

    def __init__(self, inner: httpcore2.AsyncNetworkStream) -> None:
        self._inner = inner

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        return await self._inner.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore2.AsyncNetworkStream:
        try:
            return await self._inner.start_tls(ssl_context, server_hostname, timeout)
        except BaseException:
            with contextlib.suppress(Exception):
                await self._inner.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _DirectTransport(httpx2.AsyncHTTPTransport):
    def __init__(self, context: ssl.SSLContext, backend: CheckedBackend) -> None:
        super().__init__(verify=context, trust_env=False)
        # The library offers no way to pass a network backend: this pool is like its own, but for the backend.
        self._pool = httpcore2.AsyncConnectionPool(ssl_context=context, network_backend=backend, keepalive_expiry=60.0)


class CheckedTransport(httpx2.AsyncBaseTransport):
    """For the server at `url`, and where `allows_other_servers` for those that it names for signing in."""

    def __init__(
        self,
        url: str,
        private_hosts: frozenset[str],
        *,
        allows_other_servers: bool = False,
        resolve: Resolver = resolve_host,
    ) -> None:
        self._server_url = httpx2.URL(url)
        self._private_hosts = private_hosts
        self._allows_other_servers = allows_other_servers
        self._context = httpx2.create_ssl_context()
        self._direct = _DirectTransport(self._context, CheckedBackend(private_hosts, resolve))
        self._proxied: dict[str, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Raises RedirectRefused, PrivateHost, and what the library raises."""
        self._check_request(request)
        return await self._choose_transport(request.url).handle_async_request(request)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._direct.aclose()
        for transport in self._proxied.values():
            await transport.aclose()

    def _check_request(self, request: httpx2.Request) -> None:
        url, host = request.url, host_of_url(str(request.url))
        if self._is_own_server(url):
            return
        values = {"host": host or "?"}
        if not self._allows_other_servers:
            raise RedirectRefused(Sentence("The server leads to another one, “{host}”; that is not followed.", values))
        if not is_secure(url.scheme, host) or url.userinfo:
            raise RedirectRefused(Sentence("“{host}” cannot be reached without being overheard (https).", values))
        if request.headers.get("authorization", "").lower().startswith("bearer"):
            raise RedirectRefused(Sentence("What “{host}” must not see was kept back.", values))

    def _is_own_server(self, url: httpx2.URL) -> bool:
        home = self._server_url
        is_upgrade = home.scheme == "http" and url.scheme == "https" and home.port is None and url.port is None
        return url.host == home.host and (is_upgrade or (url.scheme, url.port) == (home.scheme, home.port))

    def _choose_transport(self, url: httpx2.URL) -> httpx2.AsyncBaseTransport:
        host = host_of_url(str(url))
        proxy = proxy_for(url.scheme, host)
        if proxy is None:
            return self._direct
        # The proxy resolves names; a private name or address in the URL itself is refused here.
        if host not in self._private_hosts and is_private_host(host):
            raise PrivateHost(host, host)
        if proxy not in self._proxied:
            self._proxied[proxy] = httpx2.AsyncHTTPTransport(verify=self._context, trust_env=False, proxy=proxy)
        return self._proxied[proxy]


_MAX_LINES = 10_000
_MAX_STRAY_BYTES = 50_000
_BOM = b"\xef\xbb\xbf"
_REQUEST_KEY = "desktop-agent/question"
_MESSAGE_EVENT_LINES = {b"event: message", b"event:message"}
_HTTP_BAD_REQUEST, _HTTP_ERROR_FROM, _HTTP_NOT_FOUND = 400, 400, 404


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """The request that a response belongs to. `request_id` None: no response is waited for.

    `has_session`: the request named a session.
    """

    request_id: int | str | None = None
    has_session: bool = False


async def pending_request(request: httpx2.Request) -> PendingRequest:
    """Return it by what was sent. It is kept in the extensions: a request that follows a redirect has no body."""
    if _REQUEST_KEY not in request.extensions:
        request.extensions[_REQUEST_KEY] = PendingRequest(
            await _request_id(request), "mcp-session-id" in request.headers
        )
    return cast("PendingRequest", request.extensions[_REQUEST_KEY])


async def _request_id(request: httpx2.Request) -> int | str | None:
    try:
        body = request.content
        is_small = len(body) < PARSE_IN_THREAD_BYTES
        message: Any = json.loads(body) if is_small else await asyncio.to_thread(json.loads, body)
    except (httpx2.RequestNotRead, ValueError):
        return None
    fields = cast("dict[str, Any]", message) if isinstance(message, dict) else {}
    return fields.get("id") if "method" in fields else None


def failure_body(pending: PendingRequest, message: str) -> bytes:
    """Return the body of an error response; empty where none is waited for."""
    return b"" if pending.request_id is None else _to_bytes(error_response(pending.request_id, message))


def _to_bytes(message: "JSONRPCMessage") -> bytes:
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode("utf-8", "replace")


def _select_response(pending: PendingRequest, messages: "Sequence[JSONRPCMessage]") -> "list[JSONRPCMessage]":
    """Return what is no response, and the one to this request. Responses to others become its failure."""
    responses = [
        cast("JSONRPCResponse | JSONRPCError", message) for message in messages if not hasattr(message, "method")
    ]
    if pending.request_id is None or not responses:
        return list(messages)
    matching = [message for message in responses if str(message.id) == str(pending.request_id)]
    # Without an id: the server could not read that of the request.
    matching = matching or [message for message in responses if message.id is None]
    others = [message for message in messages if hasattr(message, "method")]
    if not matching:
        return [*others, unreadable_response(pending.request_id, "it answers another question")]
    response = matching[0]
    if response.id != pending.request_id:
        response = response.model_copy(update={"id": pending.request_id})
    return [*others, response]


class BoundedBody(httpx2.AsyncByteStream):
    """The body of a response with one message, of at most so many bytes."""

    def __init__(
        self, inner: httpx2.AsyncByteStream, max_bytes: int, pending: PendingRequest, status: int = 200
    ) -> None:
        self._inner = inner
        self._max_bytes = max_bytes
        self._pending = pending
        self._status = status

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Raises ReadError where it is larger."""
        chunks: list[bytes] = []
        remaining = self._max_bytes
        async for chunk in self._inner:
            remaining -= len(chunk)
            if remaining < 0:
                raise _too_large(self._max_bytes)
            chunks.append(chunk)
        data = b"".join(chunks).removeprefix(_BOM)
        request_id = self._pending.request_id
        yield data if request_id is None else self._response(request_id, data, await parse_messages_by_size(data))

    async def aclose(self) -> None:
        """Close the connection."""
        await self._inner.aclose()

    def _response(self, request_id: int | str, data: bytes, parsed: ParsedMessages) -> bytes:
        if self._status >= _HTTP_ERROR_FROM:
            return self._error_response(request_id, data, parsed)
        responses = [
            message for message in _select_response(self._pending, parsed.messages) if not hasattr(message, "method")
        ]
        if responses:
            return data if parsed.is_whole and responses[0] is parsed.messages[0] else _to_bytes(responses[0])
        return _to_bytes(
            unreadable_response(request_id, "it is no answer of the protocol" if data.strip() else "it is empty")
        )

    def _error_response(self, request_id: int | str, data: bytes, parsed: ParsedMessages) -> bytes:
        """The error in it, whatever its id: servers make one up (“server-error”). Without one the status counts."""
        from mcp_types import CONNECTION_CLOSED, JSONRPCError

        failure = next((message for message in parsed.messages if isinstance(message, JSONRPCError)), None)
        if failure is None or not parsed.is_json:
            return data
        if self._pending.has_session and _is_session_lost(self._status, failure.error.code):
            failure = with_error_code(failure, CONNECTION_CLOSED)
        return _to_bytes(failure.model_copy(update={"id": request_id}))


def _is_session_lost(status: int, code: int) -> bool:
    """Whether a server does not know the session: 404 by the protocol; with the TypeScript library it may be 400."""
    from mcp_types import METHOD_NOT_FOUND

    return (status == _HTTP_NOT_FOUND and code != METHOD_NOT_FOUND) or (
        status == _HTTP_BAD_REQUEST and code == SERVER_FAILED
    )


class BoundedEventStream(httpx2.AsyncByteStream):
    """Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html), each of at most so many
    bytes.

    Events that are no message go to `on_stray`. The last one needs no blank line, if it is whole.
    """

    def __init__(
        self,
        inner: httpx2.AsyncByteStream,
        max_bytes: int,
        pending: PendingRequest,
        on_stray: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._inner = inner
        self._max_bytes = max_bytes
        self._pending = pending
        self._on_stray = on_stray
        self._pacer = ReadPacer()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Raises ReadError where an event is larger."""
        pending: list[bytes] = []
        size, lines = 0, 0
        failure: httpx2.TransportError | None = None
        try:
            async with aclosing(_normalize_newlines(self._inner)) as chunks:
                async for chunk in chunks:
                    *events, rest = _split_events(pending, chunk)
                    for data in events:
                        self._pacer.begin()
                        if event := await self._event(data):
                            yield event
                        await self._pacer.pause_if_busy()
                    if events:
                        pending, size, lines = [], 0, 0
                    pending.append(rest)
                    size, lines = size + len(rest), lines + rest.count(b"\n")
                    if size > self._max_bytes or lines > _MAX_LINES:
                        pending = []
                        raise _too_large(self._max_bytes)
        except httpx2.TransportError as error:
            failure = error
        if pending and (event := await self._event(b"".join(pending), is_last=True)):
            yield event
        if failure is not None:
            raise failure

    async def aclose(self) -> None:
        """Close the connection."""
        await self._inner.aclose()

    async def _event(self, event: bytes, *, is_last: bool = False) -> bytes:
        """Return one or more events for the library; empty for what it need not see."""
        lines = event.split(b"\n")
        data = b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
        if not data:
            # An event of comments alone says nothing; an id or a retry time may be alone.
            has_fields = any(line.startswith((b"id", b"retry", b"data")) for line in lines)
            return event + b"\n\n" if has_fields and not is_last else b""
        parsed = await parse_messages_by_size(data)
        if not parsed.messages:
            self._on_stray(data[:_MAX_STRAY_BYTES].decode("utf-8", "replace"))
        if not parsed.messages or (is_last and not parsed.is_json):
            return b""
        messages = _select_response(self._pending, parsed.messages)
        # The library ignores events with another name than “message”.
        name_lines = [line for line in lines if line.startswith(b"event")]
        if parsed.is_whole and messages[0] is parsed.messages[0] and set(name_lines) <= _MESSAGE_EVENT_LINES:
            return event.rstrip(b"\n") + b"\n\n"
        others = [line for line in lines if line and line not in name_lines and not line.startswith(b"data")]
        return b"".join(b"\n".join([*others, b"data: " + _to_bytes(message), b"", b""]) for message in messages)


def _split_events(pending: list[bytes], chunk: bytes) -> list[bytes]:
    """Whole events up to this chunk, and the rest. Joined only then, as an event may come in many chunks."""
    completes_event = chunk.startswith(b"\n") and bool(pending) and pending[-1].endswith(b"\n")
    if completes_event or b"\n\n" in chunk:
        return b"".join([*pending, chunk]).split(b"\n\n")
    return [chunk]


async def _normalize_newlines(inner: httpx2.AsyncByteStream) -> AsyncGenerator[bytes]:
    """Without the byte order mark, and with one kind of newline."""
    rest, is_start = b"", True
    async for piece in inner:
        text = rest + piece
        if is_start and len(text) < len(_BOM) and _BOM.startswith(text):
            rest = text
            continue
        if is_start:
            is_start, text = False, text.removeprefix(_BOM)
        # The second half of a line end may come with the next chunk.
        rest = b"\r" if text.endswith(b"\r") else b""
        text = text[:-1] if rest else text
        if text:
            yield text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if rest == b"\r":
        yield b"\n"


def _too_large(limit: int) -> httpx2.ReadError:
    return httpx2.ReadError(f"the answer is larger than {limit:,} bytes, or has too many lines")
