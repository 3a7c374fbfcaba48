"""The address of a page that a server wants opened: which part of it is the host, and whether it may be opened."""

import unicodedata
from dataclasses import dataclass
from urllib.parse import urlsplit

from PySide6.QtCore import QUrl

from desktop_agent.vocabulary.endpoints import is_loopback
from ui.approval.hosts import decode_punycode
from ui.look.visible_text import show_hidden

_ACE = "xn--"


@dataclass(frozen=True, slots=True)
class PageAddress:
    """As it was sent, with the place of its host in it. `ascii_host` is how computers write it (punycode).

    `is_safe`: it may be opened, being https, or http on this machine. `user` stands before the host and can look like
    one.
    """

    text: str
    host: str
    ascii_host: str
    host_start: int
    is_safe: bool
    user: str = ""
    is_idn: bool = False
    """Whether its host has letters that computers have to write in another way (RFC 5890)."""
    unicode_host: str = ""
    """Such a host as people read it; nothing where it cannot be read."""


def parse_address(text: str) -> PageAddress:
    """Read it; what cannot be read has no host and is not safe."""
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return PageAddress(text, "", "", -1, is_safe=False)
    user, _, place = parts.netloc.rpartition("@")
    start = text.find(parts.netloc) + len(parts.netloc) - len(place)
    found = text.lower().find(host, start) if host else -1
    # As Qt and a browser would go there; where they read another host than we do, nothing is opened.
    url = QUrl(text, QUrl.ParsingMode.StrictMode)
    ascii_host = url.host(QUrl.ComponentFormattingOption.FullyEncoded).lower()
    reads_alike = url.isValid() and bool(ascii_host) and _is_same_host(host, url)
    has_hidden = any(each.isspace() or not each.isprintable() or each == "\\" for each in text)
    is_secure = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(ascii_host))
    is_unusual = any(each.startswith(_ACE) for each in ascii_host.split(".")) or not host.isascii()
    letters = decode_punycode(ascii_host) if is_unusual else ""
    is_safe = is_secure and reads_alike and not has_hidden
    return PageAddress(text, host, ascii_host, found, is_safe, user, is_unusual, letters)


def unusual_letters(host: str) -> list[tuple[str, str]]:
    """Each letter once that is not of the usual ones, and what it is called in Unicode."""
    found = dict.fromkeys(each for each in host if not each.isascii())
    return [(show_hidden(each), unicodedata.name(each, f"U+{ord(each):04X}").capitalize()) for each in found]


def _is_same_host(host: str, url: QUrl) -> bool:
    ours = QUrl()
    ours.setHost(host)
    encoded = QUrl.ComponentFormattingOption.FullyEncoded
    return bool(host) and ours.host(encoded).lower() == url.host(encoded).lower()
