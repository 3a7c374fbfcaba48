"""Check words with hunspell, in the worker process: each call holds the interpreter's lock, up to 0.1 s."""

import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from unicodedata import name as character_name

_SAMPLE_BYTES = 65_536
_MIN_SHARE = 0.1
"""The share of a dictionary's letters from which on their script is one of its own."""
MAX_SUGGESTIONS = 5


@dataclass(frozen=True, slots=True)
class SpellingAnswer:
    """Which of the words are wrong, and what else the misspelt one could be, the likeliest first."""

    wrong: list[str]
    suggestions: list[str]


def prepare() -> None:
    """Import the library before the process is confined, where it is installed."""
    with suppress(ImportError):
        import_module("hunspell")


def answer(paths: list[str], words: list[str], misspelt: str) -> SpellingAnswer:
    """Check words, and suggest others for one that is not ""; `paths` are dictionaries without suffix.

    A word is wrong if a dictionary in its script does not know it, and no other one does.
    """
    dictionaries = [dictionary for path in paths if (dictionary := _open(path)) is not None]
    wrong = [word for word in words if _is_wrong(word, dictionaries)]
    suggestions = _suggestions(misspelt, dictionaries) if misspelt else []
    return SpellingAnswer(wrong, suggestions[:MAX_SUGGESTIONS])


class _Dictionary:
    def __init__(self, path: str) -> None:
        file = Path(path)
        # Paths are not in the encoding of the locale, which a worker process does not have.
        encoding = sys.getfilesystemencoding()
        library: Any = import_module("hunspell")
        self._hunspell = library.Hunspell(file.name, hunspell_data_dir=str(file.parent), system_encoding=encoding)
        self.scripts = _main_scripts(_sample(path))

    def knows(self, word: str) -> bool:
        try:
            return self._hunspell.spell(word)
        except UnicodeEncodeError:
            # It has letters that no word of this dictionary has.
            return False

    def suggest(self, word: str) -> list[str]:
        try:
            return [*self._hunspell.suggest(word)]
        except UnicodeEncodeError:
            return []


@cache
def _open(path: str) -> _Dictionary | None:
    """Load a dictionary, which takes 0.1 to 0.5 s. None for one that cannot be read: the others are used."""
    with suppress(ImportError, OSError, ValueError, LookupError):
        return _Dictionary(path)
    return None


def _is_wrong(word: str, dictionaries: list[_Dictionary]) -> bool:
    script = _script(next(filter(str.isalpha, word), ""))
    judges = [dictionary for dictionary in dictionaries if script in dictionary.scripts]
    return bool(judges) and not any(dictionary.knows(word) for dictionary in judges)


def _suggestions(word: str, dictionaries: list[_Dictionary]) -> list[str]:
    """Return what the dictionaries suggest: the first of each, then the second of each."""
    lists = [dictionary.suggest(word) for dictionary in dictionaries]
    longest = max(map(len, lists), default=0)
    mixed = (words[index] for index in range(longest) for words in lists if index < len(words))
    return [*dict.fromkeys(filter(None, mixed))]


def _sample(path: str) -> str:
    """Return the beginning of the words, in the encoding that the rules name."""
    encoding = "ISO8859-1"
    with Path(f"{path}.aff").open(encoding="latin-1") as rules:
        for line in rules:
            if line.lstrip("ï»¿").startswith("SET "):
                encoding = line.split()[1]
                break
    with Path(f"{path}.dic").open("rb") as file:
        return file.read(_SAMPLE_BYTES).decode(encoding, "replace")


def _main_scripts(text: str) -> frozenset[str]:
    counts: dict[str, int] = {}
    for character in filter(str.isalpha, _words_of(text.splitlines())):
        script = _script(character)
        counts[script] = counts.get(script, 0) + 1
    min_count = _MIN_SHARE * sum(counts.values())
    return frozenset(script for script, count in counts.items() if count >= min_count)


def _words_of(lines: Iterable[str]) -> str:
    """Return the words without what follows them: flags and morphology are in Latin letters everywhere."""
    return "".join(line.partition("/")[0].partition("\t")[0] for line in lines)


@cache
def _script(character: str) -> str:
    """Return the first word of the character's name, such as LATIN."""
    return character_name(character, "").partition(" ")[0] if character else ""
