"""Text whose hidden characters can be seen, so that what is read is what is there."""

import re
from collections.abc import Callable
from functools import cache, lru_cache

_SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
# More of them than any language needs, one on the other, are drawn over the lines above and below.
_STACKED = "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u06d6-\u06dc"
_STACKED_SIGNS = "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u0f71-\u0f84"
_STACKED_MARKS = "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_MOST_STACKED = 4
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def replace_hidden(text: str, write: Callable[[str], str]) -> str:
    """The text with each control, direction and zero-width character as `write` spells it; tab and line feed stay.

    So are marks on a letter that has several already.
    """
    hidden = _CONTROL if text.isascii() else _hidden_pattern()
    return hidden.sub(lambda found: write(found.group()), text)


@cache
def _hidden_pattern() -> re.Pattern[str]:
    # Late: compiling all of them takes longer than drawing the window, which shows none at first.
    from desktop_agent.vocabulary.text.hidden_characters import HIDDEN_CHARACTERS, PRIVATE_USE_CHARACTERS

    stacked = f"[{_STACKED}{_STACKED_SIGNS}{_STACKED_MARKS}]"
    return re.compile(f"[{HIDDEN_CHARACTERS}{_SPACES}{PRIVATE_USE_CHARACTERS}]|(?<={stacked * _MOST_STACKED}){stacked}")


def show_hidden(text: str) -> str:
    """Control, direction and zero-width characters as ⟨U+202E⟩; tab and line feed stay."""
    return replace_hidden(text.replace("\r\n", "⟨CR⟩\n"), code_point_text)


@lru_cache(maxsize=4096)
def code_point_text(character: str) -> str:
    """A character as ⟨U+202E⟩."""
    return f"⟨U+{ord(character):04X}⟩"
