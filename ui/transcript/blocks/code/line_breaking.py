"""Where a line of code is broken into pieces and rows, how wide characters are, and which hidden characters are
spelled out.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from math import ceil
from time import perf_counter

from PySide6.QtCore import QCoreApplication, QLocale
from PySide6.QtGui import QFont, QFontMetricsF

from desktop_agent.types.hidden_characters import DECEPTIVE_CHARACTERS, find_deceptive
from ui.style.text import code_point_text
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.style import RenderStyle

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
        at, shown = at + utf16_length(plain), shown + utf16_length(plain)
        length = utf16_length(code[first:stop])
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


MAX_PIECE_LENGTH = 1000
"""Characters of a piece."""

# What goes with the character before it, and joiners, after which the next one belongs to it as well.
_JOINED = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u06d6-\u06ed\u0900-\u0903"
    "\u093a-\u094f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u1160-\u11ff\u1ab0-\u1aff\u1dc0-\u1dff\u200d\u20d0-\u20ff"
    "\u302a-\u302f\u3099\u309a\ufe00-\ufe0f\ufe20-\ufe2f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f\U000e0100-\U000e01ef"
)
_JOINS_PREVIOUS = re.compile(f"[{_JOINED}]")
_FLAG = re.compile("[\U0001f1e6-\U0001f1ff]")
_FLAGS = re.compile("[\U0001f1e6-\U0001f1ff]+")
_LOOKBACK = 32
"""Characters after which it is cut, whatever belongs together."""

_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\u200f\u202b\u202e\u2067\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff]")


def find_piece_starts(line: str, first: int = 0) -> list[int]:
    """Where pieces begin that stand side by side, from one of them on."""
    if len(line) - first <= MAX_PIECE_LENGTH:
        return [first]
    rest = line[first:]
    if rest.isascii() and rest.isprintable():
        return list(range(first, len(line), MAX_PIECE_LENGTH))
    runs = find_long_runs(line, first)
    starts, at = [first], first
    while (at := find_cut(line, at, at + MAX_PIECE_LENGTH, runs)) < len(line):
        starts.append(at)
    return starts


def stable_end(size: int) -> int:
    """Up to this place it does not matter what comes behind a text of this size."""
    return max(0, size - LONG_RUN)


def stable_count(starts: Sequence[int], size: int) -> int:
    """How many of its cuts stay where they are, however a text of this size goes on; the first one always does."""
    return max(1, bisect_right(starts, stable_end(size)))


def find_cut(line: str, before: int, at: int, runs: Sequence[tuple[int, int]]) -> int:
    """The next place to cut: `at`, or a little earlier, or behind a long run of hidden characters."""
    if at >= len(line):
        return len(line)
    nearest = bisect_right(runs, (at, 0)) - 1
    if nearest >= 0 and runs[nearest][0] < at < runs[nearest][1]:
        first, end = runs[nearest]
        return first if first > before else end
    if line[at] < "\u0300" and line[at - 1] != "\u200d":
        return at
    places = range(at, max(before, at - _LOOKBACK), -1)
    return next((position for position in places if _can_cut(line, before, position)), at)


def _can_cut(line: str, before: int, at: int) -> bool:
    """Whether what stands on both sides of a place is drawn apart; it is at `before`."""
    if _JOINS_PREVIOUS.match(line, at) or line[at - 1] == "\u200d":
        return False
    if not _FLAG.match(line, at):
        return True
    run = next((found for found in _FLAGS.finditer(line, before, at) if found.end() == at), None)
    return run is None or (at - run.start()) % 2 == 0


def has_right_to_left(part: str) -> bool:
    """Whether some of it is read from right to left: what stands side by side is then not in order."""
    return not part.isascii() and _RIGHT_TO_LEFT.search(part) is not None


TAB = 4
"""Characters from one tab stop to the next."""

ALMOST = 0.001
"""Pixels that are no reason for another row."""

_SAMPLES = 64
_MAX_KEPT = 20_000


class Advances(dict[str, float]):
    """Pixels for each character of one font; of what is hidden, those of its label."""

    def __init__(self, font: QFont, *, is_even: bool) -> None:
        super().__init__({"\t": TAB / 2 * QFontMetricsF(font).horizontalAdvance("0")})
        self._metrics = QFontMetricsF(font)
        self.is_even = is_even
        self.plain = self._metrics.horizontalAdvance("0")
        self.wide = self._metrics.horizontalAdvance("中")
        self.label = self._metrics.horizontalAdvance(longest_label())

    def __missing__(self, character: str) -> float:
        if may_be_spelled_out(character):
            found = self._metrics.horizontalAdvance("⟨U+00000⟩")
        elif "\u3041" <= character <= "\u9fff" or "\uac00" <= character <= "\ud7a3":
            found = self.wide
        else:
            found = self._metrics.horizontalAdvance(character)
        if len(self) < _MAX_KEPT:
            self[character] = found
        return found

    def width_after(self, used: float, character: str) -> float:
        """How much of a row is used with one more character."""
        if character != "\t":
            return used + self[character]
        stop = TAB * self.plain
        return (used // stop + 1) * stop

    def is_plain(self, text: str) -> bool:
        """Whether all its characters are equally wide, and none of them is drawn as something else."""
        return self.is_even and text.isascii() and text.isprintable()

    def columns_per_row(self, width: float) -> int:
        """Plain characters that stand on one row."""
        return max(1, min(MAX_PIECE_LENGTH, int((width + ALMOST) / self.plain)))

    def columns(self, lines: Sequence[str]) -> list[int]:
        """On how many columns lines stand; negative, where that says no more than whether it is one row; 0: unknown.

        Quick: nothing is measured.
        """
        whole = "".join(lines)
        if self.is_plain(whole):
            return [len(line) or 1 for line in lines]
        if self.is_plain(whole.replace("\t", "")):
            return [-len(line.expandtabs(TAB)) if "\t" in line else len(line) or 1 for line in lines]
        return [self._columns_of(line) for line in lines]

    def _columns_of(self, line: str) -> int:
        if self.is_plain(line):
            return len(line) or 1
        return -len(line.expandtabs(TAB)) if self.is_plain(line.replace("\t", "")) else 0

    def max_columns(self, text: str) -> int:
        """Columns of a text, measured; wherever it has its tabs, it needs no more."""
        wide = sum(map(self.__getitem__, text.replace("\t", " " * TAB)))
        return max(1, ceil((wide - ALMOST) / self.plain))

    def estimate_width(self, text: str) -> float:
        """About how wide a text is; every so many of its characters are looked at."""
        if self.is_plain(text):
            return len(text) * self.plain
        # Odd: what alternates is met as often as it is there.
        every = len(text) // _SAMPLES | 1
        return sum(map(self.__getitem__, text[::every])) * every


_KNOWN: dict[str, Advances] = {}
_FONTS = 4


def advances_of(style: RenderStyle) -> Advances:
    """Those of the font of code."""
    key = style.mono.key()
    found = _KNOWN.get(key)
    if found is None:
        if len(_KNOWN) >= _FONTS:
            _KNOWN.clear()
        found = _KNOWN[key] = Advances(style.mono, is_even=style.mono_is_even)
    return found


_MEASURED_AT_ONCE = 2000
"""Characters that are measured together."""


class LineWrapper:
    """`starts` are the characters at which rows begin, as far as they are known; a row has one character at least."""

    def __init__(self, line: str, width: float, advances: Advances) -> None:
        self._line = line
        self._width = width + ALMOST
        self._advances = advances
        self._in_row = advances.columns_per_row(width)
        self._is_plain = advances.is_plain(line)
        self.starts = [0]
        self._at = 0
        self._runs = [] if self._is_plain else find_long_runs(line)
        self._run = 0
        self._first = 0
        self._reaches = [0.0]
        self._wrap_plain()

    def append(self, line: str, more: str) -> None:
        """The line has more at its end. The rows before it stay."""
        self._is_plain = self._is_plain and self._advances.is_plain(more)
        del self.starts[stable_count(self.starts, len(self._line)) :]
        self._at = self.starts[-1]
        if not self._is_plain:
            self._find_runs(line)
        self._line = line
        self._wrap_plain()

    def _wrap_plain(self) -> None:
        if self._is_plain:
            self.starts += range(self.starts[-1] + self._in_row, len(self._line), self._in_row)
            self._at = len(self._line)

    def _find_runs(self, line: str) -> None:
        """From where the text may have ended within one."""
        runs, size = self._runs, len(self._line)
        first = stable_end(size)
        if runs and runs[-1][1] >= first:
            first = runs.pop()[0] if runs[-1][1] == size else runs[-1][1]
        runs += find_long_runs(line, first)
        self._run = min(self._run, len(runs))
        while self._run and runs[self._run - 1][1] > self._at:
            self._run -= 1

    @property
    def is_complete(self) -> bool:
        """Whether all are known."""
        return self._at >= len(self._line)

    @property
    def count(self) -> int:
        """How many there are; a guess, until all are known."""
        known = len(self.starts)
        return known if self.is_complete else max(known, known * len(self._line) // max(1, self._at))

    def count_more(self, until: float) -> None:
        """Look for more until the clock says so."""
        while not self.is_complete:
            self.wrap_until(self._at + _MEASURED_AT_ONCE)
            if perf_counter() > until:
                return

    def wrap_until(self, character: int) -> None:
        """The rows up to the one that holds a character, and where that ends."""
        while self._at <= character and not self.is_complete:
            self._wrap_next()

    def wrap_rows(self, count: int) -> None:
        """So many rows, if there are so many, and where the last of them ends."""
        while len(self.starts) <= count and not self.is_complete:
            self._wrap_next()

    def _wrap_next(self) -> None:
        before = self._at
        at = find_cut(self._line, before, self._row_end(before), self._runs)
        self._at = at
        if at < len(self._line):
            self.starts.append(at)

    def _row_end(self, at: int) -> int:
        """Where the row that begins here is full."""
        self._measure(at)
        used = self._reaches[at - self._first]
        found = self._first + bisect_right(self._reaches, used + self._width) - 1
        while self._run < len(self._runs) and self._runs[self._run][1] <= at:
            self._run += 1
        has_run = self._run < len(self._runs) and self._runs[self._run][0] <= found
        if has_run or self._line.find("\t", at, found + 1) >= 0:
            found = self._unit_length(at)
        return max(at + 1, min(found, at + MAX_PIECE_LENGTH))

    def _measure(self, at: int) -> None:
        """Know how far a row's characters reach, and those of some more rows."""
        end = self._first + len(self._reaches) - 1
        if at < self._first or (end < len(self._line) and end - at < MAX_PIECE_LENGTH):
            part = self._line[at : at + MAX_PIECE_LENGTH + _MEASURED_AT_ONCE]
            self._first = at
            self._reaches = list(accumulate(map(self._advances.__getitem__, part), initial=0.0))

    def _unit_length(self, at: int) -> int:
        """From one tab or label to the next: what they need depends on where they stand."""
        used, run, end = 0.0, self._run, min(len(self._line), at + MAX_PIECE_LENGTH)
        while at < end:
            label = self._runs[run][0] if run < len(self._runs) else end
            tab = self._line.find("\t", at, end)
            if (special := min(label, end, end if tab < 0 else tab)) > at:
                begin = self._reaches[at - self._first]
                full = self._first + bisect_right(self._reaches, begin + self._width - used) - 1
                if full < special:
                    return full
                used, at = used + self._reaches[special - self._first] - begin, special
                continue
            if label <= at:
                used, after, run = used + self._advances.label, self._runs[run][1], run + 1
            else:
                used, after = self._advances.width_after(used, self._line[at]), at + 1
            if used > self._width:
                return at
            at = after
        return at
