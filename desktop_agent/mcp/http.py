"""The HTTP client of a remote MCP server: address checks before each connection, and bounded responses. Loaded late.

The library's transport speaks HTTP with httpx2, so the checks of `desktop_agent.network` are repeated here.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from http import HTTPStatus
from typing import Any, cast

import httpcore2
import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client

from desktop_agent.mcp.diagnostics import ServerLog
from desktop_agent.mcp.host_policy import HttpTarget, host_of_url, is_private_host, is_secure
from desktop_agent.mcp.http_responses import (
    Body,
    bound_size,
    failure_body,
    pending_request,
    repair_events,
    repair_message,
)
from desktop_agent.network.fetch import MAX_REDIRECTS, Resolver, resolve_checked, resolve_host
from desktop_agent.network.hosts import PrivateHost
from desktop_agent.network.system_proxy import proxy_address
from desktop_agent.network.tls import tls_context
from desktop_agent.types.errors import Sentence, ToolFailed

# These log what servers answered, secrets too.
_SILENT_LOGGERS = ("mcp.client.streamable_http", "mcp.client.auth.oauth2")
MAX_RESPONSE_BYTES = 32_000_000
"""Bytes of one response, or of one event of a stream."""
MAX_METADATA_BYTES = 500_000
"""Bytes of one response of the OAuth endpoints."""
# Seconds to connect and to send, and of silence in a stream, which may wait for long calls.
_CONNECT_TIMEOUT = 20.0
_READ_TIMEOUT = 900.0
# Seconds that a server gets to confirm the end of a session.
_END_TIMEOUT = 2.0
_VISITED_KEY = "desktop-agent/visited"


class RedirectRefused(ToolFailed):
    """The server leads to another one, to which requests are not sent."""

    default_remedy = "Correct the address with Edit, or ask the operator of the server."


@asynccontextmanager
async def http_streams(
    target: HttpTarget, log: ServerLog, auth: httpx2.Auth | None = None
) -> AsyncGenerator[TransportStreams]:
    """Open the library's transport. Requests go to no other host: redirects elsewhere are not followed."""
    client = await make_http_client(target, log, auth)
    max_size = MAX_RESPONSE_BYTES
    async with client, streamable_http_client(target.url, http_client=client, max_sse_event_size=max_size) as streams:
        yield streams


async def make_http_client(target: HttpTarget, log: ServerLog, auth: httpx2.Auth | None = None) -> httpx2.AsyncClient:
    """Return a client for this server alone, or also for those that it names."""
    # Each time: a later configuration of logging may turn them on again.
    for name in _SILENT_LOGGERS:
        logging.getLogger(name).disabled = True
    context = await asyncio.to_thread(tls_context)
    # Compressed responses could be bombs, and compression saves little here.
    return httpx2.AsyncClient(
        headers={**target.headers, "accept-encoding": "identity"},
        timeout=httpx2.Timeout(_CONNECT_TIMEOUT, read=_READ_TIMEOUT),
        event_hooks={"response": [partial(_bound_response, log), partial(_log_status, log, target.on_unauthorized)]},
        max_redirects=MAX_REDIRECTS,
        transport=_CheckedTransport(target, context),
        trust_env=False,
        auth=auth,
    )


async def _log_status(log: ServerLog, on_unauthorized: Callable[[], None], response: httpx2.Response) -> None:
    # A server may refuse methods that it does not have: that shows which version of the protocol it has.
    if response.is_error:
        log.add(f"HTTP {response.status_code} {response.reason_phrase}", "error")
    if response.status_code == HTTPStatus.UNAUTHORIZED:
        on_unauthorized()


async def _bound_response(log: ServerLog, response: httpx2.Response) -> None:
    if response.headers.get("content-encoding", "identity") != "identity":
        raise httpx2.DecodingError("the server packs its answer unasked", request=response.request)
    inner = cast("httpx2.AsyncByteStream", response.stream)
    if "text/event-stream" not in response.request.headers.get("accept", ""):
        response.stream = Body(inner, bound_size(inner, MAX_METADATA_BYTES))
        return
    pending = await pending_request(response.request)
    if _is_redirect_loop(response):
        await inner.aclose()
        del response.headers["location"]
        response.headers["content-type"] = "application/json"
        response.stream = httpx2.ByteStream(failure_body(pending, "its address leads back to itself"))
        return
    is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
    chunks = (
        repair_events(inner, MAX_RESPONSE_BYTES, pending, log.add_stray_output)
        if is_stream
        else repair_message(inner, MAX_RESPONSE_BYTES, pending, response.status_code)
    )
    response.stream = Body(inner, chunks)


