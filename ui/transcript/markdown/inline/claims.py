"""What the words of a link claim: every host, address and mailbox that a reader could take them for.

Words that could be one are taken for one: a note too many costs a glance, one too few a password.
"""

# ruff: noqa: RUF001 - signs that pass for others are what this is about.

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from desktop_agent.vocabulary.text.hidden_characters import DECEPTIVE_CHARACTERS
from ui.transcript.markdown.inline.endings import TOP_LEVEL_DOMAINS
from ui.transcript.markdown.inline.hosts import ascii_host, skeleton

_HIDDEN = re.compile(f"[{DECEPTIVE_CHARACTERS}]")
# confusables.txt: what passes for the signs of an address, where NFKC leaves it as it is.
_PLAIN_SIGNS = str.maketrans(
    {
        **dict.fromkeys("‧∙•⋅·ꞏ᛫۔܁܂ꓸ٠۰", "."),
        **dict.fromkeys("\u2044\u2215⧸\u2571⟋〳\u2cc6𝈺", "/"),
        **dict.fromkeys("\u2236\u02d0\ua789\u05c3\u0589᛬", ":"),
    }
)
_STROKE = re.compile("(?<![\u3041-\u30ff\u3400-\u9fff])[ノ丿丶](?![\u3041-\u30ff\u3400-\u9fff])")
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
# After these, what follows a point is seldom more of a host.
_WELL_KNOWN = ("com", "org", "net")


@dataclass(frozen=True, slots=True)
class LinkClaims:
    """Of one word. `hosts` are all that it could name, `addressed` those with a sign of an address before them."""

    word: str
    hosts: tuple[str, ...]
    addressed: tuple[str, ...]
    mailboxes: tuple[str, ...]


def find_claims(words: str) -> Iterator[LinkClaims]:
    """Of each word that names something."""
    if not any(sign in words for sign in "./:") and words.isascii():
        return
    for word in normalize_lookalikes(words).split():
        addressed = tuple(found["host"] or found["six"] for found in _WITH_SCHEME.finditer(word))
        runs = [host for run in _RUN.findall(word) for host in _hosts_in(run)]
        hosts = (*addressed, *runs, *_BRACKETED.findall(word))
        if hosts:
            yield LinkClaims(word, hosts, addressed, tuple(_mailboxes(word)))


def normalize_lookalikes(words: str) -> str:
    """As a reader takes it: without what nobody sees, and with plain signs for those that pass for them."""
    plain = unicodedata.normalize("NFKC", _HIDDEN.sub("", words)).translate(_PLAIN_SIGNS)
    return _FULL_STOP.sub(".", _STROKE.sub("/", plain)).replace("。", " ")


def split_address(word: str) -> tuple[str, str]:
    """The host that a word begins with, and the rest of it, when it is nothing but an address."""
    found = _WHOLE_ADDRESS.match(word.lstrip(_OPENING).rstrip(_CLOSING))
    return (found["host"], found["rest"] or "") if found else ("", "")


def _hosts_in(run: str) -> Iterator[str]:
    """In letters, digits, points and hyphens."""
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
        known = [at for at, label in enumerate(labels) if at and skeleton(label.lower()) in _WELL_KNOWN]
        if known:
            yield ".".join(labels[: known[-1] + 1])


def is_top_level_domain(label: str) -> bool:
    """Whether hosts end so, or seem to."""
    small = label.lower()
    return (
        small in TOP_LEVEL_DOMAINS
        or skeleton(small) in TOP_LEVEL_DOMAINS
        or (not small.isascii() and ascii_host(small) in TOP_LEVEL_DOMAINS)
    )


def _mailboxes(word: str) -> Iterator[str]:
    for found in _AT.finditer(word):
        before = _BEFORE_AT.search(word[max(0, found.start() - 64) : found.start()])
        if before:
            yield f"{before[0]}@{found[1]}".lower()
