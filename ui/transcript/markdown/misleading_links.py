"""Check link targets, display hosts safely, and warn about links whose words name another host."""

# ruff: noqa: RUF001 - signs that pass for others are what this is about.
import re
import tomllib
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any
from urllib.parse import unquote, urlsplit

from desktop_agent.markdown.link_targets import (
    HIDDEN_IN_HOSTS,
    MAIL,
    MAX_LABEL_LENGTH,
    ascii_host,
    label_in_ascii,
    target_host,
)
from desktop_agent.types.lookalikes import ascii_lookalike_in_host
from resources import resource_path
from ui.style.text import show_hidden

# Signs of Chinese and Japanese that pass for marks where no other sign stands beside them.
_AMBIGUOUS_LETTERS = "ノンソゾーヽヾ一丨丶丿亅〇"
_EAST_ASIAN = "\u3041-\u30ff\u3400-\u9fff"
_AMBIGUOUS_ALONE = re.compile(f"(?<![{_EAST_ASIAN}])[{_AMBIGUOUS_LETTERS}]|[{_AMBIGUOUS_LETTERS}](?![{_EAST_ASIAN}])")
_ASCII_LETTER = re.compile(r"[a-z0-9]")


def skeleton(text: str) -> str:
    """Return the text with lookalike letters replaced by ASCII letters (UTS 39)."""
    if text.isascii():
        return text
    pairs = ((char, ascii_lookalike_in_host(char)) for char in text)
    return "".join(lookalike if lookalike.isalpha() else char for char, lookalike in pairs)


def unicode_host(host: str) -> str:
    """Return the host with its punycode labels decoded; the letters may deceive."""
    return ".".join(map(_label_in_unicode, host.lower().split("."))) if "xn--" in host.lower() else host.lower()


@lru_cache(maxsize=1024)
def display_host(host: str) -> str:
    """Return the host in its own letters where they cannot pass for others, otherwise as punycode."""
    decoded = unicode_host(ascii_host(host))
    ending = ascii_host(decoded.rpartition(".")[2])
    return decoded if all(_is_plain(label, ending) for label in decoded.split(".")) else ascii_host(host)


def _label_in_unicode(label: str) -> str:
    if not label.startswith("xn--") or not label.isascii() or len(label) > MAX_LABEL_LENGTH:
        return label
    try:
        decoded = label[4:].encode("ascii").decode("punycode")
    except ValueError:
        return label
    return decoded if label_in_ascii(decoded) == label else label


def _is_plain(label: str, ending: str) -> bool:
    """Accept labels of one script, or of scripts used together, that are not made of lookalikes only."""
    if label.isascii():
        return not label.startswith("xn--")
    non_ascii = [char for char in label if not char.isascii()]
    if any(unicodedata.category(char)[0] not in "LM" for char in non_ascii):
        return False
    scripts = {_script(char) for char in label if not char.isascii() or char.isalpha()}
    letters = _table("host_letters.toml")
    may_mix = len(scripts) == 1 or any(scripts <= set(allowed.split()) for allowed in letters["used_together"])
    if not may_mix or not scripts <= set(letters["scripts"].split()):
        return False
    if any(_script(char) == "LATIN" and not _is_latin_of(char, ending) for char in non_ascii):
        return False
    if _ASCII_LETTER.search(label) and _AMBIGUOUS_ALONE.search(label):
        return False
    return not all(map(ascii_lookalike_in_host, non_ascii)) or "LATIN" in scripts


def _is_latin_of(char: str, ending: str) -> bool:
    letters = _table("host_letters.toml")
    return char in letters["latin"] or char in letters["latin_of"].get(ending, "")


def _script(char: str) -> str:
    """Return the first word of the letter's Unicode name; here that identifies the script well enough."""
    name = unicodedata.name(char, "?").split(" ")[0].split("-")[0]
    return "CJK" if name == "IDEOGRAPHIC" else name


