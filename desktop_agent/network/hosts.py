"""Hosts of the web: how they are written and compared, which are public, which a command was granted, why one is
refused.

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
    """For those who may not know what speaks HTTP here."""

_LAST_PORT = 65535
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")

# Services that speak other protocols and could be told something by a request (WHATWG Fetch, "port blocking").
_BLOCKED = (
    *(1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109),
    *(110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530),
    *(531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190),
    *(5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080),
)
BLOCKED_PORTS = frozenset(_BLOCKED)


def parse_web_url(url: str) -> "httpx.URL | None":
    """None for what is no address of http or https, and for a host or port that cannot exist. Imports httpx."""
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


def url_host(url: "httpx.URL") -> str:
    """As it is sent: punycode, lower case, an IPv6 address without its brackets."""
    return url.raw_host.decode("ascii")


def canonical_host(host: str) -> str | None:
    """The only way in which this host is written: lower case, no dot at its end, an address as the address that it is.

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
    """The same of a host that may have letters of other languages. Imports httpx."""
    parsed = parse_web_url(f"http://{f'[{host}]' if ':' in host and not host.startswith('[') else host}/")
    return canonical_host(url_host(parsed)) if parsed is not None else None


def canonical_hosts(hosts: Iterable[str]) -> frozenset[str]:
    """Hosts as the person wrote them, in the form in which they are compared. Imports httpx."""
    forms = (canonical_ascii_host(each.strip()) for each in hosts)
    return frozenset(each for each in forms if each)


def _parse_ipv6(name: str) -> str | None:
    try:
        found = ipaddress.IPv6Address(name)
    except ValueError:
        return None
    return str(found.ipv4_mapped or found)


def _parse_ipv4(parts: list[str]) -> str | None:
    if len(parts) > 4 or not all(_NUMBER.fullmatch(part) for part in parts):
        return None
    try:
        numbers = [_parse_number(part) for part in parts]
    except ValueError:
        return None
    *firsts, last = numbers
    if any(each > 0xFF for each in firsts) or last >= 256 ** (5 - len(numbers)):
        return None
    whole = last + sum(each << 8 * (3 - at) for at, each in enumerate(firsts))
    return str(ipaddress.IPv4Address(whole))


def _parse_number(part: str) -> int:
    """Raises ValueError."""
    if part[:2].lower() == "0x":
        return int(part[2:] or "0", 16)
    return int(part, 8 if part.startswith("0") and len(part) > 1 else 10)


# RFC 6762, 8375, and what ICANN keeps out of the public tree (2024). A name of one word is found only at home, too.
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
# use, it may stand elsewhere: that is never public.
_IPV4_CARRYING = [ipaddress.IPv6Network(each) for each in ("64:ff9b::/96", "64:ff9b:1::/96", "::/96")]
# All of IPv6 that is given out as global unicast (IANA, IPv6 address space).
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")


def is_public_address(address: str) -> bool:
    """Whether everybody can reach it; of addresses that carry an IPv4 address, that one counts."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
        if inner is None and any(found in network for network in _IPV4_CARRYING):
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if inner is None and found not in _GLOBAL_UNICAST:
            return False
        if inner is not None:
            return inner.is_global and not inner.is_multicast
    return found.is_global and not found.is_multicast


def is_local_name(host: str) -> bool:
    """Whether a name is one of this machine or of a private network, whatever it leads to. An address is no name."""
    name = host.rstrip(".").lower()
    if is_loopback(name):
        return True
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return "." not in name or name.endswith(_LOCAL_SUFFIXES)
    return False


def is_local_host(host: str) -> bool:
    """Whether it is this machine or one of a private network, by name or by address."""
    try:
        return is_local_name(host) or not is_public_address(host.strip("[]"))
    except ValueError:  # a name that everybody can look up
        return False


MAX_HOSTS = 20
_MAX_LENGTH = 300
# A name or an IPv4 address, or an IPv6 address in brackets, and maybe a port (RFC 3986, section 3.2).
_AUTHORITY = re.compile(r"(?:\[(?P<literal>[0-9A-Fa-f:.]+)\]|(?P<name>[^\[\]:/?#@\s]+))(?::(?P<port>[0-9]{1,5}))?")
_NAME = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NAMING_HELP = "Name hosts as in “example.org”, “example.org:8443”, “*.example.org” or “[2001:db8::1]”"


@dataclass(frozen=True, slots=True)
class HostAndPort:
    """A host in the one form in which it is compared, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.bracketed}:{self.port}"

    @property
    def bracketed(self) -> str:
        """The host as it stands before a port."""
        return f"[{self.host}]" if ":" in self.host else self.host


