"""A line that wraps: each of its rows is a piece. Of a long line no more rows are counted than were asked for."""

from collections.abc import Iterator, Sequence

from ui.transcript.blocks.block import TextRange
from ui.transcript.blocks.code.lines.advances import advances_of
from ui.transcript.blocks.code.lines.cut_line import CodeLine, LineLayoutOptions, PlacedPiece, VisibleArea
from ui.transcript.blocks.code.lines.row_cuts import LineWrapper
from ui.transcript.blocks.colouring.coloured import StyledWord


class WrappedLine(CodeLine):
    """`is_complete` says whether the number of its rows is exact."""

    def __init__(self, line: str, options: LineLayoutOptions, words: Sequence[StyledWord] = ()) -> None:
        self._cuts = LineWrapper(line, options.width, advances_of(options.style))
        super().__init__(line, options, words, self._cuts.starts)

    def _recut(self, more: str, kept: int) -> None:
        del kept
        self._cuts.append(self.line, more)

    @property
    def is_complete(self) -> bool:
        """Whether all rows are counted."""
        return self._cuts.is_complete

    def count_more(self, until: float) -> None:
        """Count until the clock says so, some rows at least."""
        self._cuts.count_more(until)

    @property
    def rows(self) -> int:
        """A guess, as long as it is not complete."""
        return self._cuts.count

    @property
    def width(self) -> float:
        """That of the column."""
        return self.options.width

    def number_at(self, offset: int) -> int:
        """The row that holds a place."""
        # There are never more characters than units.
        self._cuts.wrap_until(offset)
        return super().number_at(offset)

    def pieces_in(self, area: VisibleArea) -> Iterator[PlacedPiece]:
        """Row by row."""
        self._cuts.wrap_rows(area.last_row + 1)
        for number in range(max(0, area.first_row), min(area.last_row, len(self.starts) - 1) + 1):
            yield PlacedPiece(number, number, 0.0)

    def visible_range(self, area: VisibleArea) -> TextRange:
        """Whole rows."""
        numbers = [piece.number for piece in self.pieces_in(area)]
        return (self.span(numbers[0])[0], self.span(numbers[-1])[1]) if numbers else (0, 0)

    def position_of(self, number: int) -> tuple[int, float]:
        """At the left."""
        return number, 0.0

    def offset_at(self, x: float, row: int) -> int:
        """In this row, or the last one."""
        self._cuts.wrap_rows(row + 1)
        number = max(0, min(row, len(self.starts) - 1))
        return self.span(number)[0] + self.piece(number).offset_at(x)

    def boxes(self, start: int, end: int) -> Iterator[tuple[int, float, float]]:
        """One for each row. Those between the first and the last are as wide as the column, until they are seen."""
        first, last = self.number_at(start), self.number_at(max(start, end - 1))
        for number in range(first, last + 1):
            begin, stop = self.span(number)
            if first < number < last and number not in self._pieces:
                yield number, 0.0, float(self.options.width)
                continue
            piece = self.piece(number)
            left, right = sorted(piece.x_of(position - begin) for position in (max(begin, start), min(stop, end)))
            yield number, left, right
