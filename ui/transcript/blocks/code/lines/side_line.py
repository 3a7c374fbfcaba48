"""A line that does not wrap: its pieces stand side by side. Edges of those that nobody has seen are guesses."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from ui.transcript.blocks.block import Span
from ui.transcript.blocks.code.lines.advances import advances_of
from ui.transcript.blocks.code.lines.cut_line import Area, CutLine, Placed, Setting
from ui.transcript.blocks.code.lines.cuts import has_turns, piece_starts
from ui.transcript.blocks.code.lines.piece import Piece
from ui.transcript.blocks.colouring.coloured import Word


class SideLine(CutLine):
    """All on one row."""

    def __init__(self, line: str, setting: Setting, words: Sequence[Word] = ()) -> None:
        super().__init__(line, setting, words, piece_starts(line))
        advances = advances_of(setting.look)
        parts = (self.characters(number) for number in range(len(self.starts)))
        self._widths = [advances.about(line[first:end]) for first, end in parts]
        self._edges: list[float] | None = None

    @property
    def edges(self) -> Sequence[float]:
        """The left edge of each piece, and the right one of the last."""
        if self._edges is None:
            self._edges = list(accumulate(self._widths, initial=0.0))
        return self._edges

    @property
    def rows(self) -> int:
        """One."""
        return 1

    @property
    def width(self) -> float:
        """Of all pieces."""
        return self.edges[-1]

    def piece(self, number: int) -> Piece:
        """From now on its width is exact."""
        found = super().piece(number)
        if self._widths[number] != found.width:
            self._widths[number], self._edges = found.width, None
        return found

    def settle_at(self, x: float) -> float:
        """Lay out the piece that an x lies in; answers by how much what stands behind it moved."""
        number = self._number_at(x)
        before = self.edges[number + 1]
        self.piece(number)
        return self.edges[number + 1] - before

    def _number_at(self, x: float) -> int:
        return max(0, min(bisect_right(self.edges, x) - 1, len(self.starts) - 1))

    def between(self, area: Area) -> Iterator[Placed]:
        """Laid out as they come."""
        number = self._number_at(area.left)
        while number < len(self.starts) and (number == 0 or self.edges[number] <= area.right):
            self.piece(number)
            yield Placed(number, 0, self.edges[number])
            number += 1

    def seen(self, area: Area) -> Span:
        """Some characters more at both ends; whole pieces where the text turns."""
        numbers = [piece.number for piece in self.between(area)]
        if not numbers:
            return 0, 0
        start, end = self.span(numbers[0])[0], self.span(numbers[-1])[1]
        if has_turns(self.line[self.characters(numbers[0])[0] : self.characters(numbers[-1])[1]]):
            return start, end
        return max(start, self.offset_at(area.left, 0) - 1), min(end, self.offset_at(area.right, 0) + 1)

    def place_of(self, number: int) -> tuple[int, float]:
        """Behind all pieces before it."""
        return 0, self.edges[number]

    def offset_at(self, x: float, row: int) -> int:
        """The place nearest to an x."""
        del row
        number = self._number_at(x)
        return self.span(number)[0] + self.piece(number).offset_at(x - self.edges[number])

    def boxes(self, start: int, end: int) -> Iterator[tuple[int, float, float]]:
        """One, from the first to the last place."""
        left, right = sorted(self.point_of(place)[1] for place in (end, start))
        yield 0, left, right
