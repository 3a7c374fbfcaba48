"""The text of some rows of a table."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from ui.transcript.blocks.block import TextRange
from ui.transcript.markdown.inline import Line, parse_inline, utf16_length
from ui.transcript.markdown.leaves import Leaf
from ui.transcript.markdown.parser import References
from ui.transcript.markdown.written import slice_line


class TableCellTexts:
    """By row and column, read when they are asked for.

    Places are those of the plain text: tabs between cells, one row on each line.
    """

    def __init__(self, leaf: Leaf, references: References) -> None:
        self.leaf = leaf
        self._references = references
        self._lines: dict[tuple[int, int], Line] = {}
        # Where the cells of a row begin in its text, and where the next row begins.
        self._starts: dict[int, list[int]] = {}

    def set_leaf(self, leaf: Leaf) -> int:
        """The same rows with more text in them, or more rows; answers the first row that differs."""
        same = 0
        for old, new in zip(self.leaf.cells, leaf.cells, strict=False):
            if old != new:
                break
            same += 1
        self.leaf = leaf
        self._lines = {position: line for position, line in self._lines.items() if position[0] < same}
        self._starts = {row: starts for row, starts in self._starts.items() if row < same}
        return same

    def reset(self) -> None:
        """Read again."""
        self._lines, self._starts = {}, {}

    @property
    def has_head(self) -> bool:
        """Whether the first row is the head of the table."""
        return self.leaf.separator is None

    def is_head(self, row: int) -> bool:
        """Whether this row is."""
        return row == 0 and self.has_head

    def lines(self) -> list[list[Line]]:
        """All cells, read."""
        columns = range(len(self.leaf.aligns))
        return [[self.line(row, column) for column in columns] for row in range(len(self.leaf.cells))]

    def line(self, row: int, column: int) -> Line:
        """What was written in a cell, read."""
        found = self._lines.get((row, column))
        if found is None:
            found = self._lines[row, column] = parse_inline(self.cell_sources(row)[column], self._references)
        return found

    def cell_sources(self, row: int) -> Sequence[str]:
        """The cells of a row as they were written."""
        cells, count = self.leaf.cells[row], len(self.leaf.aligns)
        return cells if len(cells) == count else [*cells, *[""] * (count - len(cells))][:count]

    def plain(self) -> str:
        """All of them."""
        return "\n".join("\t".join(line.plain() for line in row) for row in self.lines())

    def _starts_of(self, row: int) -> list[int]:
        found = self._starts.get(row)
        if found is None:
            sizes = (_text_length(self.line(row, column)) + 1 for column in range(len(self.leaf.aligns)))
            found = self._starts[row] = list(accumulate(sizes, initial=0))
        return found

    def _rows(self) -> Iterator[tuple[int, int, list[int]]]:
        """Number and place of each row, and where its cells begin in it."""
        at = 0
        for row in range(len(self.leaf.cells)):
            starts = self._starts_of(row)
            yield row, at, starts
            at += starts[-1]

    def offset_of(self, row: int, column: int = 0) -> int:
        """Where a cell begins."""
        return sum(self._starts_of(each)[-1] for each in range(row)) + self._starts_of(row)[column]

    def cell_at(self, offset: int) -> tuple[int, int, int] | None:
        """Row and column of the cell around a place, and where it begins; None behind the last one."""
        for row, at, starts in self._rows():
            if offset < at + starts[-1]:
                column = bisect_right(starts, offset - at) - 1
                return row, column, at + starts[column]
        return None

    def span_at(self, offset: int) -> TextRange:
        """The cell around a place."""
        found = self.cell_at(offset)
        if found is None:
            end = self.offset_of(len(self.leaf.cells) - 1, len(self.leaf.aligns))
            return end, end
        row, column, start = found
        return start, start + _text_length(self.line(row, column))

    def rows_between(self, start: int, end: int) -> Iterator[tuple[int, list[Line]]]:
        """The rows between two places, with nothing in the cells outside of them."""
        for row, at, starts in self._rows():
            if at < end and at + starts[-1] > start:
                columns = range(len(self.leaf.aligns))
                yield row, [self._line_between(row, column, at + starts[column], (start, end)) for column in columns]

    def _line_between(self, row: int, column: int, offset: int, selection: TextRange) -> Line:
        line = self.line(row, column)
        size = self._size_of(row, column)
        first, last = max(0, selection[0] - offset), min(size, selection[1] - offset)
        if first == 0 and last == size:
            return line
        return slice_line(line, line.from_plain(first), line.from_plain(last)) if first < last else Line("")

    def selected(self, start: int, end: int) -> Iterator[tuple[int, int, TextRange]]:
        """Row and column of the cells of which something is selected, and that part in places of their lines."""
        for row, at, starts in self._rows():
            if at >= end:
                return
            first = max(0, bisect_right(starts, start - at) - 1)
            for column in range(first, min(bisect_right(starts, end - at), len(starts) - 1)):
                part, _ = self.selected_part(row, column, at + starts[column], (start, end))
                if part:
                    yield row, column, part

    def selected_part(self, row: int, column: int, offset: int, selection: TextRange) -> tuple[TextRange | None, int]:
        """What is selected of a cell that begins at an offset, in places of its line; where the next one begins."""
        line = self.line(row, column)
        size = self._size_of(row, column)
        start, end = max(0, selection[0] - offset), min(size, selection[1] - offset)
        part = (line.from_plain(start), line.from_plain(end)) if end > start else None
        return part, offset + size + 1

    def _size_of(self, row: int, column: int) -> int:
        starts = self._starts_of(row)
        return starts[column + 1] - starts[column] - 1


def _text_length(line: Line) -> int:
    return utf16_length(line.plain())
