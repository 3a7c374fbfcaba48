"""Break a line of code into pieces and rows, measure its characters, and spell out hidden ones."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, groupby
from math import ceil
from time import perf_counter

from PySide6.QtCore import QLocale
from PySide6.QtGui import QFont, QFontMetricsF

from desktop_agent.types.hidden_characters import DECEPTIVE_CHARACTERS, find_deceptive
from ui.style.text import code_point_text
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.style import RenderStyle
from ui.transcript.words import tr

_MAY_HIDE = re.compile(f"[{DECEPTIVE_CHARACTERS}]")

# Consecutive equal characters that become one label.
_MIN_RUN = 4

LONG_RUN = 33
"""The number of consecutive hidden characters of any kind that become one label."""

_LONG_RUN = re.compile(f"[{DECEPTIVE_CHARACTERS}]{{{LONG_RUN},}}")
_KINDS = 3
_SCAN_STEP = 1000
# Characters beside a hidden one that decide whether it is legitimate: the tags of a flag are seven.
_CONTEXT = 8


@dataclass(frozen=True, slots=True)
class HiddenLabel:
    """A label for `length` units of code from `start` on, displayed at `shown_start` in `shown_length` units."""

    start: int
    length: int
    shown_start: int
    shown_length: int


@dataclass(frozen=True, slots=True)
class SpelledOutLine:
    """A line with labels in place of hidden characters. Offsets are UTF-16 units."""

    text: str
    labels: tuple[HiddenLabel, ...]

    def to_shown(self, offset: int) -> int:
        """Return the displayed offset of an offset in the code; the end of a label for offsets inside it."""
        index = bisect_right(self.labels, offset - 1, key=lambda label: label.start) - 1
        if index < 0:
            return offset
        label = self.labels[index]
        return label.shown_start + label.shown_length + max(0, offset - label.start - label.length)

    def caret_stop_at(self, offset: int) -> int:
        """Return the offset, or the end of the label that it is in."""
        index = bisect_right(self.labels, offset - 1, key=lambda label: label.start) - 1
        return max(offset, self.labels[index].start + self.labels[index].length) if index >= 0 else offset

    def from_shown(self, offset: int) -> int:
        """Return the offset in the code of a displayed offset; for a label, the end of its characters."""
        index = bisect_right(self.labels, offset - 1, key=lambda label: label.shown_start) - 1
        if index < 0:
            return offset
        label = self.labels[index]
        return label.start + label.length + max(0, offset - label.shown_start - label.shown_length)


def spell_out_line(code: str, start: int = 0, end: int | None = None) -> SpelledOutLine | None:
    """Spell out a part of a line. Returns None if it hides nothing, like nearly every line."""
    end = len(code) if end is None else end
    if not _MAY_HIDE.search(code, start, end):
        return None
    parts: list[str] = []
    labels: list[HiddenLabel] = []
    last, offset, shown = start, 0, 0
    for first, stop in _spelled_out(code, start, end):
        plain, label = code[last:first], _label(code, first, stop)
        offset, shown = offset + utf16_length(plain), shown + utf16_length(plain)
        length = utf16_length(code[first:stop])
        labels.append(HiddenLabel(offset, length, shown, len(label)))
        parts += [plain, label]
        offset, shown, last = offset + length, shown + len(label), stop
    return SpelledOutLine("".join([*parts, code[last:end]]), tuple(labels)) if labels else None


def find_long_runs(code: str, start: int = 0) -> list[tuple[int, int]]:
    """Return the ranges that become one label whatever they contain, from an offset outside of such a range on."""
    return [match.span() for match in _LONG_RUN.finditer(code, start)]


def _spelled_out(code: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    last = start
    for match in _LONG_RUN.finditer(code, start, end):
        yield from _between(code, last, match.start())
        yield match.span()
        last = match.end()
    yield from _between(code, last, end)


def _between(code: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    if not _MAY_HIDE.search(code, start, end):
        return
    first = max(0, start - _CONTEXT)
    context = code[first : end + _CONTEXT]
    positions = find_deceptive(context, is_code=True)
    indices = [first + position for position in positions if start <= first + position < end]
    for _, group in groupby(enumerate(indices), key=lambda entry: (entry[1] - entry[0], code[entry[1]])):
        run = [offset for _, offset in group]
        if len(run) < _MIN_RUN:
            yield from ((offset, offset + 1) for offset in run)
        else:
            yield run[0], run[-1] + 1


def _label(code: str, start: int, end: int) -> str:
    if end - start == 1:
        return code_point_text(code[start])
    sample = code[start : min(end, start + _SCAN_STEP)]
    kinds = list(dict.fromkeys(sample))
    has_more = len(kinds) > _KINDS or (len(kinds) > 1 and len(sample) < end - start)
    return _join_labels([code_point_text(kind) for kind in kinds[:_KINDS]], end - start, has_more=has_more)


def _join_labels(labels: list[str], count: int, *, has_more: bool) -> str:
    names = " ".join([*(label[1:-1] for label in labels), *(["…"] if has_more else [])])
    return tr("⟨{0} × {1}⟩").format(names, QLocale().toString(count))


MAX_PIECE_LENGTH = 1000
"""Characters."""

# Characters that belong to the previous one, and joiners, to which the next one belongs as well.
_JOINED = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u06d6-\u06ed\u0900-\u0903"
    "\u093a-\u094f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u1160-\u11ff\u1ab0-\u1aff\u1dc0-\u1dff\u200d\u20d0-\u20ff"
    "\u302a-\u302f\u3099\u309a\ufe00-\ufe0f\ufe20-\ufe2f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f\U000e0100-\U000e01ef"
)
_JOINS_PREVIOUS = re.compile(f"[{_JOINED}]")
_FLAG = re.compile("[\U0001f1e6-\U0001f1ff]")
_FLAGS = re.compile("[\U0001f1e6-\U0001f1ff]+")
# The maximum number of characters that are kept together.
_LOOKBACK = 32


def find_piece_starts(line: str, first: int = 0) -> list[int]:
    """Return the starts of the pieces of a line, from a known start on."""
    if len(line) - first <= MAX_PIECE_LENGTH:
        return [first]
    rest = line[first:]
    if rest.isascii() and rest.isprintable():
        return list(range(first, len(line), MAX_PIECE_LENGTH))
    runs = find_long_runs(line, first)
    starts, start = [first], first
    while (start := find_cut(line, start, start + MAX_PIECE_LENGTH, runs)) < len(line):
        starts.append(start)
    return starts


def stable_end(size: int) -> int:
    """Return the offset up to which appending to a text of this size changes no cut."""
    return max(0, size - LONG_RUN)


def stable_count(starts: Sequence[int], size: int) -> int:
    """Return how many cuts stay when text is appended; the first one always does."""
    return max(1, bisect_right(starts, stable_end(size)))


def find_cut(line: str, before: int, limit: int, runs: Sequence[tuple[int, int]]) -> int:
    """Return where to cut: at `limit`, a little earlier to keep characters together, or beside a long hidden run."""
    if limit >= len(line):
        return len(line)
    nearest = bisect_right(runs, (limit, 0)) - 1
    if nearest >= 0 and runs[nearest][0] < limit < runs[nearest][1]:
        first, end = runs[nearest]
        return first if first > before else end
    if line[limit] < "\u0300" and line[limit - 1] != "\u200d":
        return limit
    candidates = range(limit, max(before, limit - _LOOKBACK), -1)
    return next((position for position in candidates if _can_cut(line, before, position)), limit)


def _can_cut(line: str, before: int, offset: int) -> bool:
    """Return whether the characters beside an offset are drawn independently; the piece begins at `before`."""
    if _JOINS_PREVIOUS.match(line, offset) or line[offset - 1] == "\u200d":
        return False
    if not _FLAG.match(line, offset):
        return True
    run = next((match for match in _FLAGS.finditer(line, before, offset) if match.end() == offset), None)
    return run is None or (offset - run.start()) % 2 == 0


TAB = 4
"""The number of characters between tab stops."""

ALMOST = 0.001
"""The number of pixels by which a row may be exceeded."""

_SAMPLES = 64
_MAX_KEPT = 20_000


class Advances(dict[str, float]):
    """The widths of characters of one font in pixels; for hidden ones, those of their labels."""

    def __init__(self, font: QFont, *, is_even: bool) -> None:
        super().__init__({"\t": TAB / 2 * QFontMetricsF(font).horizontalAdvance("0")})
        self._metrics = QFontMetricsF(font)
        self.is_even = is_even
        self.plain = self._metrics.horizontalAdvance("0")
        longest_label = _join_labels(["⟨U+00000⟩"] * _KINDS, 9_999_999, has_more=True)
        self.label = self._metrics.horizontalAdvance(longest_label)

    @cached_property
    def _wide(self) -> float:
        # Late: most code has no such character, and measuring one loads a font of 1.4 MB.
        return self._metrics.horizontalAdvance("中")

    def __missing__(self, character: str) -> float:
        if _MAY_HIDE.match(character):
            width = self._metrics.horizontalAdvance("⟨U+00000⟩")
        elif "\u3041" <= character <= "\u9fff" or "\uac00" <= character <= "\ud7a3":
            width = self._wide
        else:
            width = self._metrics.horizontalAdvance(character)
        if len(self) < _MAX_KEPT:
            self[character] = width
        return width

    def width_after(self, used: float, character: str) -> float:
        """Return the used width of a row after one more character."""
        if character != "\t":
            return used + self[character]
        stop = TAB * self.plain
        return (used // stop + 1) * stop

    def is_plain(self, text: str) -> bool:
        """Return whether all characters are equally wide and displayed as themselves."""
        return self.is_even and text.isascii() and text.isprintable()

    def columns_per_row(self, width: float) -> int:
        """Return how many plain characters fit into a row."""
        return max(1, min(MAX_PIECE_LENGTH, int((width + ALMOST) / self.plain)))

    def columns(self, lines: Sequence[str]) -> list[int]:
        """Return the columns of each line without measuring: 0 if unknown, negative if valid on a single row only."""
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
        """Measure how many columns a text needs at most, wherever its tabs are."""
        width = sum(map(self.__getitem__, text.replace("\t", " " * TAB)))
        return max(1, ceil((width - ALMOST) / self.plain))

    def estimate_width(self, text: str) -> float:
        """Estimate the width of a text from a sample of its characters."""
        if self.is_plain(text):
            return len(text) * self.plain
        # With an odd step, alternating characters are sampled in their proportion.
        step = len(text) // _SAMPLES | 1
        return sum(map(self.__getitem__, text[::step])) * step


@lru_cache(maxsize=4)
def advances_of(style: RenderStyle) -> Advances:
    """Return the widths for the code font."""
    return Advances(style.mono, is_even=style.mono_is_even)


# Characters measured at once.
_MEASURED_AT_ONCE = 2000


class LineWrapper:
    """Wraps a line into rows. `starts` are the known starts of rows; every row has at least one character."""

    def __init__(self, line: str, width: float, advances: Advances) -> None:
        self._line = line
        self._width = width + ALMOST
        self._advances = advances
        self._columns_per_row = advances.columns_per_row(width)
        self._is_plain = advances.is_plain(line)
        self.starts = [0]
        self._offset = 0
        self._runs = [] if self._is_plain else find_long_runs(line)
        self._run = 0
        self._first = 0
        self._cumulative_widths = [0.0]
        self._wrap_plain()

    def append(self, line: str, more: str) -> None:
        """Extend the line; earlier rows stay."""
        self._is_plain = self._is_plain and self._advances.is_plain(more)
        del self.starts[stable_count(self.starts, len(self._line)) :]
        self._offset = self.starts[-1]
        if not self._is_plain:
            self._find_runs(line)
        self._line = line
        self._wrap_plain()

    def _wrap_plain(self) -> None:
        if self._is_plain:
            self.starts += range(self.starts[-1] + self._columns_per_row, len(self._line), self._columns_per_row)
            self._offset = len(self._line)

    def _find_runs(self, line: str) -> None:
        """Find hidden runs from where the old end may have split one."""
        runs, size = self._runs, len(self._line)
        first = stable_end(size)
        if runs and runs[-1][1] >= first:
            first = runs.pop()[0] if runs[-1][1] == size else runs[-1][1]
        runs += find_long_runs(line, first)
        self._run = min(self._run, len(runs))
        while self._run and runs[self._run - 1][1] > self._offset:
            self._run -= 1

    @property
    def is_complete(self) -> bool:
        return self._offset >= len(self._line)

    @property
    def count(self) -> int:
        """Return the number of rows, an estimate until all are known."""
        known = len(self.starts)
        return known if self.is_complete else max(known, known * len(self._line) // max(1, self._offset))

    def count_more(self, until: float) -> None:
        """Wrap further rows until the time is over."""
        while not self.is_complete:
            self.wrap_until(self._offset + _MEASURED_AT_ONCE)
            if perf_counter() > until:
                return

    def wrap_until(self, character: int) -> None:
        """Wrap the rows up to the end of the one with this character."""
        while self._offset <= character and not self.is_complete:
            self._wrap_next()

    def wrap_rows(self, count: int) -> None:
        """Wrap this many rows, if there are so many."""
        while len(self.starts) <= count and not self.is_complete:
            self._wrap_next()

    def _wrap_next(self) -> None:
        start = self._offset
        end = find_cut(self._line, start, self._row_end(start), self._runs)
        self._offset = end
        if end < len(self._line):
            self.starts.append(end)

    def _row_end(self, start: int) -> int:
        self._measure(start)
        used = self._cumulative_widths[start - self._first]
        end = self._first + bisect_right(self._cumulative_widths, used + self._width) - 1
        while self._run < len(self._runs) and self._runs[self._run][1] <= start:
            self._run += 1
        has_run = self._run < len(self._runs) and self._runs[self._run][0] <= end
        if has_run or self._line.find("\t", start, end + 1) >= 0:
            end = self._row_end_in_steps(start)
        return max(start + 1, min(end, start + MAX_PIECE_LENGTH))

    def _measure(self, start: int) -> None:
        """Compute the cumulative widths from here on, for this and some more rows."""
        end = self._first + len(self._cumulative_widths) - 1
        if start < self._first or (end < len(self._line) and end - start < MAX_PIECE_LENGTH):
            part = self._line[start : start + MAX_PIECE_LENGTH + _MEASURED_AT_ONCE]
            self._first = start
            self._cumulative_widths = list(accumulate(map(self._advances.__getitem__, part), initial=0.0))

    def _row_end_in_steps(self, offset: int) -> int:
        """Find the end of a row step by step: the widths of tabs and labels depend on their positions."""
        used, run, end = 0.0, self._run, min(len(self._line), offset + MAX_PIECE_LENGTH)
        while offset < end:
            label = self._runs[run][0] if run < len(self._runs) else end
            tab = self._line.find("\t", offset, end)
            if (special := min(label, end, end if tab < 0 else tab)) > offset:
                begin = self._cumulative_widths[offset - self._first]
                full = self._first + bisect_right(self._cumulative_widths, begin + self._width - used) - 1
                if full < special:
                    return full
                used, offset = used + self._cumulative_widths[special - self._first] - begin, special
                continue
            if label <= offset:
                used, after, run = used + self._advances.label, self._runs[run][1], run + 1
            else:
                used, after = self._advances.width_after(used, self._line[offset]), offset + 1
            if used > self._width:
                return offset
            offset = after
        return offset
