"""Hosts of the web: how they are written and compared, which are public, and which a command was granted.

Imports httpx only inside functions: this module is loaded with the program.
"""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from desktop_agent.types.errors import AgentError, Sentence
from desktop_agent.types.providers import is_loopback

if TYPE_CHECKING:
    import httpx

    WebUrl: TypeAlias = httpx.URL
    """For modules that should not know which library speaks HTTP here."""

_LAST_PORT = 65535
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")

# Ports of services that a request could attack (WHATWG Fetch, "port blocking").
_BLOCKED = (
    *(1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109),
    *(110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530),
    *(531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190),
    *(5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080),
)
BLOCKED_PORTS = frozenset(_BLOCKED)


def parse_web_url(url: str) -> "httpx.URL | None":
    """Return the parsed URL; None if it is not http or https, or if its host or port cannot exist. Imports httpx."""
    import httpx

    try:
        parsed = httpx.URL(url)
        host = parsed.raw_host.decode("ascii")
        # Resolving it would fail for labels that are empty or longer than 63 (RFC 1035).
        host.encode("idna")
    except (httpx.InvalidURL, ValueError):
        return None
    # An IPv6 address may have a zone after a percent sign; names cannot contain it.
    is_host = host and (":" in host or "%" not in host)
    is_usable = parsed.scheme in {"http", "https"} and is_host and (parsed.port or 0) <= _LAST_PORT
    return parsed if is_usable else None


def url_host(url: "httpx.URL") -> str:
    """Return the host as it is sent: punycode, lower case, an IPv6 address without its brackets."""
    return url.raw_host.decode("ascii")


def canonical_host(host: str) -> str | None:
    """Return the one form of a host in which hosts are compared: lower case, no final dot, addresses normalised.

    Numbers may be octal, hexadecimal, and fewer than four (WHATWG URL, "IPv4 parser"), and IPv6 may carry IPv4. None
    for what would have to be such an address and is none.
    """
    name = host.lower().strip("[]").removesuffix(".")
    if ":" in name:
        return _parse_ipv6(name)
    parts = name.split(".")
    if not name or not _NUMBER.fullmatch(parts[-1]):
        return name or None
    return _parse_ipv4(parts)


def canonical_ascii_host(host: str) -> str | None:
    """Like `canonical_host`, for a host that may have letters of other languages. Imports httpx."""
    parsed = parse_web_url(f"http://{f'[{host}]' if ':' in host and not host.startswith('[') else host}/")
    return canonical_host(url_host(parsed)) if parsed is not None else None


def canonical_hosts(hosts: Iterable[str]) -> frozenset[str]:
    """Return hosts that a person wrote in the form in which they are compared. Imports httpx."""
    forms = (canonical_ascii_host(host.strip()) for host in hosts)
    return frozenset(host for host in forms if host)


def _parse_ipv6(name: str) -> str | None:
    try:
        address = ipaddress.IPv6Address(name)
    except ValueError:
        return None
    return str(address.ipv4_mapped or address)


def _parse_ipv4(parts: list[str]) -> str | None:
    if len(parts) > 4 or not all(map(_NUMBER.fullmatch, parts)):
        return None
    try:
        *firsts, last = map(_parse_number, parts)
    except ValueError:
        return None
    if max(firsts, default=0) > 0xFF or last >= 256 ** (5 - len(parts)):
        return None
    whole = last + sum(number << 8 * (3 - index) for index, number in enumerate(firsts))
    return str(ipaddress.IPv4Address(whole))


def _parse_number(part: str) -> int:
    """Raises ValueError."""
    if part[:2].lower() == "0x":
        return int(part[2:] or "0", 16)
    return int(part, 8 if part.startswith("0") and len(part) > 1 else 10)


# RFC 6762, 8375, and what ICANN keeps out of the public tree (2024). A name of one word is local, too.
_LOCAL_SUFFIXES = (
    ".local",
    ".internal",
    ".home.arpa",
    ".localdomain",
    ".lan",
    ".corp",
    ".home",
    ".intranet",
    ".private",
)

# With an IPv4 address in the last four bytes (RFC 6052, 8215, 4291). In the rest of 64:ff9b:1::/48, which is for local
# use, it may be elsewhere: that is never public.
_IPV4_CARRYING = [ipaddress.IPv6Network(network) for network in ("64:ff9b::/96", "64:ff9b:1::/96", "::/96")]
# All global unicast addresses of IPv6 (IANA, IPv6 address space).
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")


