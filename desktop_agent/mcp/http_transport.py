"""The httpx2 side of the HTTP transport: address checks before each connection, and bounded, repaired responses.
Loaded late.

The library's client has a transport of its own kind (httpx2), so the checks of `desktop_agent.network` are done here
once more. The library waits for a response with the id of its request: each response knows it, and whatever ends it
becomes a response to that.
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
    SERVER_FAILED,
    ParsedMessages,
    ReadPacer,
    error_response,
    parse_messages,
    unreadable_response,
    with_error_code,
)
from desktop_agent.network.fetch import Resolver, resolve_host
from desktop_agent.network.hosts import PrivateHost, is_public_address
from desktop_agent.types.errors import Sentence, ToolFailed

if TYPE_CHECKING:
    from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCResponse


class RedirectRefused(ToolFailed):
    """The server wants us where we do not go."""

    default_remedy = "Correct its address with Edit, or ask who runs it."


class CheckedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to an address only after looking at it, and to no other. `own` are hosts that may be private."""

    def __init__(self, own: frozenset[str], resolve: Resolver = resolve_host) -> None:
        self._inner = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())
        self._private_hosts = own
        self._resolve = resolve

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's own interface
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """The first of its addresses that answers. Raises PrivateHost when one of them is private."""
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
        """Never."""
        raise httpcore2.ConnectError(path)

    async def sleep(self, seconds: float) -> None:
        """As the library does it."""
        await self._inner.sleep(seconds)


class _ClosingStream(httpcore2.AsyncNetworkStream):
    """A handshake that is given up closes its connection, also after a cancel, where the library leaves it open."""

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
        # The library makes its pool without asking by which way: this one is like it, but for the way.
        self._pool = httpcore2.AsyncConnectionPool(ssl_context=context, network_backend=backend, keepalive_expiry=60.0)


