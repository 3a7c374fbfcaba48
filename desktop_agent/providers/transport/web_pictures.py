"""Pictures of the web, fetched because the person said so: the one way in which a text can reach the network.

Only http and https; every address that a name or a redirect leads to is looked at before anything is sent there;
nothing about the person goes along: no cookie, no key, no referrer.

Behind a proxy the name of a host is told to nobody but the proxy: it finds the address, and it decides whether that may
be a private one. Only an address that stands in the URL itself is looked at here. (Windows and macOS may look a name up
to compare it with the system's list of hosts that need no proxy.)
"""

import asyncio
import ipaddress
import socket
import urllib.request
from collections.abc import AsyncIterable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast
from urllib.parse import urljoin

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
_LAST_PORT = 65535
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
                place = _joined(place, found)
    except TimeoutError:
        values = {"host": _parsed(place).raw_host.decode("ascii"), "seconds": f"{patience.total:g}"}
        raise ImageRefused(Sentence("“{host}” took longer than {seconds} seconds.", values), _TOO_SLOW) from None
    raise ImageRefused(Sentence("The address leads from one to the next, without end."), "Open it in a browser.")


def _joined(place: str, found: str) -> str:
    try:
        return urljoin(place, found)
    except ValueError:
        raise ImageRefused.not_a_web_address(found) from None


def _parsed(url: str) -> "httpx.URL":
    parsed = _web_address(url)
    if parsed is None:
        raise ImageRefused.not_a_web_address(url)
    return parsed


def _web_address(url: str) -> "httpx.URL | None":
    """None for what is no address of http or https, and for a host or port that cannot exist."""
    import httpx

    try:
        parsed = httpx.URL(url)
        host = parsed.raw_host.decode("ascii")
        # As looking it up would do, which fails for labels that are empty or longer than 63 (RFC 1035).
        host.encode("idna")
    except (httpx.InvalidURL, ValueError):
        return None
    # An IPv6 address may have a zone after a percent sign; in a name that sign stands for what no name may hold.
    is_host = host and (":" in host or "%" not in host)
    is_usable = parsed.scheme in {"http", "https"} and is_host and (parsed.port or 0) <= _LAST_PORT
    return parsed if is_usable else None


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
            _require_picture(bytes(came[:_MAGIC]))
    _require_picture(bytes(came[:_MAGIC]))
    return bytes(came)


def _require_picture(start: bytes) -> None:
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
    await backend.look_at_literal(host)
    auth = (proxy.username, proxy.password) if proxy.username else None
    place = httpcore.URL(scheme=proxy.raw_scheme, host=proxy.raw_host, port=proxy.port, target=b"/")
    return httpcore.AsyncHTTPProxy(place, auth, ssl_context=context, network_backend=backend.inner)


def _context() -> "ssl.SSLContext":
    import httpx

    return httpx.create_ssl_context()


def _proxy(scheme: str, host: str) -> "httpx.URL | None":
    proxies = urllib.request.getproxies()
    url = proxies.get(scheme) or proxies.get("all")
    if not url or urllib.request.proxy_bypass(host):
        return None
    address = url if "://" in url else f"http://{url}"
    if not address.lower().startswith(("http://", "https://")):
        kind = address.partition("://")[0]
        what = Sentence("The proxy that is set is of a kind that is not supported ({kind}).", {"kind": kind})
        raise ImageRefused(what, "Open the address in a browser.")
    parsed = _web_address(address)
    if parsed is None:
        remedy = "Correct it in the system's settings or in the environment (http_proxy, https_proxy, all_proxy)."
        raise ImageRefused(Sentence("The proxy that is set has no usable address."), remedy)
    return parsed


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

    async def look(self, host: str, port: int) -> list[str]:
        """All addresses of a host. Raises PrivateAddress when one of them is private and the host is not allowed."""
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
        for address in addresses:
            self._require_public(host, address)
        return addresses

    async def look_at_literal(self, host: str) -> None:
        """As `look` for a host that is itself an address, however it is written; a name is not looked up."""
        ask = asyncio.get_running_loop().getaddrinfo
        try:
            found = await ask(host.rstrip("."), None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        except OSError:
            return
        self._require_public(host, str(found[0][4][0]))

    def _require_public(self, host: str, address: str) -> None:
        if host not in self._allowed and not _is_public(address):
            raise PrivateAddress(host, address)

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
        if inner is None and any(found in network for network in _CARRYING):
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if inner is None and found not in _GIVEN:
            return False
        if inner is not None:
            return inner.is_global and not inner.is_multicast
    return found.is_global and not found.is_multicast


# With an IPv4 address in the last four bytes (RFC 6052, 8215, 4291). In the rest of 64:ff9b:1::/48, which is for local
# use, it may stand elsewhere: that is never public.
_CARRYING = [ipaddress.IPv6Network(each) for each in ("64:ff9b::/96", "64:ff9b:1::/96", "::/96")]
# All of IPv6 that is given out as global unicast (IANA, IPv6 address space).
_GIVEN = ipaddress.IPv6Network("2000::/3")
