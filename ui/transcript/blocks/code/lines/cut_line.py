"""One line of code in pieces, each of which is laid out when it is looked at."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ui.transcript.blocks.block import TextRange
from ui.transcript.blocks.code.lines.cuts import stable_count
from ui.transcript.blocks.code.lines.hidden import spell_out_line
from ui.transcript.blocks.code.lines.inks import WordFormats
from ui.transcript.blocks.code.lines.lengths import Utf16Offsets
from ui.transcript.blocks.code.lines.piece import FormatSpan, LinePiece, layout_piece
from ui.transcript.blocks.colouring.coloured import StyledWord
from ui.transcript.look import RenderStyle

_KEPT_PIECES = 200
"""Pieces of a line whose layouts are kept at once."""


@dataclass(frozen=True, slots=True)
class LineLayoutOptions:
    """How lines are set. `width` counts where they wrap."""

    style: RenderStyle
    word_formats: WordFormats
    wraps: bool
    width: int


@dataclass(frozen=True, slots=True)
class VisibleArea:
    """What of a line is seen: x in pixels and rows, the last ones included."""

    left: float
    right: float
    first_row: int
    last_row: int


@dataclass(frozen=True, slots=True)
class PlacedPiece:
    """A piece by its number, with the row it stands on and its left edge."""

    number: int
    row: int
    left: float


class CodeLine:
    """The base of both. Places are UTF-16 units of the line; `starts` are characters."""

    def __init__(
        self, line: str, options: LineLayoutOptions, words: Sequence[StyledWord], starts: Sequence[int]
    ) -> None:
        self.line = line
        self.options = options
        self._words = words
        self.starts = starts
        self._units = Utf16Offsets(line, starts)
        self._pieces: dict[int, LinePiece] = {}

    def append(self, line: str, more: str) -> None:
        """The line has more at its end: what lies before that stays."""
        kept = stable_count(self.starts, len(self.line))
        self.line = line
        self._recut(more, kept)
        self._units.append(line, more, kept)
        for number in [each for each in self._pieces if each >= kept - 1]:
            del self._pieces[number]

    def _recut(self, more: str, kept: int) -> None:
        """Cut the line anew behind so many starts that stay."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """Of the line."""
        return self._units.size

    @property
    def rows(self) -> int:
        """How many."""
        raise NotImplementedError

    @property
    def width(self) -> float:
        """Of the widest row; a guess, as long as not all of it was seen."""
        raise NotImplementedError

    def pieces_in(self, area: VisibleArea) -> Iterator[PlacedPiece]:
        """The pieces that reach into an area, from the left or from above."""
        raise NotImplementedError

    def visible_range(self, area: VisibleArea) -> TextRange:
        """From the first to the last place in an area."""
        raise NotImplementedError

    def position_of(self, number: int) -> tuple[int, float]:
        """The row of a piece, and its left edge."""
        raise NotImplementedError

    def offset_at(self, x: float, row: int) -> int:
        """The place nearest to an x of a row."""
        raise NotImplementedError

    def boxes(self, start: int, end: int) -> Iterator[tuple[int, float, float]]:
        """Row, left and right of what a part covers. Only where it begins and ends something is laid out."""
        raise NotImplementedError

    def piece(self, number: int) -> LinePiece:
        """Laid out, if it was not."""
        found = self._pieces.get(number)
        if found is None:
            if len(self._pieces) >= _KEPT_PIECES:
                del self._pieces[next(iter(self._pieces))]
            found = self._pieces[number] = self._layout_piece(number)
        return found

    def set_words(self, words: Sequence[StyledWord]) -> None:
        """Other colours."""
        self._words = words
        self._pieces.clear()

    def _layout_piece(self, number: int) -> LinePiece:
        first, end = self.characters(number)
        shown = spell_out_line(self.line, first, end)
        return layout_piece(self.line[first:end], shown, self._format_spans(self.span(number)), self.options.style)

    def _format_spans(self, span: TextRange) -> list[FormatSpan]:
        """The colours of a piece."""
        found: list[FormatSpan] = []
        words = self._words
        at = max(0, bisect_right(words, span[0], key=lambda word: word[0]) - 1)
        while at < len(words) and words[at][0] < span[1]:
            start, length, kind = words[at]
            left, right = max(start, span[0]), min(start + length, span[1])
            if left < right:
                found.append((left - span[0], right - left, self.options.word_formats[kind]))
            at += 1
        return found

    def characters(self, number: int) -> TextRange:
        """The characters of a piece."""
        following = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.line)
        return self.starts[number], following

    def span(self, number: int) -> TextRange:
        """Where a piece begins and ends."""
        known = self._units.offsets
        return known[number], known[number + 1] if number + 1 < len(known) else self.size

    def number_at(self, offset: int) -> int:
        """The piece that holds a place."""
        return max(0, bisect_right(self._units.offsets, offset) - 1)

    def caret_stop_at(self, offset: int) -> int:
        """The place itself, or the end of the label that it lies in."""
        number = self.number_at(offset)
        first, shown = self.span(number)[0], self.piece(number).shown
        return first + shown.caret_stop_at(offset - first) if shown else offset

    def point_of(self, offset: int) -> tuple[int, float]:
        """The row and the x of a place."""
        number = self.number_at(offset)
        inside = self.piece(number).x_of(offset - self.span(number)[0])
        row, left = self.position_of(number)
        return row, left + inside