class CheckedTransport(httpx2.AsyncBaseTransport):
    """For the server at `url`, and for those that it names for signing in, where `roams`."""

    def __init__(self, url: str, own: frozenset[str], *, roams: bool = False, resolve: Resolver = resolve_host) -> None:
        self._server_url = httpx2.URL(url)
        self._private_hosts = own
        self._roams = roams
        self._context = httpx2.create_ssl_context()
        self._direct = _DirectTransport(self._context, CheckedBackend(own, resolve))
        self._proxied: dict[str, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Raises Refused, PrivateHost, and what the library raises."""
        self._check_request(request)
        return await self._choose_transport(request.url).handle_async_request(request)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._direct.aclose()
        for each in self._proxied.values():
            await each.aclose()

    def _check_request(self, request: httpx2.Request) -> None:
        url, host = request.url, host_of_url(str(request.url))
        if self._is_own_server(url):
            return
        values = {"host": host or "?"}
        if not self._roams:
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
        # The proxy finds the address of a name; one that stands in the URL itself is looked at here.
        if host not in self._private_hosts and is_private_host(host):
            raise PrivateHost(host, host)
        if proxy not in self._proxied:
            self._proxied[proxy] = httpx2.AsyncHTTPTransport(verify=self._context, trust_env=False, proxy=proxy)
        return self._proxied[proxy]


_PARSE_IN_THREAD_BYTES = 4_000
_MAX_LINES = 10_000
_MAX_STRAY_BYTES = 50_000
_BOM = b"\xef\xbb\xbf"
_REQUEST_KEY = "desktop-agent/question"
_MESSAGE_EVENT_LINES = {b"event: message", b"event:message"}
_HTTP_BAD_REQUEST, _HTTP_ERROR_FROM, _HTTP_NOT_FOUND = 400, 400, 404


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """What an answer is to. `call`: its id; None where no answer is waited for. `session`: one was named with it."""

    request_id: int | str | None = None
    has_session: bool = False


async def pending_request(request: httpx2.Request) -> PendingRequest:
    """By what was sent; a request that follows a redirect has its body no more, so it is kept beside it."""
    if _REQUEST_KEY not in request.extensions:
        request.extensions[_REQUEST_KEY] = PendingRequest(
            await _request_id(request), "mcp-session-id" in request.headers
        )
    return cast("PendingRequest", request.extensions[_REQUEST_KEY])


async def _request_id(request: httpx2.Request) -> int | str | None:
    try:
        sent = request.content
        message: Any = (
            json.loads(sent) if len(sent) < _PARSE_IN_THREAD_BYTES else await asyncio.to_thread(json.loads, sent)
        )
    except (httpx2.RequestNotRead, ValueError):
        return None
    named = cast("dict[str, Any]", message) if isinstance(message, dict) else {}
    return named.get("id") if "method" in named else None


def failure_body(question: PendingRequest, message: str) -> bytes:
    """The body of an answer of ours; empty where none is waited for."""
    return b"" if question.request_id is None else _to_bytes(error_response(question.request_id, message))


async def _parse(data: bytes) -> ParsedMessages:
    return parse_messages(data) if len(data) < _PARSE_IN_THREAD_BYTES else await asyncio.to_thread(parse_messages, data)


def _to_bytes(message: "JSONRPCMessage") -> bytes:
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode("utf-8", "replace")


def _select_response(question: PendingRequest, messages: "Sequence[JSONRPCMessage]") -> "list[JSONRPCMessage]":
    """What is no answer, and behind it the one to this question: of answers to others there is its failure instead."""
    answers = [cast("JSONRPCResponse | JSONRPCError", each) for each in messages if not hasattr(each, "method")]
    if question.request_id is None or not answers:
        return list(messages)
    mine = [each for each in answers if str(each.id) == str(question.request_id)]
    # Without an id: the server could not read that of the question.
    mine = mine or [each for each in answers if each.id is None]
    others = [each for each in messages if hasattr(each, "method")]
    if not mine:
        return [*others, unreadable_response(question.request_id, "it answers another question")]
    return [
        *others,
        mine[0] if mine[0].id == question.request_id else mine[0].model_copy(update={"id": question.request_id}),
    ]


class BoundedBody(httpx2.AsyncByteStream):
    """One message, of at most so many bytes."""

    def __init__(self, inner: httpx2.AsyncByteStream, most: int, question: PendingRequest, status: int = 200) -> None:
        self._inner = inner
        self._max_bytes = most
        self._question = question
        self._status = status

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Raises ReadError where it is larger."""
        pieces: list[bytes] = []
        left = self._max_bytes
        async for piece in self._inner:
            left -= len(piece)
            if left < 0:
                raise _too_large(self._max_bytes)
            pieces.append(piece)
        data = b"".join(pieces).removeprefix(_BOM)
        yield (
            data
            if self._question.request_id is None
            else self._response(self._question.request_id, data, await _parse(data))
        )

    async def aclose(self) -> None:
        """As the library wants it."""
        await self._inner.aclose()

    def _response(self, call: int | str, data: bytes, found: ParsedMessages) -> bytes:
        if self._status >= _HTTP_ERROR_FROM:
            return self._error_response(call, data, found)
        answers = [each for each in _select_response(self._question, found.messages) if not hasattr(each, "method")]
        if answers:
            return data if found.is_whole and answers[0] is found.messages[0] else _to_bytes(answers[0])
        return _to_bytes(
            unreadable_response(call, "it is no answer of the protocol" if data.strip() else "it is empty")
        )

    def _error_response(self, call: int | str, data: bytes, found: ParsedMessages) -> bytes:
        """The failure in it, whatever its id: servers make one up (“server-error”). Without one the status counts."""
        from mcp_types import CONNECTION_CLOSED, JSONRPCError

        failure = next((each for each in found.messages if isinstance(each, JSONRPCError)), None)
        if failure is None or not found.is_json:
            return data
        if self._question.has_session and _is_session_lost(self._status, failure.error.code):
            failure = with_error_code(failure, CONNECTION_CLOSED)
        return _to_bytes(failure.model_copy(update={"id": call}))


def _is_session_lost(status: int, code: int) -> bool:
    """Whether a server knows the session no more: 404 by the protocol; those of its TypeScript library say 400, too."""
    from mcp_types import METHOD_NOT_FOUND

    return (status == _HTTP_NOT_FOUND and code != METHOD_NOT_FOUND) or (
        status == _HTTP_BAD_REQUEST and code == SERVER_FAILED
    )


class BoundedEventStream(httpx2.AsyncByteStream):
    """Events (https://html.spec.whatwg.org/multipage/server-sent-events.html), each of at most so many bytes.

    Those that are no message are told as `stray` and not passed on. The last one needs no blank line, if it is whole.
    """

    def __init__(
        self,
        inner: httpx2.AsyncByteStream,
        most: int,
        question: PendingRequest,
        stray: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._inner = inner
        self._max_bytes = most
        self._question = question
        self._on_stray = stray
        self._pacer = ReadPacer()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Raises ReadError where one is larger."""
        pending: list[bytes] = []
        size, lines = 0, 0
        broken: httpx2.TransportError | None = None
        try:
            async with aclosing(_normalize_newlines(self._inner)) as pieces:
                async for piece in pieces:
                    *whole, rest = _split_events(pending, piece)
                    for each in whole:
                        self._pacer.begin()
                        if event := await self._event(each):
                            yield event
                        await self._pacer.pause_if_busy()
                    if whole:
                        pending, size, lines = [], 0, 0
                    pending.append(rest)
                    size, lines = size + len(rest), lines + rest.count(b"\n")
                    if size > self._max_bytes or lines > _MAX_LINES:
                        pending = []
                        raise _too_large(self._max_bytes)
        except httpx2.TransportError as error:
            broken = error
        if pending and (event := await self._event(b"".join(pending), is_last=True)):
            yield event
        if broken is not None:
            raise broken

    async def aclose(self) -> None:
        """As the library wants it."""
        await self._inner.aclose()

    async def _event(self, event: bytes, *, is_last: bool = False) -> bytes:
        """One or more for the library; empty for what it need not see."""
        lines = event.split(b"\n")
        data = b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
        if not data:
            # Nothing in it but comments says nothing; an id or a pause may be alone.
            says = any(line.startswith((b"id", b"retry", b"data")) for line in lines)
            return event + b"\n\n" if says and not is_last else b""
        found = await _parse(data)
        if not found.messages:
            self._on_stray(data[:_MAX_STRAY_BYTES].decode("utf-8", "replace"))
        if not found.messages or (is_last and not found.is_json):
            return b""
        passed = _select_response(self._question, found.messages)
        # The library passes over what is named otherwise than “message”.
        named = [line for line in lines if line.startswith(b"event")]
        if found.is_whole and passed[0] is found.messages[0] and set(named) <= _MESSAGE_EVENT_LINES:
            return event.rstrip(b"\n") + b"\n\n"
        others = [line for line in lines if line and line not in named and not line.startswith(b"data")]
        return b"".join(b"\n".join([*others, b"data: " + _to_bytes(each), b"", b""]) for each in passed)


def _split_events(pending: list[bytes], piece: bytes) -> list[bytes]:
    """Events that are whole with this piece, and what is left; joined only then, as one may come in many pieces."""
    meets = piece.startswith(b"\n") and bool(pending) and pending[-1].endswith(b"\n")
    if meets or b"\n\n" in piece:
        return b"".join([*pending, piece]).split(b"\n\n")
    return [piece]


async def _normalize_newlines(inner: httpx2.AsyncByteStream) -> AsyncGenerator[bytes]:
    """The text without the mark at its start, and with one end for all lines."""
    held, is_start = b"", True
    async for piece in inner:
        text = held + piece
        if is_start and len(text) < len(_BOM) and _BOM.startswith(text):
            held = text
            continue
        if is_start:
            is_start, text = False, text.removeprefix(_BOM)
        # The second half of a line end may come with the next piece.
        held = b"\r" if text.endswith(b"\r") else b""
        text = text[:-1] if held else text
        if text:
            yield text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if held == b"\r":
        yield b"\n"


def _too_large(most: int) -> httpx2.ReadError:
    return httpx2.ReadError(f"the answer is larger than {most:,} bytes, or has too many lines")
