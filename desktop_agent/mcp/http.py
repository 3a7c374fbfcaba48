"""Streamable HTTP transport of a remote MCP server, with bounded responses."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from desktop_agent.mcp.diagnostics import ServerLog

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams

    from desktop_agent.network.fetch import Resolver

MAX_RESPONSE_BYTES = 32_000_000
"""Of one response, or of one event of a stream."""
MAX_METADATA_BYTES = 500_000
"""Of one response of the OAuth endpoints."""
# Seconds to connect and to send, and of silence in a stream, in which long calls are waited for.
_CONNECT_TIMEOUT = 20.0
_READ_TIMEOUT = 900.0
_HTTP_UNAUTHORIZED = 401
_VISITED_KEY = "desktop-agent/visited"


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """The address of a server. `headers` go to it alone; `private_hosts` may have a private address.

    `on_unauthorized` is called for a 401. `allows_other_servers`: also the servers that it names for signing in are
    asked.
    """

    url: str
    private_hosts: frozenset[str] = frozenset()
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    on_unauthorized: Callable[[], None] = lambda: None
    allows_other_servers: bool = False
    resolve: "Resolver | None" = None


@asynccontextmanager
async def http_streams(
    target: HttpTarget, log: ServerLog, auth: "httpx2.Auth | None" = None
) -> "AsyncGenerator[TransportStreams]":
    """Open the library's transport. Requests go to no other host: redirects elsewhere are not followed."""
    from mcp.client.streamable_http import streamable_http_client

    # The library logs what servers answered, secrets too.
    logging.getLogger("mcp.client.streamable_http").disabled = True
    client = await make_http_client(target, log, auth)
    max_size = MAX_RESPONSE_BYTES
    async with client, streamable_http_client(target.url, http_client=client, max_sse_event_size=max_size) as streams:
        yield streams


async def make_http_client(
    target: HttpTarget, log: ServerLog, auth: "httpx2.Auth | None" = None
) -> "httpx2.AsyncClient":
    """Return a client for this server alone, or also for those that it names."""
    # In a thread: reading the certificates that the system trusts takes a tenth of a second.
    return await asyncio.to_thread(_build_client, target, log, auth)


def _build_client(target: HttpTarget, log: ServerLog, auth: "httpx2.Auth | None") -> "httpx2.AsyncClient":
    import httpx2

    from desktop_agent.mcp.http_transport import CheckedTransport
    from desktop_agent.network.fetch import MAX_REDIRECTS, resolve_host

    resolve = target.resolve or resolve_host
    # Compressed responses could be bombs, and compression saves little here.
    return httpx2.AsyncClient(
        headers={**target.headers, "accept-encoding": "identity"},
        timeout=httpx2.Timeout(_CONNECT_TIMEOUT, read=_READ_TIMEOUT),
        event_hooks={"response": [partial(_bound_response, log), partial(_log_status, log, target.on_unauthorized)]},
        max_redirects=MAX_REDIRECTS,
        transport=CheckedTransport(
            target.url, target.private_hosts, allows_other_servers=target.allows_other_servers, resolve=resolve
        ),
        trust_env=False,
        auth=auth,
    )


async def _log_status(log: ServerLog, on_unauthorized: Callable[[], None], response: "httpx2.Response") -> None:
    # A server may refuse methods that it does not have: that is how the protocol versions are told apart.
    if response.status_code >= 400:
        log.add(f"HTTP {response.status_code} {response.reason_phrase}", "error")
    if response.status_code == _HTTP_UNAUTHORIZED:
        on_unauthorized()


async def _bound_response(log: ServerLog, response: "httpx2.Response") -> None:
    import httpx2

    if response.headers.get("content-encoding", "identity") != "identity":
        raise httpx2.DecodingError("the server packs its answer unasked", request=response.request)
    from desktop_agent.mcp.http_transport import BoundedBody, BoundedEventStream, failure_body, pending_request

    inner: Any = response.stream
    if "text/event-stream" not in response.request.headers.get("accept", ""):
        response.stream = _bound_stream(inner, MAX_METADATA_BYTES)
        return
    pending = await pending_request(response.request)
    if _is_redirect_loop(response):
        await inner.aclose()
        del response.headers["location"]
        response.headers["content-type"] = "application/json"
        response.stream = httpx2.ByteStream(failure_body(pending, "its address leads back to itself"))
    elif response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        response.stream = BoundedEventStream(inner, MAX_RESPONSE_BYTES, pending, log.add_stray_output)
    else:
        response.stream = BoundedBody(inner, MAX_RESPONSE_BYTES, pending, response.status_code)


def _is_redirect_loop(response: "httpx2.Response") -> bool:
    """Whether a redirect leads where this request was sent already: the library would follow it for ever."""
    import httpx2

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


def _bound_stream(inner: Any, limit: int) -> "httpx2.AsyncByteStream":
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            remaining = limit
            async for piece in inner:
                remaining -= len(piece)
                if remaining < 0:
                    raise httpx2.ReadError(f"the answer is larger than {limit:,} bytes")
                yield piece

        async def aclose(self) -> None:
            """Close the connection."""
            await inner.aclose()

    return Bounded()
