"""Fetch from the web: connections checked before use, one request to one host, and pictures.

Nothing about the person is sent: no cookie, no key, no referrer. Every address of a name is checked before anything is
sent; redirects are answers like any other. Behind a proxy, the proxy finds the address. Import it late: it loads
httpcore.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urljoin

import httpcore

from desktop_agent.network.hosts import (
    TIMEOUT_REMEDY,
    FetchFailed,
    PrivateHost,
    is_public_address,
    parse_web_url,
    timeout_error,
    url_host,
)
from desktop_agent.network.system_proxy import proxy_for, proxy_refusal
from desktop_agent.network.tls import tls_context
from desktop_agent.types.blocks import detect_media_type
from desktop_agent.types.errors import ImageRefused, Sentence

if TYPE_CHECKING:
    import httpx


Resolver = Callable[[str, int], Awaitable[list[str]]]
"""All addresses of a host, in the order in which they are tried. Raises OSError."""


async def resolve_host(host: str, port: int) -> list[str]:
    """Return a host's addresses as the system finds them. Raises OSError."""
    infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in infos))


async def resolve_checked(host: str, port: int, allowed: frozenset[str], resolve: Resolver) -> list[str]:
    """Return all addresses of a host. Raises OSError, and PrivateHost for a private one unless `allowed`."""
    addresses = await resolve(host, port)
    for address in addresses:
        _require_public(host, address, allowed)
    return addresses


def _require_public(host: str, address: str, allowed: frozenset[str]) -> None:
    if host not in allowed and not is_public_address(address):
        raise PrivateHost(host, address)


