"""Which addresses and names everybody can reach, and which are somebody's own."""

import ipaddress

from desktop_agent.vocabulary.endpoints import is_loopback

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
