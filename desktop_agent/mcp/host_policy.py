"""Which hosts an MCP server may lead to, and by which scheme."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from desktop_agent.network.hosts import canonical_host, is_local_host
from desktop_agent.types.providers import is_loopback

if TYPE_CHECKING:
    from desktop_agent.network.fetch import Resolver

MAX_OPENED_URL_LENGTH = 8_000


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """The address of a server. `headers` go to it alone; `private_hosts` may have a private address.

    `on_unauthorized` is called for a 401. `allows_other_servers`: requests also go to the servers that it names for
    signing in.
    """

    url: str
    private_hosts: frozenset[str] = frozenset()
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    on_unauthorized: Callable[[], None] = lambda: None
    allows_other_servers: bool = False
    resolve: "Resolver | None" = None


def allowed_private_hosts(url: str, allowed: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return the hosts that may have a private address: the server's own, and those of the settings.

    A server with a public name gets none, unless it is allowed itself: it must not lead into a private network.
    """
    host = host_of_url(url)
    return frozenset({*allowed, host}) if host and (is_private_host(host) or host in allowed) else frozenset()


def host_of_url(url: str) -> str:
    """Return the host of a URL; empty where there is none."""
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def is_private_host(host: str) -> bool:
    """Whether a name belongs to this machine or a private network, or an address is not public. Nothing is resolved."""
    canonical = canonical_host(host)
    return canonical is None or is_local_host(canonical)


def may_open_url(url: str, private_hosts: frozenset[str]) -> bool:
    """Whether the person may be sent to a page: https, or http on this machine, and no private host but
    `private_hosts`.
    """
    host = host_of_url(url)
    if not host or len(url) > MAX_OPENED_URL_LENGTH or not url.isprintable() or " " in url:
        return False
    parts = urlsplit(url)
    try:
        has_port = parts.port != 0
    except ValueError:
        return False
    is_complete = has_port and parts.username is None and parts.password is None
    return is_complete and is_secure(parts.scheme, host) and (host in private_hosts or not is_private_host(host))


def is_secure(scheme: str, host: str) -> bool:
    """Whether nobody between can read what is sent."""
    return scheme.lower() == "https" or (scheme.lower() == "http" and is_loopback(host))