def is_public_address(address: str) -> bool:
    """Whether an address is public; if it carries an IPv4 address, that one decides."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        inner = parsed.ipv4_mapped or parsed.sixtofour or (parsed.teredo[1] if parsed.teredo else None)
        if inner is None and any(parsed in network for network in _IPV4_CARRYING):
            inner = ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)
        if inner is None and parsed not in _GLOBAL_UNICAST:
            return False
        if inner is not None:
            return inner.is_global and not inner.is_multicast
    return parsed.is_global and not parsed.is_multicast


def is_local_name(host: str) -> bool:
    """Whether a name belongs to this machine or a private network, whatever it resolves to. An address is no name."""
    name = host.rstrip(".").lower()
    if is_loopback(name):
        return True
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return "." not in name or name.endswith(_LOCAL_SUFFIXES)
    return False


def is_local_host(host: str) -> bool:
    """Whether a host is this machine or in a private network, by name or by address."""
    try:
        return is_local_name(host) or not is_public_address(host.strip("[]"))
    except ValueError:  # a public name
        return False


MAX_HOSTS = 20
_MAX_LENGTH = 300
# A name or an IPv4 address, or an IPv6 address in brackets, and maybe a port (RFC 3986, section 3.2).
_AUTHORITY = re.compile(r"(?:\[(?P<literal>[0-9A-Fa-f:.]+)\]|(?P<name>[^\[\]:/?#@\s]+))(?::(?P<port>[0-9]{1,5}))?")
_NAME = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NAMING_HELP = "Name hosts as in “example.org”, “example.org:8443”, “*.example.org” or “[2001:db8::1]”"


@dataclass(frozen=True, slots=True)
class HostAndPort:
    """A host in its canonical form, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.bracketed}:{self.port}"

    @property
    def bracketed(self) -> str:
        """Return the host as it is written before a port."""
        return f"[{self.host}]" if ":" in self.host else self.host


@dataclass(frozen=True, slots=True)
class GrantedHost:
    """One granted host. `*.example.org` is every host below example.org, and not itself. No port: any port."""

    host: str
    port: int | None = None

    def __str__(self) -> str:
        return self.host if self.port is None else str(HostAndPort(self.host, self.port))

    def covers(self, destination: HostAndPort) -> bool:
        """Whether a command may reach this host at this port."""
        return self.port in {None, destination.port} and self.covers_name(destination.host)

    def covers_name(self, host: str) -> bool:
        """Whether a command may reach this host at some port."""
        if self.host.startswith("*."):
            return not _is_address(host) and host.endswith(self.host[1:]) and len(host) >= len(self.host)
        return host == self.host

    def is_plainly_private(self, host: str) -> bool:
        """Whether the grant itself shows that this host is not public: it is an address or a local name."""
        return self.covers_name(host) and (_is_address(host) or is_local_name(host))


def parse_granted_host(text: str) -> GrantedHost:
    """Parse a grant. Imports httpx where it is not ASCII. Raises ValueError with a sentence."""
    name = text.strip()
    printable = "".join(character if character.isprintable() else "�" for character in name[:80])
    if "://" in name or "/" in name:
        raise ValueError(f"“{printable}” is an address. {_NAMING_HELP}, without a scheme and a path.")
    if name.count(":") > 1 and "[" not in name:
        name = f"[{name}]"
    wildcard = name.startswith("*.")
    parts = split_authority(name.removeprefix("*.")) if len(name) <= _MAX_LENGTH else None
    host = _canonical_form(parts[0]) if parts is not None else None
    if parts is None or host is None or (wildcard and ("." not in host or _is_address(host))):
        raise ValueError(f"“{printable}” names no host. {_NAMING_HELP}.")
    return GrantedHost(f"*.{host}" if wildcard else host, parts[1])


def normalise_granted_hosts(texts: list[str]) -> list[str]:
    """Return the same grants, each once, in canonical form. Raises ValueError with a sentence."""
    return list(dict.fromkeys(str(parse_granted_host(text)) for text in texts))


def parse_host_and_port(authority: str, usual_port: int | None = None) -> HostAndPort | None:
    """Parse the host that a client requests; None for what is no host, or if no port is known."""
    parts = split_authority(authority)
    host = _canonical_form(parts[0]) if parts is not None and parts[0].isascii() else None
    if parts is None or host is None:
        return None
    port = parts[1] if parts[1] is not None else usual_port
    return HostAndPort(host, port) if port else None


def split_authority(text: str) -> tuple[str, int | None] | None:
    """Split into host, without brackets, and port; None if it is neither."""
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        return None
    port = int(match["port"]) if match["port"] else None
    if port is not None and not 0 < port <= _LAST_PORT:
        return None
    return match["literal"] or match["name"], port


def _canonical_form(host: str) -> str | None:
    name = canonical_host(host) if host.isascii() else canonical_ascii_host(host)
    return name if name is not None and (_is_address(name) or (_NAME.fullmatch(name) and len(name) < 254)) else None


def _is_address(host: str) -> bool:
    return ":" in host or host.rpartition(".")[2].isdecimal()


TIMEOUT_REMEDY = "Try again, or open the address in a browser."


class FetchFailed(AgentError):
    """A URL could not be fetched; the sentence names the host."""

    kind = "not_fetched"
    default_remedy = "Open the address in a browser."


class PrivateHost(FetchFailed):
    """The host is this machine or in a private network. `address` is the host itself if no name was resolved."""

    kind = "private_address"

    def __init__(self, host: str, address: str) -> None:
        values = {"host": host, "address": address}
        sentence = "“{host}” is not a public server: its address is {address}."
        if host == address:
            sentence = "“{host}” is not a public server."
        super().__init__(Sentence(sentence, values))
        self.host = host
        self.address = address


def timeout_error(host: str, seconds: float) -> FetchFailed:
    """Return the error for a fetch that took longer than its total limit."""
    values = {"host": host, "seconds": f"{seconds:g}"}
    return FetchFailed(Sentence("“{host}” took longer than {seconds} seconds.", values), TIMEOUT_REMEDY)
