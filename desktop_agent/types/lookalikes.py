"""Lookalike characters (homoglyphs, confusables): a Cyrillic letter in `curl`, a dash that is no hyphen before `rf`.

A word wholly in another script is taken for what it seems, unless all of it passes for ASCII where an ASCII name is
expected.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from desktop_agent.data_files import load_table

_ASCII_ALPHANUMERIC = re.compile(r"[A-Za-z0-9]")
_LETTERS = re.compile(r"[^\W_]+")
# What a shell, an address or a path reads as a sign.
_SYNTAX_CHARACTERS = frozenset("/\\.:@'\"|;&$<>`=~*?#!(){}[],")
# UnicodeData.txt: 2 in m², 1 in ①.
_DECOMPOSITIONS_THAT_DIFFER = ("<super>", "<sub>", "<circle>", "<square>", "<fraction>")
_QUOTES = frozenset("'\"`")
_EAST_ASIAN = re.compile("[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class Lookalike:
    """A character of a word, and the ASCII character that it passes for."""

    word: str
    char: str
    passes_for: str

    @property
    def name(self) -> str:
        """Its code point and Unicode name."""
        return f"U+{ord(self.char):04X} {unicodedata.name(self.char, '')}".rstrip()


def find_lookalike(word: str, written: str | None = None, *, is_name: bool = False) -> Lookalike | None:
    """Return the first deceptive character in a word of a command, or None.

    `written` is the word with its quotes, if it has any. `is_name`: the word is a program, an option or a host; these
    mostly are ASCII, so a word that passes for ASCII as a whole is suspect.
    """
    if word.isascii():
        return None
    is_prose = any(map(str.isspace, word))
    pair = next(_find_in_letters(word, is_name=is_name and not is_prose), None)
    if pair is None and not is_prose:
        pair = next(_find_in_signs(word, written or word, is_name=is_name), None)
    return None if pair is None else Lookalike(word, *pair)


def ascii_lookalike(char: str) -> str:
    """Return the ASCII character that this one looks like; empty where there is none, or it is ASCII itself."""
    if char.isascii() or unicodedata.decomposition(char).startswith(_DECOMPOSITIONS_THAT_DIFFER):
        return ""
    plain = _ascii_by_lookalike("like").get(char) or unicodedata.normalize("NFKC", char)
    return plain if len(plain) == 1 and plain.isascii() and plain.isprintable() and plain != " " else ""


def ascii_lookalike_in_host(char: str) -> str:
    """Return the lower-case ASCII character that this one looks like in a host name; empty for none."""
    return _ascii_by_lookalike("like_in_hosts").get(char) or ascii_lookalike(char).lower()


@cache
def _ascii_by_lookalike(part: str) -> Mapping[str, str]:
    table = load_table(__name__, "lookalikes.toml")
    return {char: plain for plain, chars in table[part].items() for char in chars}


def _find_in_letters(word: str, *, is_name: bool) -> Iterator[tuple[str, str]]:
    for run in _LETTERS.findall(word):
        foreign = [char for char in run if not char.isascii()]
        alike = [char for char in foreign if ascii_lookalike(char).isalnum()]
        foreign_script = [char for char in alike if _script(char) != "LATIN"]
        scripts = {_script(char) for char in run if char.isascii() or char in foreign_script}
        if foreign_script and len(scripts) > 1:
            yield foreign_script[0], ascii_lookalike(foreign_script[0])
        elif is_name and alike and alike == foreign:
            yield alike[0], ascii_lookalike(alike[0])


def _find_in_signs(word: str, written: str, *, is_name: bool) -> Iterator[tuple[str, str]]:
    if is_name and _ASCII_ALPHANUMERIC.search(word):
        yield from ((char, "-") for char in word if ascii_lookalike(char) == "-")
    yield from ((char, ascii_lookalike(char)) for char in (written[0], written[-1]) if ascii_lookalike(char) in _QUOTES)
    if _EAST_ASIAN.search(word):
        return
    stands_alone = all(ascii_lookalike(char) in _SYNTAX_CHARACTERS for char in word)
    for offset, char in enumerate(word):
        sign = ascii_lookalike(char)
        beside = word[offset - 1 : offset] + word[offset + 1 : offset + 2]
        if sign in _SYNTAX_CHARACTERS - _QUOTES and (stands_alone or (beside.isascii() and len(beside) == 2)):
            yield char, sign


def _script(char: str) -> str:
    """Return the first word of a letter's Unicode name, which names its script well enough here."""
    return "LATIN" if char.isascii() else unicodedata.name(char, "?").partition(" ")[0]
