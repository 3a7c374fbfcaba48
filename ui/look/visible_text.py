"""Text whose hidden characters can be seen, so that what is read is what is there."""

import re
import unicodedata
from collections.abc import Callable
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
    return hidden_written(text.replace("\r\n", "⟨CR⟩\n"), _by_number)


def _by_number(character: str) -> str:
    return f"⟨U+{ord(character):04X}⟩"
