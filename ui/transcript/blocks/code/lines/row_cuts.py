"""Where the rows of a wrapped line begin: by arithmetic, and of a long line no further than was asked for."""

from bisect import bisect_right
from itertools import accumulate
from time import perf_counter

from ui.transcript.blocks.code.lines.advances import ALMOST, Advances
from ui.transcript.blocks.code.lines.cuts import MAX_PIECE_LENGTH, find_cut, stable_count, stable_end
from ui.transcript.blocks.code.lines.hidden import find_long_runs

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
