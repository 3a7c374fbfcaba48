"""Hosts that a command may reach: how they are named, and which host and port a name covers."""

import re
from dataclasses import dataclass

from desktop_agent.network.public_addresses import is_local_name
from desktop_agent.network.web_addresses import canonical_ascii_host, canonical_host

MAX_HOSTS = 20
_MAX_LENGTH = 300
_LAST_PORT = 65535
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