@cache
def _table(name: str) -> dict[str, Any]:
    return tomllib.loads(resource_path(name).read_text(encoding="utf-8"))


@cache
def _top_level_domains() -> frozenset[str]:
    return frozenset(_table("top_level_domains.toml")["domains"].split())


# Characters that pass for those of a URL and that NFKC leaves as they are (confusables.txt).
_PLAIN_SIGNS = str.maketrans(
    {
        **dict.fromkeys("‧∙•⋅·ꞏ᛫۔܁܂ꓸ٠۰", "."),
        **dict.fromkeys("\u2044\u2215⧸\u2571⟋〳\u2cc6𝈺", "/"),
        **dict.fromkeys("\u2236\u02d0\ua789\u05c3\u0589᛬", ":"),
    }
)
_STROKE = re.compile(f"(?<![{_EAST_ASIAN}])[ノ丿丶](?![{_EAST_ASIAN}])")
_FULL_STOP = re.compile("(?<=[^\\W_])。(?=[a-z0-9])", re.IGNORECASE)
_OPENING = "\"'“„«\u2018\u2019([{<→*_~"
_CLOSING = "\"'”“»\u2019)]}>.,:;!?*_~…"

_WITH_SCHEME = re.compile(
    r"(?:https?:[/\\]*|[/\\]{2})(?:[^\s/\\?#@]{0,256}@)?(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<host>[\w.-]*\w))", re.IGNORECASE
)
_BRACKETED = re.compile(r"\[([0-9a-f.]*:[0-9a-f:.]+)\]", re.IGNORECASE)
_RUN = re.compile(r"[\w.-]+")
_FOUR_NUMBERS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}", re.ASCII)
_AT = re.compile(r"@([\w-]+(?:\.[\w-]+)*)")
_BEFORE_AT = re.compile(r"[^\s@<>\"'(),;:/]{1,64}\Z")
_LETTERS = re.compile(r"[^\W_]+")
_WHOLE_ADDRESS = re.compile(r"(?:https?:[/\\]*|//)?(?P<host>[\w.-]*\w)(?P<rest>[/?#:].*)?\Z", re.IGNORECASE)
# What follows one of these is usually a path, not more of the host.
_WELL_KNOWN = ("com", "org", "net")


@dataclass(frozen=True, slots=True)
class LinkClaims:
    """What one word claims: every host it could name, hosts that follow a URL scheme, and mailboxes."""

    word: str
    hosts: tuple[str, ...]
    addressed: tuple[str, ...]
    mailboxes: tuple[str, ...]


def find_claims(words: str) -> Iterator[LinkClaims]:
    """Yield the claims of each word that could name a host."""
    if not any(sign in words for sign in "./:") and words.isascii():
        return
    for word in normalize_lookalikes(words).split():
        addressed = tuple(match["host"] or match["six"] for match in _WITH_SCHEME.finditer(word))
        runs = [host for run in _RUN.findall(word) for host in _hosts_in(run)]
        hosts = (*addressed, *runs, *_BRACKETED.findall(word))
        if hosts:
            yield LinkClaims(word, hosts, addressed, tuple(_mailboxes(word)))


def normalize_lookalikes(words: str) -> str:
    """Return the words as a reader sees them: without hidden characters, lookalike punctuation replaced."""
    plain = unicodedata.normalize("NFKC", HIDDEN_IN_HOSTS.sub("", words)).translate(_PLAIN_SIGNS)
    return _FULL_STOP.sub(".", _STROKE.sub("/", plain)).replace("。", " ")


def split_address(word: str) -> tuple[str, str]:
    """Split a word that is a URL into its host and the rest; both are empty for other words."""
    match = _WHOLE_ADDRESS.match(word.lstrip(_OPENING).rstrip(_CLOSING))
    return (match["host"], match["rest"] or "") if match else ("", "")


