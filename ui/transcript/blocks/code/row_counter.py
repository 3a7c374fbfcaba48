"""Count the rows of wrapped lines of a code block in small portions."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from time import perf_counter

from ui.transcript.blocks.code.line_breaking import MAX_PIECE_LENGTH, Advances
from ui.transcript.blocks.code.line_layout import WrappedLine

# Seconds of counting in one portion.
_SLICE = 0.004


class RowCounter:
    """The number of rows of each line. `counting` are lines being counted; columns are those of `Advances.columns`."""

    def __init__(self) -> None:
        self.counting: dict[int, WrappedLine] = {}
        self.was_wrong_on_screen = False
        self._lines: Sequence[str] = ()
        self._columns: list[int] = []
        # The columns and characters of all measured lines, for estimates.
        self._measured_columns, self._measured_characters = 2, 1
        self._columns_per_row = 1
        self._advances: Advances | None = None
        self._wrapped: Callable[[int], WrappedLine] | None = None
        self.forget_rows()

    def forget(self) -> None:
        """Drop everything."""
        self._columns.clear()
        self.forget_rows()

    def forget_rows(self) -> None:
        """Drop what depends on the width."""
        self._rows: list[int] = []
        self._tops = [0]
        self._waiting: set[int] = set()
        self._next = 0
        self._new_counts: dict[int, int] = {}
        self.counting.clear()
        self.was_wrong_on_screen = False

    def line_changed(self, index: int) -> None:
        """Count the lines from this one on again. A running count of this line continues."""
        after = range(index, len(self._rows))
        self._waiting.difference_update(after)
        for line_index in after:
            self._new_counts.pop(line_index, None)
        del self._columns[index:], self._rows[index:], self._tops[index + 1 :]

    def count(
        self, lines: Sequence[str], width: int, advances: Advances, wrapped: Callable[[int], WrappedLine]
    ) -> None:
        """Count the rows of all lines. What takes longer than a moment is estimated, and waits for `count_more`."""
        self._lines, self._advances, self._wrapped = lines, advances, wrapped
        self._columns_per_row = in_row = advances.columns_per_row(width)
        self._apply_counts()
        first = len(self._rows)
        if first == len(lines):
            return
        self._measure_columns(lines, advances)
        columns = self._columns[first:] if first else self._columns
        round_up = in_row - 1
        self._rows += [(abs(count) + round_up) // in_row for count in columns]
        waiting = [index for index, count in enumerate(columns, first) if count == 0 or count < -in_row]
        if waiting:
            self._waiting.update(waiting)
            self.count_more()
            self._estimate(waiting)
        self._sum_up(first)
        self._apply_counts()

    def _measure_columns(self, lines: Sequence[str], advances: Advances) -> None:
        """Measure columns as far as that is quick. A long last line may grow and keeps its count."""
        known, end = len(self._columns), len(lines) - (len(lines[-1]) > MAX_PIECE_LENGTH)
        if known < end:
            self._columns += advances.columns(lines[known:end])
        self._columns += [0] * (len(lines) - len(self._columns))

    def _estimate(self, waiting: Sequence[int]) -> None:
        """Estimate rows by the known width of the line, or by other lines."""
        rows, columns, lines, in_row = self._rows, self._columns, self._lines, self._columns_per_row
        for index in waiting:
            if index in self._new_counts:
                rows[index] = self._new_counts.pop(index)
            elif line := self.counting.get(index):
                rows[index] = line.rows
            elif not columns[index]:
                divisor = self._measured_characters * in_row
                rows[index] = max(1, -(-len(lines[index]) * self._measured_columns // divisor))

    def _sum_up(self, first: int) -> None:
        self._tops[first:] = accumulate(self._rows[first:], initial=self._tops[first])

    def _apply_counts(self) -> None:
        self.was_wrong_on_screen = False
        if not self.is_estimate_wrong:
            return
        counts = self._new_counts | {index: self.counting[index].rows for index in self.underestimated_lines()}
        for index, rows in counts.items():
            self._rows[index] = rows
        self._new_counts.clear()
        self._sum_up(min(counts))

    def top(self, index: int) -> int:
        """Return the number of rows before a line."""
        return self._tops[min(index, len(self._tops) - 1)]

    def line_at(self, row: int) -> int:
        """Return the line of a row."""
        return bisect_right(self._tops, row) - 1

    @property
    def is_complete(self) -> bool:
        return not self._waiting

    @property
    def is_estimate_wrong(self) -> bool:
        return bool(self._new_counts or self.underestimated_lines())

    def underestimated_lines(self) -> list[int]:
        """Return the lines that are known to have more rows than estimated."""
        counting = self.counting.items()
        return [index for index, line in counting if index < len(self._rows) and len(line.starts) > self._rows[index]]

    def on_line_visible(self, index: int, line: WrappedLine) -> None:
        """Start counting the rows of a visible line, if they are not counted."""
        if index in self._waiting:
            self._count_line(index, line, 0)
            self.was_wrong_on_screen = self.was_wrong_on_screen or index in self._new_counts

    def count_more(self) -> bool:
        """Count for a moment from top to bottom; return whether all is counted."""
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
        if not self._columns[index] and len(line) <= self._columns_per_row and self._advances:
            self._record(index, self._advances.max_columns(line))
            if self._columns[index] >= -self._columns_per_row:
                self._on_counted(index, 1)
                return
        if self._wrapped:
            self._count_line(index, self.counting.get(index) or self._wrapped(index), until)

    def _count_line(self, index: int, line: WrappedLine, until: float) -> None:
        line.count_more(until)
        if line.is_complete:
            self._on_counted(index, line.rows)
            if not self._columns[index] and self._advances:
                # An estimate must not look like a single row.
                is_short = len(line.line) <= MAX_PIECE_LENGTH
                guess = max(line.rows * self._columns_per_row, MAX_PIECE_LENGTH + 1)
                self._record(index, self._advances.max_columns(line.line) if is_short else guess)
        else:
            self.counting[index] = line

    def _record(self, index: int, columns: int) -> None:
        """Record a measured number of columns, which improves later estimates."""
        self._columns[index] = -columns
        self._measured_columns += columns
        self._measured_characters += len(self._lines[index])

    def _on_counted(self, index: int, rows: int) -> None:
        self._waiting.discard(index)
        self.counting.pop(index, None)
        if rows != self._rows[index]:
            self._new_counts[index] = rows
