"""HTTP for one server: every address is looked at before it is connected to, and what belongs to it goes nowhere else.

The library's client has a transport of its own kind (httpx2), so the looking of `desktop_agent.network` is done here
once more, with the same words about which addresses are public.
"""

import contextlib
import ssl
from collections.abc import Iterable
from typing import Any, cast

import httpcore2
import httpx2

from desktop_agent.network.checked_backend import Resolver, resolve_host
from desktop_agent.network.failures import PrivateHost
from desktop_agent.network.public_addresses import is_public_address
from desktop_agent.tools.mcp.web.hosts import host_of_url, is_private_host, is_secure, proxy_for
from desktop_agent.vocabulary.errors import Sentence, ToolFailed


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
