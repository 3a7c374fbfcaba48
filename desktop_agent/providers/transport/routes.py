"""Which way a request leaves this machine. Imported late: this is the only module that imports httpx as a whole."""

import logging
import socket
import urllib.request
from collections.abc import Callable
from typing import cast

import httpx

from desktop_agent.network.handshakes import close_failed_handshakes
from desktop_agent.providers.transport.chunked_body import HttpxBody, fast_body
from desktop_agent.vocabulary.endpoints import is_loopback
from desktop_agent.vocabulary.errors import ConnectionFailed

_NOISY_LOGGERS = ("httpcore", "httpx")
STREAM_EXTENSION = "desktop_agent.stream"
_POOL_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=60.0)


class RoutingTransport(httpx.AsyncBaseTransport):
    """Direct for loopback and for hosts that the proxy settings except; otherwise by the proxy of the scheme.

    Proxies come from the environment, or from the system's settings on macOS and Windows.
    """

    def __init__(self) -> None:
        context = httpx.create_ssl_context()
        self._direct = close_failed_handshakes(
            httpx.AsyncHTTPTransport(verify=context, limits=_POOL_LIMITS, socket_options=_keep_alive_options())
        )
        self._proxied: dict[str, httpx.AsyncHTTPTransport] = {}
        self._unusable: dict[str, str] = {}
        proxies = urllib.request.getproxies()
        for scheme in ("http", "https"):
            url = proxies.get(scheme) or proxies.get("all")
            if not url:
                continue
            address = url if "://" in url else f"http://{url}"
            kind = address.partition("://")[0].lower()
            if kind not in ("http", "https"):
                self._unusable[scheme] = kind
                continue
            self._proxied[scheme] = close_failed_handshakes(
                httpx.AsyncHTTPTransport(verify=context, limits=_POOL_LIMITS, proxy=address)
            )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send by the right way. Raises ConnectionFailed for a kind of proxy that cannot be used."""
        response = await self._transport_for(request.url).handle_async_request(request)
        # The client wraps this stream once more, only to count time; whoever reads may leave that layer out.
        response.extensions[STREAM_EXTENSION] = fast_body(response) or HttpxBody(
            cast("httpx.AsyncByteStream", response.stream)
        )
        return response

    async def aclose(self) -> None:
        """Close every pool."""
        for transport in (self._direct, *self._proxied.values()):
            await transport.aclose()

    def _transport_for(self, url: httpx.URL) -> httpx.AsyncHTTPTransport:
        proxied, unusable = self._proxied.get(url.scheme), self._unusable.get(url.scheme)
        if proxied is unusable is None or is_loopback(url.host) or urllib.request.proxy_bypass(url.host):
            return self._direct
        if proxied is None:
            # Going around a proxy that somebody set would be wrong, so this fails instead.
            raise ConnectionFailed(f"the proxy set for it is of a kind that is not supported ({unusable})")
        return proxied


class UploadStream(httpx.AsyncByteStream):
    """The body of a request, once; `on_sent` is called when the library has written all of it."""

    def __init__(self, body: bytes, on_sent: Callable[[], None]) -> None:
        self._body: bytes | None = body
        self._on_sent = on_sent

    # Not a generator: one that is left half-way is closed by the loop's hooks, and not every loop has them.
    def __aiter__(self) -> "UploadStream":
        return self

    async def __anext__(self) -> bytes:
        body, self._body = self._body, None
        if body is None:
            self._on_sent()
            raise StopAsyncIteration
        return body


def create_client() -> httpx.AsyncClient:
    """One pool for everything. Slow the first time (certificates): call it in a thread."""
    for name in _NOISY_LOGGERS:
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            # They log heads of answers when everything is logged, and a server may put a key that it was sent in there.
            logger.setLevel(logging.INFO)
    return httpx.AsyncClient(transport=RoutingTransport(), follow_redirects=False, trust_env=False)


def _keep_alive_options() -> list[tuple[int, int, int]]:
    """Probes on silent connections, so that no address translator forgets a model that thinks for minutes.

    Idle 60 s, interval 60 s, 5 probes, where the platform lets one say so.
    """
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPALIVE", 60), ("TCP_KEEPINTVL", 60), ("TCP_KEEPCNT", 5)):
        number = getattr(socket, name, None)
        if isinstance(number, int):
            options.append((socket.IPPROTO_TCP, number, value))
    return options
