"""Where the rows of a wrapped line begin: by arithmetic, and of a long line no further than was asked for."""

from bisect import bisect_right
from itertools import accumulate
from time import perf_counter

from ui.transcript.blocks.code.lines.advances import Advances
from ui.transcript.blocks.code.lines.cuts import LONGEST, place_to_cut
from ui.transcript.blocks.code.lines.hidden import long_runs

_AT_ONCE = 2000
"""Characters that are measured together."""

_ALMOST = 0.001
"""Pixels that are no reason for another row."""


class RowCuts:
    """`starts` are the characters at which rows begin, as far as they are known; a row has one character at least."""

    def __init__(self, line: str, width: float, advances: Advances) -> None:
        self._line = line
        self._width = width + _ALMOST
        self._advances = advances
        self.starts = [0]
        self._at = 0
        self._runs = long_runs(line)
        self._run = 0
        self._first = 0
        self._reaches = [0.0]
        if advances.is_even and line.isascii() and line.isprintable():
            in_row = max(1, min(LONGEST, int(self._width / advances.plain)))
            self.starts, self._at = list(range(0, max(1, len(line)), in_row)), len(line)

    @property
    def is_complete(self) -> bool:
        """Whether all are known."""
        return self._at >= len(self._line)

    @property
    def count(self) -> int:
        """How many there are; a guess, until all are known."""
        known = len(self.starts)
        return known if self.is_complete else max(known, known * len(self._line) // max(1, self._at))

    def go_on(self, until: float) -> None:
        """Look for more until the clock says so."""
        while not self.is_complete:
            self.know(self._at + _AT_ONCE)
            if perf_counter() > until:
                return

    def know(self, character: int) -> None:
        """The rows up to the one that holds a character, and where that ends."""
        while self._at <= character and not self.is_complete:
            self._one_more()

    def know_rows(self, count: int) -> None:
        """So many rows, if there are so many, and where the last of them ends."""
        while len(self.starts) <= count and not self.is_complete:
            self._one_more()

    def _one_more(self) -> None:
        before = self._at
        at = place_to_cut(self._line, before, self._full_at(before), self._runs)
        self._at = at
        if at < len(self._line):
            self.starts.append(at)

    def _full_at(self, at: int) -> int:
        """Where the row that begins here is full."""
        self._measure(at)
        used = self._reaches[at - self._first]
        found = self._first + bisect_right(self._reaches, used + self._width) - 1
        while self._run < len(self._runs) and self._runs[self._run][1] <= at:
            self._run += 1
        has_run = self._run < len(self._runs) and self._runs[self._run][0] <= found
        if has_run or self._line.find("\t", at, found + 1) >= 0:
            found = self._counted(at)
        return max(at + 1, min(found, at + LONGEST))

    def _measure(self, at: int) -> None:
        """Know how far a row's characters reach, and those of some more rows."""
        end = self._first + len(self._reaches) - 1
        if at < self._first or (end < len(self._line) and end - at < LONGEST):
            part = self._line[at : at + LONGEST + _AT_ONCE]
            self._first = at
            self._reaches = list(accumulate(map(self._advances.__getitem__, part), initial=0.0))

    def _counted(self, at: int) -> int:
        """Character by character: what tabs and labels need depends on where they stand."""
        used, run, end = 0.0, self._run, min(len(self._line), at + LONGEST)
        while at < end:
            if run < len(self._runs) and self._runs[run][0] <= at:
                used, after, run = used + self._advances.label, self._runs[run][1], run + 1
            else:
                used, after = self._advances.after(used, self._line[at]), at + 1
            if used > self._width:
                return at
            at = after
        return at
