"""The words of a message whose spelling can be judged: prose, not code, addresses, paths or identifiers."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from unicodedata import normalize

_MAX_LENGTH = 50
_FENCE = re.compile(r" {0,3}(```|~~~)")
# A span between equal runs of backticks; one that is not closed goes to the end of the line.
_CODE = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)|`.*")
_TOKEN = re.compile(r"\S+")
_NOT_PROSE = re.compile(r"[@/\\_=<>{}|~^$#]|\w[.:]+\w|\w[(\[]|^[-+]+\w|^www\.")
# Also vowel signs and accents, which are no letters of their own, and characters that join letters.
_LETTER = r"[^\W_]|[\u0300-\u036f\u0591-\u05c7\u0610-\u065f\u0670\u0900-\u0dff\u200c\u200d]"
_WORD = re.compile(rf"(?:{_LETTER})+(?:['’](?:{_LETTER})+)*")
# Scripts that do not divide words: Thai, Lao, Burmese, Khmer, Chinese and Japanese.
_UNDIVIDED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word as dictionaries write it, and its place in the line in characters."""

    start: int
    end: int
    text: str


def is_fence(line: str) -> bool:
    """Return whether a block of code begins or ends with this line."""
    return _FENCE.match(line) is not None


def prose_words(line: str) -> Iterator[Word]:
    """Yield the words of a line outside of blocks of code."""
    prose = _CODE.sub(lambda code: " " * len(code[0]), line) if "`" in line else line
    for token in _TOKEN.finditer(prose):
        if _NOT_PROSE.search(token[0]):
            continue
        for word in _WORD.finditer(token[0]):
            if _is_judged(word[0]):
                start = token.start()
                text = normalize("NFC", word[0].replace("’", "'"))
                yield Word(start + word.start(), start + word.end(), text)


def _is_judged(word: str) -> bool:
    if not 1 < len(word) <= _MAX_LENGTH or word.isupper() or _UNDIVIDED.search(word):
        return False
    is_identifier = any(first.islower() and second.isupper() for first, second in pairwise(word))
    return not is_identifier and not any(character.isdigit() for character in word)