def _is_redirect_loop(response: httpx2.Response) -> bool:
    """Whether a redirect leads where this request was sent already: the same call would be sent again and again."""
    if not response.has_redirect_location:
        return False
    request = response.request
    # Requests that follow a redirect share the extensions of the first.
    visited: set[str] = request.extensions.setdefault(_VISITED_KEY, set())
    visited.add(str(request.url))
    try:
        return str(request.url.join(response.headers["location"]).copy_with(fragment=None)) in visited
    except httpx2.InvalidURL:
        return False


class _CheckedBackend(httpcore2.AsyncNetworkBackend):
    """Connects only to addresses that were checked. `private_hosts` may have a private address."""

    def __init__(self, private_hosts: frozenset[str], resolve: Resolver) -> None:
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
        allowed = frozenset({host}) if host.rstrip(".") in self._private_hosts else frozenset[str]()
        try:
            addresses = await resolve_checked(host, port, allowed, self._resolve)
        except OSError as error:
            raise httpcore2.ConnectError(f"“{host}” is not known") from error
        failure: Exception = httpcore2.ConnectError(f"no address of {host}")
        for address in addresses:
            try:
                stream = await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
            else:
                return _close_failed_handshake(stream)
        raise failure


def _close_failed_handshake(stream: httpcore2.AsyncNetworkStream) -> httpcore2.AsyncNetworkStream:
    """Close the connection if a cancel ends its TLS handshake: the library leaves it open."""
    start_tls = stream.start_tls

    async def start_or_close(*arguments: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
        try:
            return await start_tls(*arguments, **options)
        except BaseException:
            with suppress(Exception):
                await stream.aclose()
            raise

    stream.start_tls = start_or_close
    return stream


class _DirectTransport(httpx2.AsyncHTTPTransport):
    def __init__(self, context: ssl.SSLContext, backend: _CheckedBackend) -> None:
        super().__init__(verify=context, trust_env=False)
        # The library offers no way to pass a network backend: this pool is like its own, but for the backend.
        self._pool = httpcore2.AsyncConnectionPool(ssl_context=context, network_backend=backend, keepalive_expiry=60.0)


class _CheckedTransport(httpx2.AsyncBaseTransport):
    """For one server; with `allows_other_servers` also for those that it names for signing in."""

    def __init__(self, target: HttpTarget, context: ssl.SSLContext) -> None:
        self._target = target
        self._server_url = httpx2.URL(target.url)
        self._context = context
        backend = _CheckedBackend(target.private_hosts, target.resolve or resolve_host)
        self._direct = _DirectTransport(context, backend)
        self._proxied: dict[str, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Raises RedirectRefused, PrivateHost, and what the library raises."""
        self._check_request(request)
        if request.method == "DELETE":
            request.extensions["timeout"] = {**request.extensions["timeout"], "read": _END_TIMEOUT}
        return await self._choose_transport(request.url).handle_async_request(request)

    async def aclose(self) -> None:
        for transport in (self._direct, *self._proxied.values()):
            await transport.aclose()

    def _check_request(self, request: httpx2.Request) -> None:
        url, host = request.url, host_of_url(str(request.url))
        if self._is_own_server(url):
            return
        values = {"host": host or "?"}
        if not self._target.allows_other_servers:
            raise RedirectRefused(
                Sentence("The server redirects to another one, “{host}”, which is not allowed.", values)
            )
        if not is_secure(url.scheme, host) or url.userinfo:
            raise RedirectRefused(Sentence("“{host}” has no encrypted address (https).", values))
        if request.headers.get("authorization", "").lower().startswith("bearer"):
            raise RedirectRefused(
                Sentence(
                    "The request was not sent to “{host}”, because it contains a secret for another server.", values
                )
            )

    def _is_own_server(self, url: httpx2.URL) -> bool:
        own_url = self._server_url
        is_upgrade = own_url.scheme == "http" and url.scheme == "https" and own_url.port is None and url.port is None
        return url.host == own_url.host and (is_upgrade or (url.scheme, url.port) == (own_url.scheme, own_url.port))

    def _choose_transport(self, url: httpx2.URL) -> httpx2.AsyncBaseTransport:
        host = host_of_url(str(url))
        proxy = proxy_address(url.scheme, host)
        if proxy is None:
            return self._direct
        # The proxy resolves names; a private name or address in the URL itself is refused here.
        if host not in self._target.private_hosts and is_private_host(host):
            raise PrivateHost(host, host)
        if proxy not in self._proxied:
            proxy_url = httpx2.URL(proxy)
            # Otherwise the library trusts a proxy by its own default.
            context = self._context if proxy_url.scheme == "https" else None
            self._proxied[proxy] = httpx2.AsyncHTTPTransport(
                verify=self._context, trust_env=False, proxy=httpx2.Proxy(proxy_url, ssl_context=context)
            )
        return self._proxied[proxy]
