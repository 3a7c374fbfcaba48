"""Pictures of the web, fetched because the person said so: the one way in which a text can reach the network.

Only http and https; every address that a name or a redirect leads to is looked at before anything is sent there;
nothing about the person goes along: no cookie, no key, no referrer.
"""

import asyncio
import ipaddress
import socket
import urllib.request
from collections.abc import AsyncIterable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote, urljoin, urlsplit

import httpcore

from desktop_agent.providers.transport.handshakes import ClosingBackend
from desktop_agent.providers.transport.hosts import is_loopback
from desktop_agent.vocabulary.errors import ImageRefused, Sentence
from desktop_agent.vocabulary.images import media_type_of

if TYPE_CHECKING:
    import ssl

    import httpx

LIMIT = 20_000_000
"""Bytes."""

REDIRECTS = 5
_MAGIC = 16
_MOVED = {301, 302, 303, 307, 308}
_TOO_SLOW = "Try again, or open the address in a browser."


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: for a connection, between two pieces, and for all of it."""

    connect: float = 10.0
    idle: float = 20.0
    total: float = 60.0


class PrivateAddress(ImageRefused):
    """The picture lies on this machine or in a private network. `host` is whom the person would have to allow."""

    kind = "private_address"

    def __init__(self, host: str, address: str) -> None:
        values = {"host": host, "address": address}
        what = "“{host}” is no public server: its address is {address}."
        if host == address:
            what = "“{host}” is no public server."
        remedy = "Load it only if you know this machine: whoever wrote the text chose the address."
        super().__init__(Sentence(what, values), remedy)
        self.host = host


async def fetch_picture(url: str, *, allowed: frozenset[str] = frozenset(), patience: Patience | None = None) -> bytes:
    """The bytes of a PNG, JPEG, GIF or WebP picture. `allowed` names hosts that may have a private address.

    Raises PrivateAddress, and ImageRefused for everything else that goes wrong. Cancelling closes the connection.
    """
    patience = patience or Patience()
    place = url
    try:
        async with asyncio.timeout(patience.total):
            for _ in range(REDIRECTS + 1):
                found = await _ask(_parsed(place), allowed, patience)
                if isinstance(found, bytes):
                    return found
                place = urljoin(place, found)
    except TimeoutError:
        values = {"host": _parsed(place).host, "seconds": f"{patience.total:g}"}
        raise ImageRefused(Sentence("“{host}” took longer than {seconds} seconds.", values), _TOO_SLOW) from None
    raise ImageRefused(Sentence("The address leads from one to the next, without end."), "Open it in a browser.")


def _parsed(url: str) -> "httpx.URL":
    import httpx

    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        raise ImageRefused.not_a_web_address(url) from None
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise ImageRefused.not_a_web_address(url)
    return parsed


async def _ask(url: "httpx.URL", allowed: frozenset[str], patience: Patience) -> bytes | str:
    """The picture, or where it lies instead."""
    name = url.raw_host.decode("ascii")
    where = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
    limits = {"connect": patience.connect, "read": patience.idle, "write": patience.idle, "pool": patience.connect}
    headers = [(b"Accept", b"image/png, image/jpeg, image/gif, image/webp"), (b"Accept-Encoding", b"identity")]
    headers.append((b"User-Agent", b"desktop-agent"))
    try:
        async with (
            await _pool(url, allowed) as pool,
            pool.stream("GET", where, headers=headers, extensions={"timeout": limits}) as answer,
        ):
            return await _answered(answer, name)
    except httpcore.TimeoutException:
        raise ImageRefused(Sentence("“{host}” does not answer.", {"host": name}), _TOO_SLOW) from None
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError, OSError) as error:
        what = Sentence("“{host}” could not be reached.", {"host": name})
        raise ImageRefused(what, "Check the connection, then load it again.", detail=str(error)[:300]) from None


async def _answered(answer: httpcore.Response, host: str) -> bytes | str:
    headers = {name.lower(): value.decode("latin-1") for name, value in answer.headers}
    if answer.status in _MOVED and b"location" in headers:
        return headers[b"location"]
    if answer.status != 200:
        values = {"host": host, "status": str(answer.status)}
        raise ImageRefused(
            Sentence("“{host}” has no picture there (status {status}).", values), "Open it in a browser."
        )
    length = headers.get(b"content-length", "")
    if length.isdecimal() and int(length) > LIMIT:
        raise _too_large()
    return await _body(answer.aiter_stream())


async def _body(chunks: AsyncIterable[bytes]) -> bytes:
    came = bytearray()
    looked = False
    async for chunk in chunks:
        came += chunk
        if len(came) > LIMIT:
            raise _too_large()
        if not looked and len(came) >= _MAGIC:
            looked = True
            _look(bytes(came[:_MAGIC]))
    _look(bytes(came[:_MAGIC]))
    return bytes(came)


def _look(start: bytes) -> None:
    """What a picture is is told by its first bytes; what a server calls it does not count."""
    if media_type_of(start) is None:
        raise ImageRefused(
            Sentence("What lies there is not a PNG, JPEG, GIF or WebP image."), "Open the address in a browser."
        )


def _too_large() -> ImageRefused:
    limit = f"{LIMIT // 1_000_000} MB"
    return ImageRefused(Sentence("The picture is larger than {limit}.", {"limit": limit}), "Open it in a browser.")


async def _pool(url: "httpx.URL", allowed: frozenset[str]) -> httpcore.AsyncConnectionPool:
    """A way to this host alone, gone after use."""
    context = await asyncio.to_thread(_context) if url.scheme == "https" else None
    host = url.raw_host.decode("ascii")
    backend = _Checked(ClosingBackend(cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())), allowed)
    proxy = None if is_loopback(host) else _proxy(url.scheme, host)
    if proxy is None:
        return httpcore.AsyncConnectionPool(ssl_context=context, network_backend=backend)
    # Whoever resolves the name is the proxy. What can be known here is looked at here.
    await backend.look(host, url.port or (443 if url.scheme == "https" else 80), is_asked=False)
    parts = urlsplit(proxy)
    auth = (unquote(parts.username or ""), unquote(parts.password or "")) if parts.username else None
    port = f":{parts.port}" if parts.port else ""
    return httpcore.AsyncHTTPProxy(
        f"{parts.scheme}://{parts.hostname}{port}", auth, ssl_context=context, network_backend=backend.inner
    )


def _context() -> "ssl.SSLContext":
    import httpx

    return httpx.create_ssl_context()


def _proxy(scheme: str, host: str) -> str | None:
    proxies = urllib.request.getproxies()
    url = proxies.get(scheme) or proxies.get("all")
    if not url or urllib.request.proxy_bypass(host):
        return None
    address = url if "://" in url else f"http://{url}"
    if not address.lower().startswith(("http://", "https://")):
        kind = address.partition("://")[0]
        what = Sentence("The proxy that is set is of a kind that is not supported ({kind}).", {"kind": kind})
        raise ImageRefused(what, "Open the address in a browser.")
    return address


class _Checked(httpcore.AsyncNetworkBackend):
    """Connects to an address only after looking at it, and to no other than the one that it looked at."""

    def __init__(self, inner: httpcore.AsyncNetworkBackend, allowed: frozenset[str]) -> None:
        self.inner = inner
        self._allowed = allowed

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  the library's own interface
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """The first of its addresses that answers."""
        failure: Exception = httpcore.ConnectError(f"no address of {host}")
        for address in await self.look(host, port):
            try:
                return await self.inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def look(self, host: str, port: int, *, is_asked: bool = True) -> list[str]:
        """All addresses of a host. Raises PrivateAddress when one of them is private and the host is not allowed."""
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError:
            if not is_asked:
                return []
            raise
        addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
        for address in addresses:
            if host not in self._allowed and not _is_public(address):
                raise PrivateAddress(host, address)
        return addresses

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ARG002, ASYNC109
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore.AsyncNetworkStream:
        """Never: pictures of the web do not lie behind sockets of this machine."""
        raise httpcore.ConnectError(path)

    async def sleep(self, seconds: float) -> None:
        """As the library does it."""
        await self.inner.sleep(seconds)


def _is_public(address: str) -> bool:
    """Whether everybody can reach it; of addresses that carry an IPv4 address, that one counts."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
        if inner is None and found in _TRANSLATED:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if inner is not None:
            return inner.is_global and not inner.is_multicast
    return found.is_global and not found.is_multicast


# RFC 6052: an IPv4 address in the last four bytes.
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
