"""Which hosts an MCP server may have us reach, by which scheme, and through which proxy."""

import ipaddress
from urllib.parse import urlsplit

from desktop_agent.network.hosts import canonical_host, is_local_name, is_public_address
from desktop_agent.types.providers import is_loopback

MAX_OPENED_URL_LENGTH = 8_000


def allowed_private_hosts(url: str, allowed: frozenset[str] = frozenset()) -> frozenset[str]:
    """Those that may have a private address: what the person entered as such, and what the settings allow.

    A server with a public name has none of them, unless it is allowed itself: nothing may lead from there into a
    private network.
    """
    host = host_of_url(url)
    return frozenset({*allowed, host}) if host and (is_private_host(host) or host in allowed) else frozenset()


def host_of_url(url: str) -> str:
    """As it is connected to; empty for what has none."""
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def is_private_host(host: str) -> bool:
    """By its looks alone: a name of this machine or a private network, or an address that is not public."""
    form = canonical_host(host)
    if form is None or is_local_name(form):
        return True
    try:
        return not is_public_address(str(ipaddress.ip_address(form.partition("%")[0])))
    except ValueError:
        return False


def may_open_url(url: str, own: frozenset[str]) -> bool:
    """Whether a page may be shown to the person: https, or http on this machine, and no private host but `own`."""
    try:
        parts = urlsplit(url)
        is_whole = bool(parts.hostname) and parts.username is None and parts.password is None and len(url) < 65_536
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        return False
    host = host_of_url(url)
    if not is_whole or not has_port or len(url) > MAX_OPENED_URL_LENGTH or not url.isprintable() or " " in url:
        return False
    return is_secure(parts.scheme, host) and (host in own or not is_private_host(host))


def is_secure(scheme: str, host: str) -> bool:
    """What is sent there is read by nobody on the way."""
    return scheme.lower() == "https" or (scheme.lower() == "http" and is_loopback(host))


def proxy_for(scheme: str, host: str) -> str | None:
    """The proxy of the environment or the system, as for the rest of the program; none for this machine."""
    if is_loopback(host):
        return None
    # Late: it brings half of the standard library along.
    import urllib.request

    found = urllib.request.getproxies()
    url = found.get(scheme) or found.get("all")
    if not url or urllib.request.proxy_bypass(host):
        return None
    return url if "://" in url else f"http://{url}"
