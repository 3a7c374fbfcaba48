"""Text whose hidden characters can be seen, so that what is read is what is there."""

import re
from collections.abc import Callable
from functools import lru_cache

from desktop_agent.vocabulary.text.hidden_characters import HIDDEN, PRIVATE

_SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_HIDDEN = re.compile(f"[{HIDDEN}{_SPACES}{PRIVATE}]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def hidden_written(text: str, write: Callable[[str], str]) -> str:
    """The text with each control, direction and zero-width character as `write` spells it; tab and line feed stay."""
    hidden = _CONTROL if text.isascii() else _HIDDEN
    return hidden.sub(lambda found: write(found.group()), text)


def with_hidden_shown(text: str) -> str:
    """Control, direction and zero-width characters as ⟨U+202E⟩; tab and line feed stay."""
    return hidden_written(text.replace("\r\n", "⟨CR⟩\n"), by_number)


@lru_cache(maxsize=4096)
def by_number(character: str) -> str:
    """A character as ⟨U+202E⟩."""
    return f"⟨U+{ord(character):04X}⟩"
