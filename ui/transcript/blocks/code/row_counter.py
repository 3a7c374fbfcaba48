"""Count on how many rows the lines of a code block stand when they wrap, a little at a time."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from time import perf_counter

from ui.transcript.blocks.code.line_breaking import MAX_PIECE_LENGTH, Advances
from ui.transcript.blocks.code.line_layout import WrappedLine

_SLICE = 0.004
"""Seconds in which rows are counted before the loop goes on."""


class RowCounter:
    """`counting` are lines that were begun to be counted. Columns are those of `Advances.columns`."""

    def __init__(self) -> None:
        self.counting: dict[int, WrappedLine] = {}
        self.was_wrong_on_screen = False
        self._lines: Sequence[str] = ()
        self._columns: list[int] = []
        self._wide, self._long = 2, 1
        self._in_row = 1
        self._advances: Advances | None = None
        self._wrapped: Callable[[int], WrappedLine] | None = None
        self.forget_rows()

    def forget(self) -> None:
        """All of it."""
        self._columns.clear()
        self.forget_rows()

    def forget_rows(self) -> None:
        """What depends on the width."""
        self._rows: list[int] = []
        self._tops = [0]
        self._waiting: set[int] = set()
        self._next = 0
        self._found: dict[int, int] = {}
        self.counting.clear()
        self.was_wrong_on_screen = False

    def line_changed(self, index: int) -> None:
        """From this line on they are counted again. Its own counting goes on where it was."""
        after = range(index, len(self._rows))
        self._waiting.difference_update(after)
        for each in after:
            self._found.pop(each, None)
        del self._columns[index:], self._rows[index:], self._tops[index + 1 :]

    def count(
        self, lines: Sequence[str], width: int, advances: Advances, wrapped: Callable[[int], WrappedLine]
    ) -> None:
        """Of all lines. What takes longer than a moment is guessed, and waits for `go_on`."""
        self._lines, self._advances, self._wrapped = lines, advances, wrapped
        self._in_row = in_row = advances.columns_per_row(width)
        self._apply_counts()
        first = len(self._rows)
        if first == len(lines):
            return
        self._measure_columns(lines, advances)
        columns = self._columns[first:] if first else self._columns
        more = in_row - 1
        self._rows += [(abs(each) + more) // in_row for each in columns]
        waiting = [index for index, each in enumerate(columns, first) if each == 0 or each < -in_row]
        if waiting:
            self._waiting.update(waiting)
            self.count_more()
            self._estimate(waiting)
        self._sum_up(first)
        self._apply_counts()

    def _measure_columns(self, lines: Sequence[str], advances: Advances) -> None:
        """As far as that is quick. A long line at the end may grow, and is counted on where it was."""
        known, end = len(self._columns), len(lines) - (len(lines[-1]) > MAX_PIECE_LENGTH)
        if known < end:
            self._columns += advances.columns(lines[known:end])
        self._columns += [0] * (len(lines) - len(self._columns))

    def _estimate(self, waiting: Sequence[int]) -> None:
        """By what is known of their width, or by that of other lines."""
        rows, columns, lines, in_row = self._rows, self._columns, self._lines, self._in_row
        for index in waiting:
            if index in self._found:
                rows[index] = self._found.pop(index)
            elif line := self.counting.get(index):
                rows[index] = line.rows
            elif not columns[index]:
                rows[index] = max(1, -(-len(lines[index]) * self._wide // (self._long * in_row)))

    def _sum_up(self, first: int) -> None:
        self._tops[first:] = accumulate(self._rows[first:], initial=self._tops[first])

    def _apply_counts(self) -> None:
        """Heights become what is known by now."""
        self.was_wrong_on_screen = False
        if not self.is_estimate_wrong:
            return
        found = self._found | {index: self.counting[index].rows for index in self.underestimated_lines()}
        for index, rows in found.items():
            self._rows[index] = rows
        self._found.clear()
        self._sum_up(min(found))

    def top(self, index: int) -> int:
        """The rows before a line; of those that were counted."""
        return self._tops[min(index, len(self._tops) - 1)]

    def line_at(self, row: int) -> int:
        """The line that a row belongs to."""
        return bisect_right(self._tops, row) - 1

    @property
    def is_complete(self) -> bool:
        """Whether all rows are counted."""
        return not self._waiting

    @property
    def is_estimate_wrong(self) -> bool:
        """Whether it is known by now that there are more rows, or less."""
        return bool(self._found or self.underestimated_lines())

    def underestimated_lines(self) -> list[int]:
        """The lines that have more rows by now than there is room for."""
        counting = self.counting.items()
        return [index for index, line in counting if index < len(self._rows) and len(line.starts) > self._rows[index]]

    def on_line_visible(self, index: int, line: WrappedLine) -> None:
        """Somebody looks at a line: if its rows are still to be counted, that is begun."""
        if index in self._waiting:
            self._count_line(index, line, 0)
            self.was_wrong_on_screen = self.was_wrong_on_screen or index in self._found

    def count_more(self) -> bool:
        """Count for a moment, from above to below; answers whether all is known now."""
        until = perf_counter() + _SLICE
        while self._waiting:
            while self._next not in self._waiting:
                self._next += 1
            self._count_waiting(self._next, until)
            if perf_counter() > until:
                break
        return self.is_complete

    def _count_waiting(self, index: int, until: float) -> None:
        line = self._lines[index]
        if not self._columns[index] and len(line) <= self._in_row and self._advances:
            self._record(index, self._advances.max_columns(line))
            if self._columns[index] >= -self._in_row:
                self._on_counted(index, 1)
                return
        if self._wrapped:
            self._count_line(index, self.counting.get(index) or self._wrapped(index), until)

    def _count_line(self, index: int, line: WrappedLine, until: float) -> None:
        line.count_more(until)
        if line.is_complete:
            self._on_counted(index, line.rows)
            if not self._columns[index] and self._advances:
                # A guess may not look as if it stood on one row.
                is_short = len(line.line) <= MAX_PIECE_LENGTH
                guess = max(line.rows * self._in_row, MAX_PIECE_LENGTH + 1)
                self._record(index, self._advances.max_columns(line.line) if is_short else guess)
        else:
            self.counting[index] = line

    def _record(self, index: int, columns: int) -> None:
        """About so many: the next guess, at another width or of another line, is the better for it."""
        self._columns[index] = -columns
        self._wide, self._long = self._wide + columns, self._long + len(self._lines[index])

    def _on_counted(self, index: int, rows: int) -> None:
        self._waiting.discard(index)
        self.counting.pop(index, None)
        if rows != self._rows[index]:
            self._found[index] = rows
