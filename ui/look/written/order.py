"""Commands, paths and addresses drawn in the order in which they are written, whatever letters they are of.

Letters that read from the right take the words and signs between them along (Unicode annex 9): `mv א ב` would look like
`mv ב א`. Each run of such letters is set apart here, so that a word reads as its language does, and words stand in the
order in which they run.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise

from desktop_agent.vocabulary.errors import Sentence
from ui.look.visible_text import show_hidden

_LEFT_ISOLATE, _RIGHT_ISOLATE, _POP_ISOLATE = "\u2066", "\u2067", "\u2069"
BIDI_MARKS = frozenset({_LEFT_ISOLATE, _RIGHT_ISOLATE, _POP_ISOLATE})
"""What is drawn as nothing, and must not be copied or spoken."""

LEFT_TO_RIGHT_MARK = "\u200e"
"""Before a text that is laid out by its first letter: it reads from the left."""

_RIGHT_TO_LEFT_RUN = re.compile(
    "(?:[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff\U0001e800-\U0001efff][\u0300-\u036f]*)+"
)
_MARKS = re.compile(f"[{_LEFT_ISOLATE}{_RIGHT_ISOLATE}{_POP_ISOLATE}]")
_ISOLATED = rf"{_RIGHT_ISOLATE}\g<0>{_POP_ISOLATE}"


def in_logical_order(text: str) -> str:
    """For lines that read from the left by themselves. The text has no marks of its own: they were made visible."""
    return text if text.isascii() else _RIGHT_TO_LEFT_RUN.sub(_ISOLATED, text)


def isolate(text: str) -> str:
    """Inside a sentence, of whatever language: what stands around it does not change its order either."""
    return f"{_LEFT_ISOLATE}{in_logical_order(text)}{_POP_ISOLATE}" if _RIGHT_TO_LEFT_RUN.search(text) else text


def isolate_untrusted(text: str) -> str:
    """What somebody else wrote, inside a sentence: hidden characters can be seen, and its order is the written one."""
    return isolate(show_hidden(text))


def isolate_values(sentence: Sentence) -> Sentence:
    """The sentence, with `isolate_untrusted` done to all that is filled in."""
    values = {
        name: isolate_values(value) if isinstance(value, Sentence) else isolate_untrusted(value)
        for name, value in sentence.values.items()
    }
    return Sentence(sentence.template, values)


def strip_bidi_marks(text: str) -> str:
    """The plain text again."""
    return text if text.isascii() else _MARKS.sub("", text)


def bidi_mark_positions(text: str) -> list[int]:
    """Where in what `in_logical_order` makes of a text the marks stand, in Qt's units (UTF-16)."""
    edges = [] if text.isascii() else [at for found in _RIGHT_TO_LEFT_RUN.finditer(text) for at in found.span()]
    units = [_utf16_length(part) for part in (text[start:end] for start, end in pairwise([0, *edges]))]
    return [place + at for at, place in enumerate(accumulate(units))]


def displayed_positions(text: str, places: Sequence[int]) -> list[int]:
    """Where rising places of the text are in what `in_logical_order` makes of it, in Qt's units (UTF-16)."""
    if text.isascii():
        return list(places)
    before = [mark - at for at, mark in enumerate(bidi_mark_positions(text))]
    units = accumulate(_utf16_length(text[start:end]) for start, end in pairwise([0, *places]))
    return [place + bisect_right(before, place) for place in units]


def _utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
