"""Addresses of the web as they are written, and the one form in which a host is compared."""

import ipaddress
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

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
