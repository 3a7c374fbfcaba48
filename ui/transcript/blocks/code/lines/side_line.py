"""A line that does not wrap: its pieces stand side by side. Edges of those that nobody has seen are guesses."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from ui.transcript.blocks.block import TextRange
from ui.transcript.blocks.code.lines.advances import advances_of
from ui.transcript.blocks.code.lines.cut_line import CodeLine, LineLayoutOptions, PlacedPiece, VisibleArea
from ui.transcript.blocks.code.lines.cuts import find_piece_starts, has_right_to_left
from ui.transcript.blocks.code.lines.piece import LinePiece
from ui.transcript.blocks.colouring.coloured import StyledWord


class UnwrappedLine(CodeLine):
    """All on one row."""

    def __init__(self, line: str, options: LineLayoutOptions, words: Sequence[StyledWord] = ()) -> None:
        self._starts = find_piece_starts(line)
        super().__init__(line, options, words, self._starts)
        self._widths: list[float] = []
        self._edges = [0.0]
        self._estimate_widths()

    def _estimate_widths(self) -> None:
        """Of the pieces that have none."""
        about = advances_of(self.options.style).estimate_width
        parts = (self.characters(number) for number in range(len(self._widths), len(self.starts)))
        self._widths += [about(self.line[first:end]) for first, end in parts]

    def _recut(self, more: str, kept: int) -> None:
        del more
        self._starts[kept - 1 :] = find_piece_starts(self.line, self._starts[kept - 1])
        del self._widths[kept - 1 :], self._edges[kept:]
        self._estimate_widths()

    @property
    def edges(self) -> Sequence[float]:
        """The left edge of each piece, and the right one of the last."""
        known = len(self._edges)
        if known <= len(self._widths):
            self._edges[known - 1 :] = accumulate(self._widths[known - 1 :], initial=self._edges[-1])
        return self._edges

    @property
    def rows(self) -> int:
        """One."""
        return 1

    @property
    def width(self) -> float:
        """Of all pieces."""
        return self.edges[-1]

    def piece(self, number: int) -> LinePiece:
        """From now on its width is exact."""
        found = super().piece(number)
        if self._widths[number] != found.width:
            self._widths[number] = found.width
            del self._edges[number + 1 :]
        return found

    def settle_at(self, x: float) -> float:
        """Lay out the piece that an x lies in; answers by how much what stands behind it moved."""
        number = self._number_at(x)
        before = self.edges[number + 1]
        self.piece(number)
        return self.edges[number + 1] - before

    def _number_at(self, x: float) -> int:
        return max(0, min(bisect_right(self.edges, x) - 1, len(self.starts) - 1))

    def pieces_in(self, area: VisibleArea) -> Iterator[PlacedPiece]:
        """Laid out as they come."""
        number = self._number_at(area.left)
        while number < len(self.starts) and (number == 0 or self.edges[number] <= area.right):
            self.piece(number)
            yield PlacedPiece(number, 0, self.edges[number])
            number += 1

    def visible_range(self, area: VisibleArea) -> TextRange:
        """Some characters more at both ends; whole pieces where the text turns."""
        numbers = [piece.number for piece in self.pieces_in(area)]
        if not numbers:
            return 0, 0
        start, end = self.span(numbers[0])[0], self.span(numbers[-1])[1]
        if has_right_to_left(self.line[self.characters(numbers[0])[0] : self.characters(numbers[-1])[1]]):
            return start, end
        return max(start, self.offset_at(area.left, 0) - 1), min(end, self.offset_at(area.right, 0) + 1)

    def position_of(self, number: int) -> tuple[int, float]:
        """Behind all pieces before it."""
        return 0, self.edges[number]

    def offset_at(self, x: float, row: int) -> int:
        """The place nearest to an x."""
        del row
        number = self._number_at(x)
        return self.span(number)[0] + self.piece(number).offset_at(x - self.edges[number])

    def boxes(self, start: int, end: int) -> Iterator[tuple[int, float, float]]:
        """One, from the first to the last place."""
        number = self.number_at(start)
        first, stop = self.span(number)
        if end < stop:
            # Thousands of short ones are asked for at once.
            piece, edge = self.piece(number), self.edges[number]
            places = edge + piece.x_of(start - first), edge + piece.x_of(end - first)
        else:
            places = self.point_of(start)[1], self.point_of(end)[1]
        yield 0, min(places), max(places)