@dataclass(frozen=True, slots=True)
class GrantedHost:
    """One host; `*.example.org` is every host below example.org, and not itself. Any port where none is named."""

    host: str
    port: int | None = None

    def __str__(self) -> str:
        return self.host if self.port is None else str(HostAndPort(self.host, self.port))

    def covers(self, destination: HostAndPort) -> bool:
        """Whether a command may reach this host at this port."""
        return self.port in {None, destination.port} and self.covers_name(destination.host)

    def covers_name(self, host: str) -> bool:
        """Whether it is this host, at whatever port."""
        if self.host.startswith("*."):
            return not _is_address(host) and host.endswith(self.host[1:]) and len(host) >= len(self.host)
        return host == self.host

    def is_plainly_private(self, host: str) -> bool:
        """Whether a person who reads the grant sees that this host is no public one: an address, or a local name."""
        return self.covers_name(host) and (_is_address(host) or is_local_name(host))


def parse_granted_host(text: str) -> GrantedHost:
    """The host that this text names. Imports httpx where it is not ASCII. Raises ValueError with a sentence."""
    given = text.strip()
    shown = "".join(each if each.isprintable() else "�" for each in given[:80])
    if "://" in given or "/" in given:
        raise ValueError(f"“{shown}” is an address. {_NAMING_HELP}, without a scheme and a path.")
    if given.count(":") > 1 and "[" not in given:
        given = f"[{given}]"
    wildcard = given.startswith("*.")
    parts = split_authority(given.removeprefix("*.")) if len(given) <= _MAX_LENGTH else None
    host = _canonical_form(parts[0]) if parts is not None else None
    if parts is None or host is None or (wildcard and ("." not in host or _is_address(host))):
        raise ValueError(f"“{shown}” names no host. {_NAMING_HELP}.")
    return GrantedHost(f"*.{host}" if wildcard else host, parts[1])


def normalise_granted_hosts(texts: list[str]) -> list[str]:
    """The same hosts, each once, in the form in which they are compared. Raises ValueError with a sentence."""
    return list(dict.fromkeys(str(parse_granted_host(each)) for each in texts))


def parse_host_and_port(authority: str, usual_port: int | None = None) -> HostAndPort | None:
    """What a client asks for, in one form; None for what is no host, and where no port is known."""
    parts = split_authority(authority)
    host = _canonical_form(parts[0]) if parts is not None and parts[0].isascii() else None
    if parts is None or host is None:
        return None
    port = parts[1] if parts[1] is not None else usual_port
    return HostAndPort(host, port) if port else None


def split_authority(text: str) -> tuple[str, int | None] | None:
    """The host, without brackets, and the port if there is one; None for what is neither."""
    found = _AUTHORITY.fullmatch(text)
    if found is None:
        return None
    port = int(found["port"]) if found["port"] else None
    if port is not None and not 0 < port <= _LAST_PORT:
        return None
    return found["literal"] or found["name"], port


def _canonical_form(host: str) -> str | None:
    name = canonical_host(host) if host.isascii() else canonical_ascii_host(host)
    return name if name is not None and (_is_address(name) or (_NAME.fullmatch(name) and len(name) < 254)) else None


def _is_address(host: str) -> bool:
    return ":" in host or host.rpartition(".")[2].isdecimal()


TIMEOUT_REMEDY = "Try again, or open the address in a browser."


class FetchFailed(AgentError):
    """What lies there could not be fetched; the sentence is about the host."""

    kind = "not_fetched"
    default_remedy = "Open the address in a browser."


class PrivateHost(FetchFailed):
    """The host is this machine, or lies in a private network. `address` is the host itself where no name was asked."""

    kind = "private_address"

    def __init__(self, host: str, address: str) -> None:
        values = {"host": host, "address": address}
        what = "“{host}” is no public server: its address is {address}."
        if host == address:
            what = "“{host}” is no public server."
        super().__init__(Sentence(what, values))
        self.host = host
        self.address = address


def timeout_error(host: str, seconds: float) -> FetchFailed:
    """For all of it."""
    values = {"host": host, "seconds": f"{seconds:g}"}
    return FetchFailed(Sentence("“{host}” took longer than {seconds} seconds.", values), TIMEOUT_REMEDY)
