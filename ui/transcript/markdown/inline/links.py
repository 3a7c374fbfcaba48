"""Where links lead, and whether their words say so."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from ui.look.visible_text import DECEPTIVE, with_hidden_shown

_ADDRESS = re.compile(rf"https?://[^\s<>\"`\u2028{DECEPTIVE}]+", re.IGNORECASE)
_HOST = re.compile(r"[^\W_](?:[^\W_]|[._-])*|[0-9a-f:]+", re.IGNORECASE)
# What is taken apart without a question: a plain host, perhaps with a port.
_PLAIN_HOST = re.compile(r"https?://([a-z0-9][a-z0-9._-]*)(?::[0-9]+)?(?=[/?#]|\Z)", re.IGNORECASE | re.ASCII)
_TRAILING = ".,:;!?'*_~"
_PAIRS = {")": "(", "]": "[", "}": "{"}

_HIDDEN = re.compile(f"[{DECEPTIVE}]")
_WEB = ("http", "https")
_MAIL = re.compile(r"mailto:[^\s]", re.IGNORECASE)
_MAIL_FIELDS = {"subject", "body", "cc", "bcc"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_CONTROL_IN_BODY = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_MAILBOX = re.compile(r"[^\s@<>\"'(),;:]+@[\w-]+(?:\.[\w-]+)+")
_LABEL = r"[^\W_](?:[\w-]*[^\W_])?"
# What ends like a file's or a module's name is not taken for a host: `main.py`, `numpy.array`.
_ENDINGS = (
    "ai app at au bank be biz br ca cc ch cn co com cz de dev dk edu es eu fi fr gov gr hu ie il in info int io it jp"
    " kr link live me mil mobi mx name net news nl no nz online onion org pl pro pt ro ru se shop site sk store tech"
    " to tr tv tw ua uk us vn xyz za"
)
_BARE_HOST = re.compile(
    rf"(?P<host>(?:{_LABEL}\.)+(?:{'|'.join(_ENDINGS.split())}|[^\W\da-z_][^\W_]+|xn--[\w-]+))(?::\d+)?(?:[/?#]\S*)?",
    re.IGNORECASE,
)
_WITH_SIGN = re.compile(
    rf"(?:(?:https?:)?//(?:[^\s/?#@]*@)?|\b(?=www\.))(?P<host>(?:{_LABEL}\.)*{_LABEL})", re.IGNORECASE
)
# Letters of Cyrillic, Greek and Armenian that pass for Latin ones.
_LOOKALIKES = frozenset("асԁеһіјӏорԛѕԝхуьгкптвмнαικνορτυχωγηհոսցօզյ")
_LATIN_WITH = (
    {"LATIN", "CJK", "HIRAGANA", "KATAKANA"},
    {"LATIN", "CJK", "BOPOMOFO"},
    {"LATIN", "CJK", "HANGUL"},
)


def addresses(text: str) -> Iterator[tuple[int, str]]:
    """Bare addresses of the web in a text, with their places. Punctuation after one does not belong to it."""
    for found in _ADDRESS.finditer(text):
        address = found[0]
        while address and (address[-1] in _TRAILING or _is_unpaired(address)):
            address = address[:-1]
        if _host(address):
            yield found.start(), address


def _is_unpaired(address: str) -> bool:
    opening = _PAIRS.get(address[-1])
    return opening is not None and address.count(address[-1]) > address.count(opening)


def safe_target(target: str) -> str:
    """The target, if it may be opened: a web address with a host, or mail with its harmless fields. Or nothing."""
    if _MAIL.match(target):
        return _safe_mail(target)
    return target if _host(target) else ""


def _safe_mail(target: str) -> str:
    """With the usual fields only (RFC 6068): some programs attach the files that a field names."""
    mailbox, _, rest = target.partition("?")
    fields = [each for each in rest.split("&") if _mail_field(each) in _MAIL_FIELDS]
    # An address may hold "&" only encoded; a program that is not strict would find fields there.
    if "&" in mailbox or _CONTROL.search(target) or any(map(_is_forged, [mailbox, *fields])):
        return ""
    safe = f"{mailbox}?{'&'.join(fields)}" if fields else mailbox
    return safe if _MAIL.match(safe) else ""


def _mail_field(field: str) -> str:
    return unquote(field.partition("=")[0]).lower()


def _is_forged(part: str) -> bool:
    """Whether control characters are encoded in it. Lines end in a body; elsewhere they would begin another field."""
    control = _CONTROL_IN_BODY if _mail_field(part) == "body" else _CONTROL
    return control.search(unquote(part)) is not None


@lru_cache(maxsize=1024)
def note_of(words: str, target: str) -> str:
    """The host or mailbox a link really leads to, when its words name another one. Otherwise nothing."""
    words = _HIDDEN.sub("", words)
    if _MAIL.match(target):
        mailbox = unquote(target[7:].partition("?")[0]).lower()
        named = _MAILBOX.search(words)
        return with_hidden_shown(mailbox) if named and named[0].lower() not in mailbox.split(",") else ""
    host = _host(target)
    if not host:
        return ""
    shown = shown_host(host)
    disguised = shown != _unicode(host) and shown not in words.lower()
    claimed = _claimed(words)
    differs = claimed is not None and ("@" in urlsplit(target).netloc or not _is_of(host, claimed))
    return shown if disguised or differs else ""


@lru_cache(maxsize=1024)
def shown_host(host: str) -> str:
    """A host as it may be shown: in its own letters where they cannot pass for others, otherwise as punycode."""
    own = _unicode(host)
    return own if all(_is_plain(label) for label in own.split(".")) else _ascii(host)


def tip_of(target: str) -> str:
    """The whole target, so that nothing in it is hidden; the host as punycode where its letters could deceive."""
    shown = with_hidden_shown(target)
    host = _host(target)
    if host and shown_host(host) != _unicode(host):
        return f"{shown} ({_ascii(host)})"
    return shown


def _is_of(host: str, claimed: str) -> bool:
    """Whether a host is the one that was named, or one below it."""
    own = _ascii(claimed).removeprefix("www.")
    return host.removeprefix("www.") == own or host.endswith(f".{own}")


def _host(target: str) -> str:
    """In ASCII; empty when this is no address of the web."""
    plain = _PLAIN_HOST.match(target)
    return _ascii(plain[1]) if plain else _unusual_host(target)


@lru_cache(maxsize=1024)
def _unusual_host(target: str) -> str:
    try:
        parts = urlsplit(target)
        host = parts.hostname or ""
    except ValueError:
        return ""
    if parts.scheme.lower() not in _WEB or not _HOST.fullmatch(host):
        return ""
    return _ascii(host)


def _claimed(words: str) -> str | None:
    """The host that words name; None when none of them is an address."""
    if "." not in words and "//" not in words:
        return None
    found = _WITH_SIGN.search(words) or next(filter(None, map(_BARE_HOST.fullmatch, words.split())), None)
    return found["host"] if found else None


def _ascii(host: str) -> str:
    if host.isascii():
        return host.rstrip(".").lower()
    try:
        return host.rstrip(".").encode("idna").decode("ascii").lower()
    except UnicodeError:
        return host.lower()


def _unicode(host: str) -> str:
    if "xn--" not in host:
        return host.lower()
    try:
        return host.encode("ascii").decode("idna").lower()
    except UnicodeError:
        return host.lower()


def _is_plain(label: str) -> bool:
    """One script, or one that is written together with Latin letters; not a word of nothing but lookalikes."""
    if label.isascii():
        return not label.startswith("xn--")
    scripts = {_script(char) for char in label if char.isalpha()}
    if len(scripts) > 1:
        return any(scripts <= allowed for allowed in _LATIN_WITH)
    return not all(char in _LOOKALIKES or not char.isalpha() for char in label)


def _script(char: str) -> str:
    """The first word of a letter's Unicode name, which is its script for all that matters here."""
    return unicodedata.name(char, "?").split(" ")[0].split("-")[0]
