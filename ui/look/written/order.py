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
from ui.look.visible_text import with_hidden_shown

_LEFT, _RIGHT, _END = "\u2066", "\u2067", "\u2069"
ORDER_MARKS = frozenset({_LEFT, _RIGHT, _END})
"""What is drawn as nothing, and must not be copied or spoken."""

LEFT_FIRST = "\u200e"
"""Before a text that is laid out by its first letter: it reads from the left."""

_RUN = re.compile(
    "(?:[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff\U0001e800-\U0001efff][\u0300-\u036f]*)+"
)
_MARKS = re.compile(f"[{_LEFT}{_RIGHT}{_END}]")
_SET_APART = rf"{_RIGHT}\g<0>{_END}"


def in_written_order(text: str) -> str:
    """For lines that read from the left by themselves. The text has no marks of its own: they were made visible."""
    return text if text.isascii() else _RUN.sub(_SET_APART, text)


def set_apart(text: str) -> str:
    """Inside a sentence, of whatever language: what stands around it does not change its order either."""
    return f"{_LEFT}{in_written_order(text)}{_END}" if _RUN.search(text) else text


def shown_apart(text: str) -> str:
    """What somebody else wrote, inside a sentence: hidden characters can be seen, and its order is the written one."""
    return set_apart(with_hidden_shown(text))


def values_apart(sentence: Sentence) -> Sentence:
    """The sentence, with `shown_apart` done to all that is filled in."""
    values = {
        name: values_apart(value) if isinstance(value, Sentence) else shown_apart(value)
        for name, value in sentence.values.items()
    }
    return Sentence(sentence.template, values)


def without_order_marks(text: str) -> str:
    """The plain text again."""
    return text if text.isascii() else _MARKS.sub("", text)


def mark_places(text: str) -> list[int]:
    """Where in what `in_written_order` makes of a text the marks stand, in Qt's units (UTF-16)."""
    edges = [] if text.isascii() else [at for found in _RUN.finditer(text) for at in found.span()]
    units = [_units(part) for part in (text[start:end] for start, end in pairwise([0, *edges]))]
    return [place + at for at, place in enumerate(accumulate(units))]


def drawn_places(text: str, places: Sequence[int]) -> list[int]:
    """Where rising places of the text are in what `in_written_order` makes of it, in Qt's units (UTF-16)."""
    if text.isascii():
        return list(places)
    before = [mark - at for at, mark in enumerate(mark_places(text))]
    units = accumulate(_units(text[start:end]) for start, end in pairwise([0, *places]))
    return [place + bisect_right(before, place) for place in units]


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
