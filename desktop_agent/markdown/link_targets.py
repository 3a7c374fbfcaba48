"""Web addresses in texts, and which targets of links may be opened."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from desktop_agent.types.hidden_characters import DECEPTIVE_CHARACTERS

HIDDEN_IN_HOSTS = re.compile(f"[{DECEPTIVE_CHARACTERS}]")
# A DNS label has at most 63 characters (RFC 1035); longer ones lead nowhere.
MAX_LABEL_LENGTH = 63


def ascii_host(host: str) -> str:
    """Return the host as it is looked up (UTS 46): in lower case and punycode."""
    host = host.rstrip(".")
    return host.lower() if host.isascii() else ".".join(map(label_in_ascii, host.split(".")))


def label_in_ascii(label: str) -> str:
    """Return one label of a host as it is looked up."""
    # UTS 46 keeps these two, which other folding replaces.
    folded = "".join(char if char in "ßς" else char.casefold() for char in unicodedata.normalize("NFKC", label))
    folded = HIDDEN_IN_HOSTS.sub("", unicodedata.normalize("NFKC", folded))
    if folded.isascii() or len(folded) > MAX_LABEL_LENGTH:
        return folded
    return f"xn--{folded.encode('punycode').decode('ascii')}"


_URL = re.compile(rf"https?://[^\s<>\"`\u2028{DECEPTIVE_CHARACTERS}]+", re.IGNORECASE)
_HOST = re.compile(r"[^\W_](?:[^\W_]|[._-])*|[0-9a-f:]+", re.IGNORECASE)
# Fast path: a plain host, perhaps with a port.
_PLAIN_HOST = re.compile(r"https?://([a-z0-9][a-z0-9._-]*)(?::[0-9]+)?(?=[/?#]|\Z)", re.IGNORECASE | re.ASCII)
_TRAILING = ".,:;!?'*_~"
_PAIRS = {")": "(", "]": "[", "}": "{"}

_WEB = ("http", "https")
MAIL = re.compile(r"mailto:[^\s]", re.IGNORECASE)
_MAIL_FIELDS = {"subject", "body", "cc", "bcc"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_CONTROL_IN_BODY = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def find_urls(text: str) -> Iterator[tuple[int, str]]:
    """Return the bare web URLs in a text with their offsets, without trailing punctuation."""
    for match in _URL.finditer(text):
        address = match[0]
        while address and (address[-1] in _TRAILING or _is_unpaired(address)):
            address = address[:-1]
        if target_host(address):
            yield match.start(), address


def _is_unpaired(address: str) -> bool:
    opening = _PAIRS.get(address[-1])
    return opening is not None and address.count(address[-1]) > address.count(opening)


def safe_target(target: str) -> str:
    """Return the target if it may be opened (a web URL, or mail with harmless fields), else an empty string."""
    if MAIL.match(target):
        return _safe_mail(target)
    return target if target_host(target) else ""


def _safe_mail(target: str) -> str:
    """Keep only the usual fields (RFC 6068): some programs attach files that other fields name."""
    mailbox, _, rest = target.partition("?")
    fields = [field for field in rest.split("&") if _mail_field(field) in _MAIL_FIELDS]
    # An unencoded "&" in the mailbox would start fields for programs that parse loosely.
    if "&" in mailbox or _CONTROL.search(target) or any(map(_has_encoded_controls, [mailbox, *fields])):
        return ""
    safe = f"{mailbox}?{'&'.join(fields)}" if fields else mailbox
    return safe if MAIL.match(safe) else ""


def _mail_field(field: str) -> str:
    return unquote(field.partition("=")[0]).lower()


def _has_encoded_controls(part: str) -> bool:
    """Find encoded control characters. A body may have line ends; elsewhere they would start a field."""
    control = _CONTROL_IN_BODY if _mail_field(part) == "body" else _CONTROL
    return control.search(unquote(part)) is not None


def target_host(target: str) -> str:
    """Return the host in ASCII, or an empty string if the target is no web URL."""
    plain = _PLAIN_HOST.match(target)
    return ascii_host(plain[1]) if plain else _unusual_host(target)


@lru_cache(maxsize=1024)
def _unusual_host(target: str) -> str:
    try:
        parts = urlsplit(target)
        host = parts.hostname or ""
    except ValueError:
        return ""
    if parts.scheme.lower() not in _WEB or not _HOST.fullmatch(host):
        return ""
    return ascii_host(host)
