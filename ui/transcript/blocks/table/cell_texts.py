"""The text of some rows of a table."""

from collections.abc import Iterator, Sequence

from ui.transcript.blocks.block import Span
from ui.transcript.markdown.inline import Line, inline, units
from ui.transcript.markdown.leaves import Leaf
from ui.transcript.markdown.parser import References
from ui.transcript.markdown.written import part_of


class CellTexts:
    """By row and column, read when they are asked for.

    Places are those of the plain text: tabs between cells, one row on each line.
    """

    def __init__(self, leaf: Leaf, references: References) -> None:
        self.leaf = leaf
        self._references = references
        self._lines: dict[tuple[int, int], Line] = {}

    def become(self, leaf: Leaf) -> int:
        """The same rows with more text in them, or more rows; answers the first row that differs."""
        same = 0
        for old, new in zip(self.leaf.cells, leaf.cells, strict=False):
            if old != new:
                break
            same += 1
        self.leaf = leaf
        self._lines = {place: line for place, line in self._lines.items() if place[0] < same}
        return same

    def renew(self) -> None:
        """Read again."""
        self._lines = {}

    @property
    def has_head(self) -> bool:
        """Whether the first row is the head of the table."""
        return self.leaf.joint is None

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
            found = self._lines[row, column] = inline(self.written(row)[column], self._references)
        return found

    def written(self, row: int) -> Sequence[str]:
        """The cells of a row as they were written."""
        cells, count = self.leaf.cells[row], len(self.leaf.aligns)
        return cells if len(cells) == count else [*cells, *[""] * (count - len(cells))][:count]

    def plain(self) -> str:
        """All of them."""
        return "\n".join("\t".join(line.plain() for line in row) for row in self.lines())

    def offset_of(self, row: int, column: int = 0) -> int:
        """Where a cell begins."""
        before = sum(_size(line) + 1 for each in self.lines()[:row] for line in each)
        return before + sum(_size(self.line(row, each)) + 1 for each in range(column))

    def span_at(self, offset: int) -> Span:
        """The cell around a place."""
        at = 0
        for row in self.lines():
            for line in row:
                end = at + _size(line)
                if offset <= end:
                    return at, end
                at = end + 1
        return at, at

    def parts(self, start: int, end: int) -> Iterator[tuple[int, list[Line]]]:
        """The rows between two places, with nothing in the cells outside of them."""
        offset = 0
        for row, lines in enumerate(self.lines()):
            sizes = [_size(line) for line in lines]
            if offset < end and offset + sum(sizes) + len(sizes) > start:
                yield row, list(self._between(lines, sizes, offset, (start, end)))
            offset += sum(sizes) + len(sizes)

    @staticmethod
    def _between(lines: Sequence[Line], sizes: Sequence[int], offset: int, selection: Span) -> Iterator[Line]:
        for line, size in zip(lines, sizes, strict=True):
            first, last = max(0, selection[0] - offset), min(size, selection[1] - offset)
            if first == 0 and last == size:
                yield line
            else:
                yield part_of(line, line.from_plain(first), line.from_plain(last)) if first < last else Line("")
            offset += size + 1

    def part(self, row: int, column: int, offset: int, selection: Span) -> tuple[Span | None, int]:
        """What is selected of a cell that begins at an offset, in places of its line; where the next one begins."""
        line = self.line(row, column)
        size = _size(line)
        start, end = max(0, selection[0] - offset), min(size, selection[1] - offset)
        part = (line.from_plain(start), line.from_plain(end)) if end > start else None
        return part, offset + size + 1


def _size(line: Line) -> int:
    return units(line.plain())
