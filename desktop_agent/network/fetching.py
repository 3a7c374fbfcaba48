"""One question to one host of the web. Nothing about the person goes along: no cookie, no key, no referrer.

Every address that a name leads to is looked at before anything is sent there. Redirects are answers like any other: who
follows one asks again, and everything is looked at again.

Behind a proxy the name of a host is told to nobody but the proxy: it finds the address, and it decides whether that may
be a private one. Only an address that stands in the URL itself is looked at here. (Windows and macOS may look a name up
to compare it with the system's list of hosts that need no proxy.)
"""

import asyncio
import urllib.request
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import httpcore

from desktop_agent.network.checked_backend import CheckedBackend, Resolver, resolve_host
from desktop_agent.network.failures import TIMEOUT_REMEDY, FetchFailed
from desktop_agent.network.handshakes import ClosingBackend
from desktop_agent.network.web_addresses import parse_web_url, url_host
from desktop_agent.vocabulary.endpoints import is_loopback
from desktop_agent.vocabulary.errors import Sentence

if TYPE_CHECKING:
    import ssl

    import httpx

MAX_REDIRECTS = 5
REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class FetchTimeouts:
    """Seconds: for a connection, between two pieces, and for all of it, which whoever asks has to watch."""

    connect: float = 10.0
    idle: float = 20.0
    total: float = 60.0


def _library_backend() -> httpcore.AsyncNetworkBackend:
    return cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())


@dataclass(frozen=True, slots=True)
class Connector:
    """How names become addresses, and how an address is connected to."""

    resolve: Resolver = resolve_host
    backend: httpcore.AsyncNetworkBackend = field(default_factory=_library_backend)


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """The head of an answer, names of headers in lower case, and its body as it comes, still encoded."""

    status: int
    headers: Mapping[str, str]
    body: AsyncIterator[bytes]

    @property
    def redirect_url(self) -> str | None:
        """Where it lies instead."""
        return self.headers.get("location") if self.status in REDIRECT_STATUSES else None

    @property
    def length(self) -> int | None:
        """Bytes by its own account."""
        said = self.headers.get("content-length", "")
        return int(said) if said.isdecimal() and said.isascii() and len(said) < 20 else None


@asynccontextmanager
async def open_url(
    url: "httpx.URL",
    headers: Mapping[str, str],
    *,
    allowed: frozenset[str],
    patience: FetchTimeouts,
    way: Connector | None = None,
) -> AsyncGenerator[FetchResponse, None]:
    """Ask for it; the connection is gone afterwards. `allowed` names hosts that may have a private address.

    Raises PrivateHost, and FetchFailed for everything else that goes wrong, also while the body is read.
    """
    name = url_host(url)
    where = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
    limits = {"connect": patience.connect, "read": patience.idle, "write": patience.idle, "pool": patience.connect}
    sent = [*headers.items(), ("User-Agent", "desktop-agent")]
    try:
        async with (
            await _pool(url, allowed, way or Connector()) as pool,
            pool.stream("GET", where, headers=sent, extensions={"timeout": limits}) as answer,
        ):
            came = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in answer.headers}
            yield FetchResponse(answer.status, came, answer.aiter_stream())
    except httpcore.TimeoutException:
        raise FetchFailed(Sentence("“{host}” does not answer.", {"host": name}), TIMEOUT_REMEDY) from None
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError, OSError) as error:
        what = Sentence("“{host}” could not be reached.", {"host": name})
        raise FetchFailed(what, "Check the connection, then load it again.", detail=str(error)[:300]) from None


async def _pool(url: "httpx.URL", allowed: frozenset[str], way: Connector) -> httpcore.AsyncConnectionPool:
    """A way to this host alone, gone after use."""
    context = await asyncio.to_thread(tls_context) if url.scheme == "https" else None
    host = url_host(url)
    backend = CheckedBackend(ClosingBackend(way.backend), allowed, way.resolve)
    proxy = proxy_for(url.scheme, host)
    if proxy is None:
        return httpcore.AsyncConnectionPool(ssl_context=context, network_backend=backend)
    await backend.check_literal(host)
    auth = (proxy.username, proxy.password) if proxy.username else None
    place = httpcore.URL(scheme=proxy.raw_scheme, host=proxy.raw_host, port=proxy.port, target=b"/")
    return httpcore.AsyncHTTPProxy(place, auth, ssl_context=context, network_backend=backend.inner)


def tls_context() -> "ssl.SSLContext":
    """For connections to servers that are known by their certificates. Imports httpx, and reads files."""
    import httpx

    return httpx.create_ssl_context()


def proxy_for(scheme: str, host: str) -> "httpx.URL | None":
    """The proxy of the environment or the system; none for this machine. Raises FetchFailed for an unusable one."""
    if is_loopback(host):
        return None
    proxies = urllib.request.getproxies()
    url = proxies.get(scheme) or proxies.get("all")
    if not url or urllib.request.proxy_bypass(host):
        return None
    address = url if "://" in url else f"http://{url}"
    if not address.lower().startswith(("http://", "https://")):
        kind = address.partition("://")[0]
        what = Sentence("The proxy that is set is of a kind that is not supported ({kind}).", {"kind": kind})
        raise FetchFailed(what)
    parsed = parse_web_url(address)
    if parsed is None:
        remedy = "Correct it in the system's settings or in the environment (http_proxy, https_proxy, all_proxy)."
        raise FetchFailed(Sentence("The proxy that is set has no usable address."), remedy)
    return parsed
