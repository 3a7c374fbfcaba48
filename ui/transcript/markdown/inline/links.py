"""Where links lead, and whether their words say so."""

import re
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from desktop_agent.vocabulary.text.hidden_characters import DECEPTIVE_CHARACTERS
from ui.look.visible_text import show_hidden
from ui.transcript.markdown.inline.claims import LinkClaims, find_claims, normalize_lookalikes, split_address
from ui.transcript.markdown.inline.hosts import ascii_host, display_host, unicode_host

_URL = re.compile(rf"https?://[^\s<>\"`\u2028{DECEPTIVE_CHARACTERS}]+", re.IGNORECASE)
_HOST = re.compile(r"[^\W_](?:[^\W_]|[._-])*|[0-9a-f:]+", re.IGNORECASE)
# What is taken apart without a question: a plain host, perhaps with a port.
_PLAIN_HOST = re.compile(r"https?://([a-z0-9][a-z0-9._-]*)(?::[0-9]+)?(?=[/?#]|\Z)", re.IGNORECASE | re.ASCII)
_TRAILING = ".,:;!?'*_~"
_PAIRS = {")": "(", "]": "[", "}": "{"}

_WEB = ("http", "https")
_MAIL = re.compile(r"mailto:[^\s]", re.IGNORECASE)
_MAIL_FIELDS = {"subject", "body", "cc", "bcc"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_CONTROL_IN_BODY = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# Files that are named as hosts of some countries are.
_AMBIGUOUS_EXTENSIONS = (".md", ".py", ".rs", ".sh")


def find_urls(text: str) -> Iterator[tuple[int, str]]:
    """Bare addresses of the web in a text, with their places. Punctuation after one does not belong to it."""
    for found in _URL.finditer(text):
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
    if "&" in mailbox or _CONTROL.search(target) or any(map(_has_encoded_controls, [mailbox, *fields])):
        return ""
    safe = f"{mailbox}?{'&'.join(fields)}" if fields else mailbox
    return safe if _MAIL.match(safe) else ""


def _mail_field(field: str) -> str:
    return unquote(field.partition("=")[0]).lower()


def _has_encoded_controls(part: str) -> bool:
    """Whether control characters are encoded in it. Lines end in a body; elsewhere they would begin another field."""
    control = _CONTROL_IN_BODY if _mail_field(part) == "body" else _CONTROL
    return control.search(unquote(part)) is not None


@lru_cache(maxsize=1024)
def misleading_link_note(words: str, target: str) -> str:
    """The host or mailbox a link really leads to, when its words could name another one. Otherwise nothing."""
    if _MAIL.match(target):
        return _misleading_mail_note(words, target)
    host = _host(target)
    if not host:
        return ""
    shown = display_host(host)
    disguised = shown != unicode_host(host) and shown not in words.lower()
    return shown if disguised or _names_another_host(words, target, host) else ""


def _names_another_host(words: str, target: str, host: str) -> bool:
    found = [each for each in find_claims(words) if not _is_part_of(each, target, host)]
    if found and "@" in urlsplit(target).netloc:
        return True
    named = [name for each in found for name in each.hosts]
    return any(not _is_host_or_below(host, name) and not _is_file(name, target) for name in named)


def _is_part_of(claim: LinkClaims, target: str, host: str) -> bool:
    """Whether a word is the target's own address: what its path names is no claim."""
    named, rest = split_address(claim.word)
    return (
        bool(rest)
        and _is_host_or_below(host, named)
        and (rest in target or rest in normalize_lookalikes(unquote(target)))
    )


def _is_file(name: str, target: str) -> bool:
    """Whether the target is a file of that name."""
    return name.lower().endswith(_AMBIGUOUS_EXTENSIONS) and unquote(urlsplit(target).path).endswith(f"/{name}")


def _misleading_mail_note(words: str, target: str) -> str:
    mailboxes = unquote(target[7:].partition("?")[0]).lower().split(",")
    shown = [f"{name}{at}{display_host(host)}" for name, at, host in (each.rpartition("@") for each in mailboxes)]
    note = show_hidden(",".join(shown))
    if shown != mailboxes and note not in words.lower():
        return note
    found = list(find_claims(words))
    named = {mailbox for each in found for mailbox in each.mailboxes}
    hosts = [ascii_host(each.rpartition("@")[2]) for each in mailboxes]
    strangers = (
        name for each in found for name in each.hosts if not any(_is_host_or_below(host, name) for host in hosts)
    )
    differs = (named and named != set(mailboxes)) or any(each.addressed for each in found) or any(strangers)
    return note if differs else ""


def link_tooltip(target: str) -> str:
    """The whole target, so that nothing in it is hidden; the host as punycode where its letters could deceive."""
    shown = show_hidden(target)
    host = _host(target)
    if host and display_host(host) != unicode_host(host):
        return f"{shown} ({ascii_host(host)})"
    return shown


def _is_host_or_below(host: str, claimed: str) -> bool:
    """Whether a host is the one that was named, or one below it."""
    own = ascii_host(claimed).removeprefix("www.")
    return host.removeprefix("www.") == own or ("." in own and host.endswith(f".{own}"))


def _host(target: str) -> str:
    """In ASCII; empty when this is no address of the web."""
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