def _hosts_in(run: str) -> Iterator[str]:
    for name in run.split(".."):
        labels = name.strip("._-").split(".")
        if len(labels) < 2 or not all(labels):
            continue
        if not labels[-1].lower().startswith("xn--") and (last := _LETTERS.match(labels[-1])):
            labels[-1] = last[0]
        whole = ".".join(labels)
        if labels[0].lower() == "www" or is_top_level_domain(labels[-1]) or _FOUR_NUMBERS.fullmatch(whole):
            yield whole
            continue
        known = [index for index, label in enumerate(labels) if index and skeleton(label.lower()) in _WELL_KNOWN]
        if known:
            yield ".".join(labels[: known[-1] + 1])


def is_top_level_domain(label: str) -> bool:
    """Return whether the label is a top-level domain, or looks like one."""
    lower, domains = label.lower(), _top_level_domains()
    return lower in domains or skeleton(lower) in domains or (not lower.isascii() and ascii_host(lower) in domains)


def _mailboxes(word: str) -> Iterator[str]:
    for match in _AT.finditer(word):
        before = _BEFORE_AT.search(word[max(0, match.start() - 64) : match.start()])
        if before:
            yield f"{before[0]}@{match[1]}".lower()


# Files whose extensions are also top-level domains of countries.
_AMBIGUOUS_EXTENSIONS = (".md", ".py", ".rs", ".sh")


@lru_cache(maxsize=1024)
def misleading_link_note(words: str, target: str) -> str:
    """Return the real host or mailbox of a link whose words could name another one, otherwise an empty string."""
    if MAIL.match(target):
        return _misleading_mail_note(words, target)
    host = target_host(target)
    if not host:
        return ""
    shown = display_host(host)
    disguised = shown != unicode_host(host) and shown not in words.lower()
    return shown if disguised or _names_another_host(words, target, host) else ""


def _names_another_host(words: str, target: str, host: str) -> bool:
    claims = [claim for claim in find_claims(words) if not _is_part_of(claim, target, host)]
    if claims and "@" in urlsplit(target).netloc:
        return True
    return any(
        not _is_host_or_below(host, name) and not _is_file(name, target) for claim in claims for name in claim.hosts
    )


def _is_part_of(claim: LinkClaims, target: str, host: str) -> bool:
    """Return whether the word is the target's own URL, whose path makes no claim."""
    named, rest = split_address(claim.word)
    is_in_target = rest in target or rest in normalize_lookalikes(unquote(target))
    return bool(rest) and is_in_target and _is_host_or_below(host, named)


def _is_file(name: str, target: str) -> bool:
    return name.lower().endswith(_AMBIGUOUS_EXTENSIONS) and unquote(urlsplit(target).path).endswith(f"/{name}")


def _misleading_mail_note(words: str, target: str) -> str:
    mailboxes = unquote(target[7:].partition("?")[0]).lower().split(",")
    parts = (address.rpartition("@") for address in mailboxes)
    shown = [f"{name}{sign}{display_host(host)}" for name, sign, host in parts]
    note = show_hidden(",".join(shown))
    if shown != mailboxes and note not in words.lower():
        return note
    claims = list(find_claims(words))
    named = {mailbox for claim in claims for mailbox in claim.mailboxes}
    hosts = [ascii_host(address.rpartition("@")[2]) for address in mailboxes]
    other_hosts = (
        name for claim in claims for name in claim.hosts if not any(_is_host_or_below(host, name) for host in hosts)
    )
    differs = (named and named != set(mailboxes)) or any(claim.addressed for claim in claims) or any(other_hosts)
    return note if differs else ""


def link_tooltip(target: str) -> str:
    """Return the target with hidden characters spelled out, and its punycode host where letters could deceive."""
    shown = show_hidden(target)
    host = target_host(target)
    if host and display_host(host) != unicode_host(host):
        return f"{shown} ({ascii_host(host)})"
    return shown


def _is_host_or_below(host: str, claimed: str) -> bool:
    claimed_host = ascii_host(claimed).removeprefix("www.")
    return host.removeprefix("www.") == claimed_host or ("." in claimed_host and host.endswith(f".{claimed_host}"))
