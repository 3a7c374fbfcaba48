"""Characters that pass for one of ASCII in a word: a Cyrillic letter in `curl`, a dash that is no hyphen before `rf`.

A word wholly in another script is what it seems, unless all of it passes for ASCII where a name of ASCII is expected.
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_OF_ASCII = re.compile(r"[A-Za-z0-9]")
_LETTERS = re.compile(r"[^\W_]+")
# What a shell, an address or a path reads as a sign.
_SIGNS = frozenset("/\\.:@'\"|;&$<>`=~*?#!(){}[],")
# UnicodeData.txt: 2 in m², 1 in ①.
_RAISED = ("<super>", "<sub>", "<circle>", "<square>", "<fraction>")
_QUOTES = frozenset("'\"`")
_EAST_ASIAN = re.compile("[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class Lookalike:
    """A character of a word, and the one of ASCII that it passes for."""

    word: str
    char: str
    passes_for: str

    @property
    def name(self) -> str:
        """The character by number and name."""
        return f"U+{ord(self.char):04X} {unicodedata.name(self.char, '')}".rstrip()


def lookalike(word: str, written: str | None = None, *, is_name: bool = False) -> Lookalike | None:
    """The first character that deceives in a word of a command; None where none does.

    `written` is the word with its quotes, if it has such. `is_name`: it is a program, an option or a host, which mostly
    are ASCII, so that a word is suspected that passes for ASCII as a whole.
    """
    if word.isascii():
        return None
    is_prose = any(map(str.isspace, word))
    found = next(_in_letters(word, is_name=is_name and not is_prose), None)
    if found is None and not is_prose:
        found = next(_in_signs(word, written or word, is_name=is_name), None)
    return None if found is None else Lookalike(word, *found)


def passes_for(char: str) -> str:
    """The character of ASCII that this one looks like; empty where it looks like none, or is one."""
    if char.isascii() or unicodedata.decomposition(char).startswith(_RAISED):
        return ""
    plain = _like("like").get(char) or unicodedata.normalize("NFKC", char)
    return plain if len(plain) == 1 and plain.isascii() and plain.isprintable() and plain != " " else ""


def passes_for_in_host(char: str) -> str:
    """The character of ASCII that this one looks like in the name of a host, in small letters; empty for none."""
    return _like("like_in_hosts").get(char) or passes_for(char).lower()


@cache
def _like(part: str) -> Mapping[str, str]:
    table = tomllib.loads(files(__package__ or __name__).joinpath("lookalikes.toml").read_text(encoding="utf-8"))
    return {char: plain for plain, chars in table[part].items() for char in chars}


def _in_letters(word: str, *, is_name: bool) -> Iterator[tuple[str, str]]:
    for run in _LETTERS.findall(word):
        foreign = [char for char in run if not char.isascii()]
        alike = [char for char in foreign if passes_for(char).isalnum()]
        others = [char for char in alike if _script(char) != "LATIN"]
        scripts = {_script(char) for char in run if char.isascii() or char in others}
        if others and len(scripts) > 1:
            yield others[0], passes_for(others[0])
        elif is_name and alike and alike == foreign:
            yield alike[0], passes_for(alike[0])


def _in_signs(word: str, written: str, *, is_name: bool) -> Iterator[tuple[str, str]]:
    if is_name and _OF_ASCII.search(word):
        yield from ((char, "-") for char in word if passes_for(char) == "-")
    yield from ((char, passes_for(char)) for char in (written[0], written[-1]) if passes_for(char) in _QUOTES)
    if _EAST_ASIAN.search(word):
        return
    stands_alone = all(passes_for(char) in _SIGNS for char in word)
    for at, char in enumerate(word):
        sign = passes_for(char)
        beside = word[at - 1 : at] + word[at + 1 : at + 2]
        if sign in _SIGNS - _QUOTES and (stands_alone or (beside.isascii() and len(beside) == 2)):
            yield char, sign


def _script(char: str) -> str:
    """The first word of a letter's Unicode name, which is its script for all that matters here."""
    return "LATIN" if char.isascii() else unicodedata.name(char, "?").partition(" ")[0]