class CheckedBackend(httpcore.AsyncNetworkBackend):
    """Connects only to addresses that it has checked. `allowed` hosts may have a private address."""

    def __init__(
        self, inner: httpcore.AsyncNetworkBackend, allowed: frozenset[str], resolve: Resolver = resolve_host
    ) -> None:
        self.inner = inner
        self._allowed = allowed
        self._resolve = resolve

    async def connect_tcp(self, host: str, port: int, *arguments: Any, **options: Any) -> httpcore.AsyncNetworkStream:
        """Connect to the first address that answers. Raises PrivateHost when one of them is private."""
        failure: Exception = httpcore.ConnectError(f"no address of {host}")
        for address in await resolve_checked(host, port, self._allowed, self._resolve):
            try:
                return await self.inner.connect_tcp(address, port, *arguments, **options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def check_literal(self, host: str) -> None:
        """Check a host that is itself an address, in any spelling; names are not looked up. Raises PrivateHost."""
        getaddrinfo = asyncio.get_running_loop().getaddrinfo
        try:
            infos = await getaddrinfo(host.rstrip("."), None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        except OSError:
            return
        _require_public(host, str(infos[0][4][0]), self._allowed)


_HTTP = b"HTTP/"
_TLS_RECORDS = (0x15, 0x16)  # an alert, a handshake


def close_failed_handshakes(
    transport: "httpx.AsyncHTTPTransport", backend: httpcore.AsyncNetworkBackend | None = None
) -> "httpx.AsyncHTTPTransport":
    """Make a transport close connections whose TLS handshake is given up, and return it.

    `backend` opens the connections, in place of the library's own. If the version of the libraries is built
    differently, the transport is left as it is.
    """
    pool = getattr(transport, "_pool", None)
    inner = getattr(pool, "_network_backend", None)
    if isinstance(pool, httpcore.AsyncConnectionPool) and isinstance(inner, httpcore.AsyncNetworkBackend):
        # The pool accepts a backend only when it is created, and httpx creates it.
        pool._network_backend = ClosingBackend(backend or inner)  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001
    return transport


class NotHttp(httpcore.RemoteProtocolError):
    """The first bytes of an answer are not HTTP. `is_tls`: they are TLS."""

    is_tls = False


def _check_first_bytes(stream: httpcore.AsyncNetworkStream) -> httpcore.AsyncNetworkStream:
    """Make the first read of a stream raise NotHttp for other bytes, and return the stream."""
    read, start = stream.read, bytearray()

    async def checking(max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        data = await read(max_bytes, timeout)
        start.extend(data[: len(_HTTP)])
        if not _HTTP.startswith(start[: len(_HTTP)]):
            error = NotHttp("the answer does not begin with a status line")
            error.is_tls = start[0] in _TLS_RECORDS
            raise error
        if len(start) >= len(_HTTP) or not data:
            stream.read = read
        return data

    stream.read = checking
    return stream


class ClosingBackend(httpcore.AsyncNetworkBackend):
    """Opens connections as `inner` does, and closes those whose TLS handshake is given up."""

    def __init__(self, inner: httpcore.AsyncNetworkBackend) -> None:
        self._inner = inner

    async def connect_tcp(self, host: str, port: int, *arguments: Any, **options: Any) -> httpcore.AsyncNetworkStream:
        """Connect. The stream stays the library's own object: httpx_transport checks its class."""
        stream = _check_first_bytes(await self._inner.connect_tcp(host, port, *arguments, **options))
        start_tls = stream.start_tls

        async def closing(*arguments: Any, **options: Any) -> httpcore.AsyncNetworkStream:
            try:
                return _check_first_bytes(await start_tls(*arguments, **options))
            except BaseException:
                await stream.aclose()
                raise

        stream.start_tls = closing
        return stream


MAX_REDIRECTS = 5
REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class FetchTimeouts:
    """Seconds: for a connection, between two pieces, and in total. Callers of open_url enforce the total themselves."""

    connect: float = 10.0
    idle: float = 20.0
    total: float = 60.0


def _library_backend() -> httpcore.AsyncNetworkBackend:
    return cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())


@dataclass(frozen=True, slots=True)
class Connector:
    """How names are resolved, and which backend connects to an address."""

    resolve: Resolver = resolve_host
    backend: httpcore.AsyncNetworkBackend = field(default_factory=_library_backend)


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """The head of an answer, with header names in lower case, and its body as it comes, still encoded."""

    status: int
    headers: Mapping[str, str]
    body: AsyncIterator[bytes]

    @property
    def redirect_url(self) -> str | None:
        return self.headers.get("location") if self.status in REDIRECT_STATUSES else None

    @property
    def length(self) -> int | None:
        """Return the number of bytes that the server announces."""
        length = self.headers.get("content-length", "")
        return int(length) if length.isdecimal() and length.isascii() and len(length) < 20 else None


@asynccontextmanager
async def open_url(
    url: "httpx.URL",
    headers: Mapping[str, str],
    *,
    allowed: frozenset[str],
    timeouts: FetchTimeouts,
    way: Connector | None = None,
) -> AsyncGenerator[FetchResponse, None]:
    """Send a GET request; the connection is closed afterwards. `allowed` hosts may have a private address.

    Raises PrivateHost, and FetchFailed for everything else that goes wrong, also while the body is read.
    """
    host = url_host(url)
    target = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
    limits = {"connect": timeouts.connect, "read": timeouts.idle, "write": timeouts.idle, "pool": timeouts.connect}
    sent_headers = [*headers.items(), ("User-Agent", "desktop-agent")]
    try:
        async with (
            await _pool(url, allowed, way or Connector()) as pool,
            pool.stream("GET", target, headers=sent_headers, extensions={"timeout": limits}) as response,
        ):
            response_headers = {
                key.decode("latin-1").lower(): value.decode("latin-1") for key, value in response.headers
            }
            yield FetchResponse(response.status, response_headers, response.aiter_stream())
    except httpcore.TimeoutException:
        raise FetchFailed(Sentence("“{host}” does not answer.", {"host": host}), TIMEOUT_REMEDY) from None
    except httpcore.ProxyError as error:
        raise proxy_refusal(host, str(error).partition(" ")[0]) from None
    except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
        sentence = Sentence("“{host}” could not be reached.", {"host": host})
        raise FetchFailed(sentence, "Check the connection, then load it again.", detail=str(error)[:300]) from None


async def _pool(url: "httpx.URL", allowed: frozenset[str], connector: Connector) -> httpcore.AsyncConnectionPool:
    host = url_host(url)
    proxy = proxy_for(url.scheme, host)
    uses_tls = url.scheme == "https" or (proxy is not None and proxy.scheme == "https")
    context = await asyncio.to_thread(tls_context) if uses_tls else None
    backend = CheckedBackend(ClosingBackend(connector.backend), allowed, connector.resolve)
    if proxy is None:
        return httpcore.AsyncConnectionPool(ssl_context=context, network_backend=backend)
    await backend.check_literal(host)
    auth = (proxy.username, proxy.password) if proxy.username else None
    proxy_url = httpcore.URL(scheme=proxy.raw_scheme, host=proxy.raw_host, port=proxy.port, target=b"/")
    proxy_context = context if proxy.scheme == "https" else None
    return httpcore.AsyncHTTPProxy(
        proxy_url, auth, ssl_context=context, proxy_ssl_context=proxy_context, network_backend=backend.inner
    )


MAX_IMAGE_BYTES = 20_000_000
"""Bytes."""

_MAGIC_SIZE = 16
_IMAGE_HEADERS = {"Accept": "image/png, image/jpeg, image/gif, image/webp", "Accept-Encoding": "identity"}


class PrivateImageHost(ImageRefused):
    """The picture is on this machine or in a private network. `host` is what the person would have to allow."""

    kind = "private_address"
    default_remedy = "Load it only if you know this host: whoever wrote the text chose the address."

    def __init__(self, refused: PrivateHost) -> None:
        super().__init__(refused.sentence)
        self.host = refused.host


async def fetch_image(
    url: str, *, allowed: frozenset[str] = frozenset(), timeouts: FetchTimeouts | None = None
) -> bytes:
    """Return the bytes of a PNG, JPEG, GIF or WebP picture. `allowed` hosts may have a private address.

    Raises PrivateImageHost, and ImageRefused for everything else that goes wrong. Cancelling closes the connection.
    """
    try:
        return await _fetch_image(url, allowed, timeouts or FetchTimeouts())
    except PrivateHost as error:
        raise PrivateImageHost(error) from None
    except FetchFailed as error:
        raise ImageRefused(error.sentence, error.remedy, detail=error.detail) from None


async def _fetch_image(url: str, allowed: frozenset[str], timeouts: FetchTimeouts) -> bytes:
    address = _parse_url(url)
    try:
        async with asyncio.timeout(timeouts.total):
            for _ in range(MAX_REDIRECTS + 1):
                async with open_url(address, _IMAGE_HEADERS, allowed=allowed, timeouts=timeouts) as response:
                    result = await _read_response(response, url_host(address))
                if isinstance(result, bytes):
                    return result
                address = _follow_redirect(address, result)
    except TimeoutError:
        raise timeout_error(url_host(address), timeouts.total) from None
    raise ImageRefused(Sentence("The address redirects without end."), "Open it in a browser.")


def _follow_redirect(address: "httpx.URL", target: str) -> "httpx.URL":
    try:
        joined = urljoin(str(address), target)
    except ValueError:
        raise ImageRefused.not_a_web_address(target) from None
    return _parse_url(joined)


def _parse_url(url: str) -> "httpx.URL":
    parsed = parse_web_url(url)
    if parsed is None:
        raise ImageRefused.not_a_web_address(url)
    return parsed


async def _read_response(response: FetchResponse, host: str) -> bytes | str:
    """Return the picture, or the URL of a redirect."""
    if response.redirect_url is not None:
        return response.redirect_url
    if response.status != 200:
        values = {"host": host, "status": str(response.status)}
        sentence = Sentence("“{host}” has no picture there (status {status}).", values)
        raise ImageRefused(sentence, "Open it in a browser.")
    if (response.length or 0) > MAX_IMAGE_BYTES:
        raise _too_large()
    return await _read_image(response.body)


async def _read_image(chunks: AsyncIterable[bytes]) -> bytes:
    data = bytearray()
    is_checked = False
    async for chunk in chunks:
        data += chunk
        if len(data) > MAX_IMAGE_BYTES:
            raise _too_large()
        if not is_checked and len(data) >= _MAGIC_SIZE:
            is_checked = True
            _require_image(bytes(data[:_MAGIC_SIZE]))
    _require_image(bytes(data[:_MAGIC_SIZE]))
    return bytes(data)


def _require_image(start: bytes) -> None:
    """Raise ImageRefused unless the first bytes are those of a picture; the server's media type does not count."""
    if detect_media_type(start) is None:
        raise ImageRefused(
            Sentence("The file there is not a PNG, JPEG, GIF or WebP image."), "Open the address in a browser."
        )


def _too_large() -> ImageRefused:
    limit = f"{MAX_IMAGE_BYTES // 1_000_000} MB"
    return ImageRefused(Sentence("The picture is larger than {limit}.", {"limit": limit}), "Open it in a browser.")
