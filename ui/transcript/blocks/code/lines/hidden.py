"""A line of code whose hidden characters are spelled out: what would deceive a reader stands there for all to see.

Several of one kind are one label with their number, and so is a long run of any of them.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from PySide6.QtCore import QCoreApplication, QLocale

from desktop_agent.vocabulary.text.hidden_characters import DECEPTIVE_CHARACTERS, find_deceptive
from ui.look.visible_text import code_point_text
from ui.transcript.blocks.code.lines.lengths import unit_length

_MAY_HIDE = re.compile(f"[{DECEPTIVE_CHARACTERS}]")

_MIN_RUN = 4
"""Characters of one kind that become one label."""

LONG_RUN = 33
"""Hidden characters of any kind, one behind the other, that become one label."""

_LONG_RUN = re.compile(f"[{DECEPTIVE_CHARACTERS}]{{{LONG_RUN},}}")
_KINDS = 3
_SCAN_STEP = 1000
_CONTEXT = 8
"""Characters beside a hidden one that decide whether it belongs there: a flag that is spelled has seven."""


@dataclass(frozen=True, slots=True)
class HiddenLabel:
    """What stands for `length` units of code from `start` on; `shown_start` and `shown_length` say where."""

    start: int
    length: int
    shown_start: int
    shown_length: int


@dataclass(frozen=True, slots=True)
class SpelledOutLine:
    """`labels` stand for what was spelled out. All places are UTF-16 units."""

    text: str
    labels: tuple[HiddenLabel, ...]

    def to_shown(self, offset: int) -> int:
        """Where a place of the code is; one within a label is at its end."""
        at = bisect_right(self.labels, offset - 1, key=lambda label: label.start) - 1
        if at < 0:
            return offset
        label = self.labels[at]
        return label.shown_start + label.shown_length + max(0, offset - label.start - label.length)

    def caret_stop_at(self, offset: int) -> int:
        """The place itself, or the end of the label that it lies in."""
        at = bisect_right(self.labels, offset - 1, key=lambda label: label.start) - 1
        return max(offset, self.labels[at].start + self.labels[at].length) if at >= 0 else offset

    def from_shown(self, offset: int) -> int:
        """Which place of the code this is; the end of a character, where that is spelled out."""
        at = bisect_right(self.labels, offset - 1, key=lambda label: label.shown_start) - 1
        if at < 0:
            return offset
        label = self.labels[at]
        return label.start + label.length + max(0, offset - label.shown_start - label.shown_length)


def spell_out_line(code: str, start: int = 0, end: int | None = None) -> SpelledOutLine | None:
    """A part of a line between two characters; None for what hides nothing, as nearly every line."""
    end = len(code) if end is None else end
    if not _MAY_HIDE.search(code, start, end):
        return None
    parts: list[str] = []
    labels: list[HiddenLabel] = []
    last, at, shown = start, 0, 0
    for first, stop in _spelled_out(code, start, end):
        plain, label = code[last:first], _label(code, first, stop)
        at, shown = at + unit_length(plain), shown + unit_length(plain)
        length = unit_length(code[first:stop])
        labels.append(HiddenLabel(at, length, shown, len(label)))
        parts += [plain, label]
        at, shown, last = at + length, shown + len(label), stop
    return SpelledOutLine("".join([*parts, code[last:end]]), tuple(labels)) if labels else None


def find_long_runs(code: str, start: int = 0) -> list[tuple[int, int]]:
    """Start and end of what is one label whatever stands in it; behind a place that is not within one."""
    return [found.span() for found in _LONG_RUN.finditer(code, start)]


def may_be_spelled_out(character: str) -> bool:
    """Whether it may be, depending on what stands around it."""
    return _MAY_HIDE.match(character) is not None


def longest_label() -> str:
    """What the label of a run has room in."""
    return _join_labels(["⟨U+00000⟩"] * _KINDS, 9_999_999, has_more=True)


def _spelled_out(code: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    last = start
    for found in _LONG_RUN.finditer(code, start, end):
        yield from _between(code, last, found.start())
        yield found.span()
        last = found.end()
    yield from _between(code, last, end)


def _between(code: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Single ones, and several of one kind."""
    if not _MAY_HIDE.search(code, start, end):
        return
    first = max(0, start - _CONTEXT)
    near = code[first : end + _CONTEXT]
    places = [at for at in (first + position for position in find_deceptive(near, is_code=True)) if start <= at < end]
    for _, group in groupby(enumerate(places), key=lambda each: (each[1] - each[0], code[each[1]])):
        run = [at for _, at in group]
        if len(run) < _MIN_RUN:
            yield from ((at, at + 1) for at in run)
        else:
            yield run[0], run[-1] + 1


def _label(code: str, start: int, end: int) -> str:
    if end - start == 1:
        return code_point_text(code[start])
    looked_at = code[start : min(end, start + _SCAN_STEP)]
    kinds = list(dict.fromkeys(looked_at))
    has_more = len(kinds) > _KINDS or (len(kinds) > 1 and len(looked_at) < end - start)
    return _join_labels([code_point_text(kind) for kind in kinds[:_KINDS]], end - start, has_more=has_more)


def _join_labels(labels: list[str], count: int, *, has_more: bool) -> str:
    names = " ".join([*(label[1:-1] for label in labels), *(["…"] if has_more else [])])
    return QCoreApplication.translate("Transcript", "⟨{0} × {1}⟩").format(names, QLocale().toString(count))
