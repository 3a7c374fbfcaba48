"""Parse the address that a model gave, and refuse private hosts."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from desktop_agent.network.hosts import (
    BLOCKED_PORTS,
    canonical_host,
    canonical_hosts,
    is_local_name,
    is_public_address,
    parse_web_url,
    url_host,
)
from desktop_agent.types.errors import Sentence, ToolFailed

if TYPE_CHECKING:
    from desktop_agent.network.hosts import WebUrl

MAX_ADDRESS_LENGTH = 4_000
_REMEDY = "Use an http or https address of a public server, such as https://example.org/page."
_PRIVATE = "Only the person can allow this host, in Settings → Network. Ask them, or use a public server."


class HostRefused(ToolFailed):
    """The host is this machine or lies in a private network, and the person has not allowed it."""

    kind = "private_address"


@dataclass(frozen=True, slots=True)
class WebPageAddress:
    """The normalized address of a page: no name or password, no fragment, one form of the host.

    `host` is as rules compare it: lower case, punycode, IP addresses as such, IPv6 without brackets.
    """

    url: "WebUrl"
    host: str

    @property
    def text(self) -> str:
        """The address as it is sent and shown."""
        return str(self.url)


def parse_page_address(url: str, allowed: Iterable[str]) -> WebPageAddress:
    """Parse an address without asking anybody. Imports httpx. `allowed` are private hosts.

    Raises ToolFailed for what is no address of the web, and HostRefused.
    """
    parsed = parse_web_url(url.strip()) if len(url) <= MAX_ADDRESS_LENGTH else None
    host = canonical_host(url_host(parsed)) if parsed is not None else None
    if parsed is None or host is None:
        raise ToolFailed(Sentence("“{url}” is not a web address.", {"url": _short_address(url)}), _REMEDY)
    if parsed.userinfo:
        what = "The address carries a name or a password. Nothing of that kind is sent."
        raise ToolFailed(what, "Remove the part before the @.")
    if parsed.port == 0 or parsed.port in BLOCKED_PORTS:
        values = {"port": str(parsed.port)}
        raise ToolFailed(Sentence("Port {port} belongs to a service that is not the web.", values), _REMEDY)
    if host not in canonical_hosts(allowed) and (is_local_name(host) or not _may_be_public(host)):
        raise HostRefused(Sentence("“{host}” is not a public server.", {"host": host}), _PRIVATE)
    return WebPageAddress(parsed.copy_with(host=host, fragment=None), host)


def host_refused(host: str, address: str) -> HostRefused:
    """Return the refusal of a name that leads to a private address."""
    values = {"host": host, "address": address}
    return HostRefused(Sentence("“{host}” is not a public server: its address is {address}.", values), _PRIVATE)


def _may_be_public(host: str) -> bool:
    """Return whether the host may be public; a name may be anything until it is looked up."""
    try:
        return is_public_address(host)
    except ValueError:
        return True


def _short_address(url: str) -> str:
    """Return only the host of an address that may carry a password."""
    host = url.rpartition("@")[2][:200]
    return "".join(char if char.isprintable() else "�" for char in host)
