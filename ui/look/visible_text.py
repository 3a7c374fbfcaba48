"""Text whose hidden characters can be seen, so that what is read is what is there."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache

# Invisible although Unicode does not file them under control or format: fillers, and spaces that are no space.
_BLANKS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u00a0\u2000-\u200a\u202f\u205f\u3000\u1680"
_HIDDEN_CATEGORIES = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
_SUSPECT = re.compile(f"[^\t\n\x20-\x7e]|[{_BLANKS}]")
_BLANK = re.compile(f"[{_BLANKS}]")


@lru_cache(maxsize=4096)
def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN_CATEGORIES or _BLANK.match(character) is not None


def hidden_written(text: str, write: Callable[[str], str]) -> str:
    """The text with each control, direction and zero-width character as `write` spells it; tab and line feed stay."""

    def written(match: re.Match[str]) -> str:
        character = match.group()
        return write(character) if _is_hidden(character) else character

    return _SUSPECT.sub(written, text)


def with_hidden_shown(text: str) -> str:
    """Control, direction and zero-width characters as ⟨U+202E⟩; tab and line feed stay."""
    return hidden_written(text.replace("\r\n", "⟨CR⟩\n"), by_number)


def by_number(character: str) -> str:
    """A character as ⟨U+202E⟩."""
    return f"⟨U+{ord(character):04X}⟩"


_EMBEDS = "\u202a-\u202e\u2066-\u2069"
_MARKS = "\u061c\u200e\u200f"
_JOINERS = "\u200b-\u200d\u2060\ufeff"
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_TAGS = "\U000e0000-\U000e007f"
_FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
DECEPTIVE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u180e\u2028\u2029\u2061-\u2064\u206a-\u206f\ufff9-\ufffc\U0001bca0-\U0001bca3"
    f"\U0001d173-\U0001d17a\ud800-\udfff{_EMBEDS}{_MARKS}{_JOINERS}{_SELECTORS}{_TAGS}{_FILLERS}"
)
"""What may deceive, for the inside of a pattern's brackets. Where it stands decides: `deceptive` looks at that."""

_MAY_DECEIVE = re.compile(f"[{DECEPTIVE}]")
_MARK = re.compile(f"[{_MARKS}]")
_FORMATS = re.compile(f"[{_JOINERS}]")
_SELECTOR = re.compile(f"[{_SELECTORS}]")
# England, Scotland and Wales: the only flags that are spelled in tags (Unicode, emoji-sequences.txt).
_TAG_FLAG = re.compile(
    "\U0001f3f4\U000e0067\U000e0062"
    "(\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
# Scripts whose letters are joined or kept apart by zero-width characters: Syriac, Arabic, those of India, Mongolian.
_JOINING = re.compile("[\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u18af\ufb50-\ufdff\ufe70-\ufefc]")
# Scripts written without spaces, in which a zero-width space says where a line may break.
_SPACELESS = re.compile("[\u0e00-\u0eff\u0f00-\u109f\u1780-\u17ff\u1980-\u19df\u3040-\u30ff\u3400-\u9fff]")
_PICTURE = re.compile("[\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff\u00a9\u00ae\ufe0f]")
_BRAILLE = re.compile("[\u2801-\u28ff]")
_JAMO = re.compile("[\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff]")


def deceptive(text: str, *, is_code: bool = False) -> Iterator[int]:
    """Where characters stand that hide something: they reorder, or take no room, and are no part of what is seen.

    Joiners within emoji and within the scripts that need them, direction marks beside letters written from right to
    left, and single variation selectors stay. In code every direction mark counts.
    """
    if not _MAY_DECEIVE.search(text):
        return
    flags = {at for found in _TAG_FLAG.finditer(text) for at in range(found.start() + 1, found.end())}
    for found in _MAY_DECEIVE.finditer(text):
        at = found.start()
        if at not in flags and not _belongs(text, at, is_code=is_code):
            yield at


def _belongs(text: str, at: int, *, is_code: bool) -> bool:
    """Whether a character that could deceive is an ordinary part of what stands around it."""
    char = text[at]
    before, after = text[at - 1 : at] if at else "", text[at + 1 : at + 2]
    if _MARK.match(char):
        return not is_code and _RIGHT_TO_LEFT.search(text, max(0, at - 200), at + 200) is not None
    if _SELECTOR.match(char):
        # Letters have no variants but in the scripts named here; a selector after each letter carries a message.
        chooses = not before.isalpha() or _SPACELESS.match(before)
        return bool(before) and not before.isspace() and not _MAY_DECEIVE.match(before) and bool(chooses)
    if _FORMATS.match(char):
        return _joins(char, before, after)
    if char == "\u2800":
        return not is_code and _BRAILLE.search(text) is not None
    if char in "\u115f\u1160":
        return bool(_JAMO.match(before) or _JAMO.match(after)) and before != char
    return char == "\u034f" and unicodedata.combining(before or " ") != 0


def _joins(char: str, before: str, after: str) -> bool:
    if char == "\u200d":
        return bool(_PICTURE.match(before) and _PICTURE.match(after)) or bool(_JOINING.match(before))
    if char == "\u200c":
        return bool(_JOINING.match(before))
    return char == "\u200b" and bool(_SPACELESS.match(before) or _SPACELESS.match(after))
