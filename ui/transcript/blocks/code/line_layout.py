"""Lay out one line of code in pieces, wrapped or not, each when it is visible."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from PySide6.QtCore import QPointF
from PySide6.QtGui import QPainter, QTextCharFormat, QTextLayout, QTextLine, QTextOption

from ui.style.text_display import make_format_range
from ui.transcript.blocks.block import TextRange
from ui.transcript.blocks.code.highlighter_protocol import StyledWord
from ui.transcript.blocks.code.line_breaking import (
    TAB,
    LineWrapper,
    SpelledOutLine,
    advances_of,
    find_piece_starts,
    spell_out_line,
    stable_count,
)
from ui.transcript.blocks.text_layout import cursor_x, has_right_to_left
from ui.transcript.markdown.text_units import Utf16Offsets
from ui.transcript.style import RenderStyle, WordFormats

FormatSpan = tuple[int, int, QTextCharFormat]
"""Start and length in UTF-16 units, and the format."""

_UNBOUNDED = 1 << 20


@dataclass(frozen=True, slots=True)
class LinePiece:
    """The layout of a part of a line. Offsets are UTF-16 units from the start of the piece, the rest is pixels."""

    layout: QTextLayout
    line: QTextLine
    shown: SpelledOutLine | None
    width: float

    def x_of(self, offset: int) -> float:
        """Return the x of an offset."""
        return cursor_x(self.line, self.shown.to_shown(offset) if self.shown else offset)

    def offset_at(self, x: float) -> int:
        """Return the offset nearest to an x."""
        position = self.line.xToCursor(x)
        return self.shown.from_shown(position) if self.shown else position

    def draw(self, painter: QPainter, origin: QPointF, part: TextRange | None, marked: QTextCharFormat) -> None:
        """Paint the piece with a part of it marked."""
        if part and self.shown:
            part = self.shown.to_shown(part[0]), self.shown.to_shown(part[1])
        self.layout.draw(painter, origin, [make_format_range(part[0], part[1] - part[0], marked)] if part else [])


def layout_piece(
    text: str, shown: SpelledOutLine | None, formats: Sequence[FormatSpan], style: RenderStyle
) -> LinePiece:
    """Lay out a piece of bounded length."""
    layout = QTextLayout(shown.text if shown else text, style.mono)
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.NoWrap)
    option.setTabStopDistance(style.mono_advance * TAB)
    layout.setTextOption(option)
    if shown:
        formats = _display_formats(shown, formats, style)
    if formats:
        layout.setFormats([make_format_range(*span) for span in formats])
    layout.setCacheEnabled(True)
    layout.beginLayout()
    line = layout.createLine()
    if line.isValid():
        line.setLineWidth(_UNBOUNDED)
        line.setPosition(QPointF(0, (style.mono_line - line.height()) / 2))
    layout.endLayout()
    return LinePiece(layout, line, shown, line.naturalTextWidth() if line.isValid() else 0)


def _display_formats(shown: SpelledOutLine, words: Sequence[FormatSpan], style: RenderStyle) -> list[FormatSpan]:
    label_format = QTextCharFormat()
    label_format.setForeground(style.color("warning"))
    label_format.setBackground(style.color("warning_background"))
    moved: list[FormatSpan] = []
    for start, length, text_format in words:
        first = shown.to_shown(start)
        moved.append((first, shown.to_shown(start + length) - first, text_format))
    return [*moved, *((label.shown_start, label.shown_length, label_format) for label in shown.labels)]


# Pieces of a line whose layouts are kept.
_KEPT_PIECES = 200


@dataclass(frozen=True, slots=True)
class LineLayoutOptions:
    """How lines are laid out. `width` matters only if they wrap."""

    style: RenderStyle
    word_formats: WordFormats
    wraps: bool
    width: int


@dataclass(frozen=True, slots=True)
class VisibleArea:
    """The visible part of a line: x in pixels, and rows including the last one."""

    left: float
    right: float
    first_row: int
    last_row: int


class CodeLine:
    """The base class of wrapped and unwrapped lines. Offsets are UTF-16 units, but `starts` count characters."""

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
        """Extend the line; what precedes the new text stays."""
        kept = stable_count(self.starts, len(self.line))
        self.line = line
        self._recut(more, kept)
        self._units.append(line, more, kept)
        for number in [piece_number for piece_number in self._pieces if piece_number >= kept - 1]:
            del self._pieces[number]

    def _recut(self, more: str, kept: int) -> None:
        """Cut the line again after `kept` starts, which stay."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        return self._units.size

    def pieces_in(self, area: VisibleArea) -> Iterator[int]:
        """Yield the numbers of the pieces that overlap an area, from the left or from the top."""
        raise NotImplementedError

    def visible_range(self, area: VisibleArea) -> TextRange:
        """Return the range from the first to the last offset of the pieces in an area."""
        numbers = list(self.pieces_in(area))
        return (self.span(numbers[0])[0], self.span(numbers[-1])[1]) if numbers else (0, 0)

    def position_of(self, number: int) -> tuple[int, float]:
        """Return the row of a piece and its left edge."""
        raise NotImplementedError

    def offset_at(self, x: float, row: int) -> int:
        """Return the offset nearest to an x in a row."""
        raise NotImplementedError

    def boxes(self, start: int, end: int) -> Iterator[tuple[int, float, float]]:
        """Yield row, left and right of what a range covers. Only the pieces at its ends are laid out."""
        raise NotImplementedError

    def piece(self, number: int) -> LinePiece:
        """Return the layout of a piece."""
        piece = self._pieces.get(number)
        if piece is None:
            if len(self._pieces) >= _KEPT_PIECES:
                del self._pieces[next(iter(self._pieces))]
            piece = self._pieces[number] = self._layout_piece(number)
        return piece

    def set_words(self, words: Sequence[StyledWord]) -> None:
        """Set the highlighted words."""
        self._words = words
        self._pieces.clear()

    def _layout_piece(self, number: int) -> LinePiece:
        first, end = self.characters(number)
        shown = spell_out_line(self.line, first, end)
        return layout_piece(self.line[first:end], shown, self._format_spans(self.span(number)), self.options.style)

    def _format_spans(self, span: TextRange) -> list[FormatSpan]:
        spans: list[FormatSpan] = []
        words = self._words
        index = max(0, bisect_right(words, span[0], key=lambda word: word[0]) - 1)
        while index < len(words) and words[index][0] < span[1]:
            start, length, kind = words[index]
            left, right = max(start, span[0]), min(start + length, span[1])
            if left < right:
                spans.append((left - span[0], right - left, self.options.word_formats[kind]))
            index += 1
        return spans

    def characters(self, number: int) -> TextRange:
        """Return the range of a piece in characters."""
        following = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.line)
        return self.starts[number], following

    def span(self, number: int) -> TextRange:
        """Return the range of a piece."""
        offsets = self._units.offsets
        return offsets[number], offsets[number + 1] if number + 1 < len(offsets) else self.size

    def number_at(self, offset: int) -> int:
        """Return the piece that contains an offset."""
        return max(0, bisect_right(self._units.offsets, offset) - 1)

    def caret_stop_at(self, offset: int) -> int:
        """Return the offset, or the end of the label that it is in."""
        number = self.number_at(offset)
        first, shown = self.span(number)[0], self.piece(number).shown
        return first + shown.caret_stop_at(offset - first) if shown else offset

    def point_of(self, offset: int) -> tuple[int, float]:
        """Return row and x of an offset."""
        number = self.number_at(offset)
        x = self.piece(number).x_of(offset - self.span(number)[0])
        row, left = self.position_of(number)
        return row, left + x


class UnwrappedLine(CodeLine):
    """A line on a single row."""

    def __init__(self, line: str, options: LineLayoutOptions, words: Sequence[StyledWord] = ()) -> None:
        self._starts = find_piece_starts(line)
        super().__init__(line, options, words, self._starts)
        self._widths: list[float] = []
        self._edges = [0.0]
        self._estimate_widths()

    def _estimate_widths(self) -> None:
        estimate = advances_of(self.options.style).estimate_width
        parts = (self.characters(number) for number in range(len(self._widths), len(self.starts)))
        self._widths += [estimate(self.line[first:end]) for first, end in parts]

    def _recut(self, more: str, kept: int) -> None:
        del more
        self._starts[kept - 1 :] = find_piece_starts(self.line, self._starts[kept - 1])
        del self._widths[kept - 1 :], self._edges[kept:]
        self._estimate_widths()

    @property
    def edges(self) -> Sequence[float]:
        """Return the left edge of each piece, and the right edge of the last one."""
        known = len(self._edges)
        if known <= len(self._widths):
            self._edges[known - 1 :] = accumulate(self._widths[known - 1 :], initial=self._edges[-1])
        return self._edges

    @property
    def width(self) -> float:
        """Return the width of all pieces, an estimate until all of it was visible."""
        return self.edges[-1]

    def piece(self, number: int) -> LinePiece:
        """Return the layout of a piece, and store its exact width."""
        piece = super().piece(number)
        if self._widths[number] != piece.width:
            self._widths[number] = piece.width
            del self._edges[number + 1 :]
        return piece

    def settle_at(self, x: float) -> float:
        """Lay out the piece at an x; return how far the following pieces moved."""
        number = self._number_at(x)
        before = self.edges[number + 1]
        self.piece(number)
        return self.edges[number + 1] - before

    def _number_at(self, x: float) -> int:
        return max(0, min(bisect_right(self.edges, x) - 1, len(self.starts) - 1))

    def pieces_in(self, area: VisibleArea) -> Iterator[int]:
        """Yield the pieces in an area, laid out one by one."""
        number = self._number_at(area.left)
        while number < len(self.starts) and (number == 0 or self.edges[number] <= area.right):
            self.piece(number)
            yield number
            number += 1

    def visible_range(self, area: VisibleArea) -> TextRange:
        """Return a range with some characters more at both ends, or whole pieces for right-to-left text."""
        start, end = super().visible_range(area)
        first, last = self.characters(self.number_at(start))[0], self.characters(self.number_at(max(start, end - 1)))[1]
        if end == start or has_right_to_left(self.line[first:last]):
            return start, end
        return max(start, self.offset_at(area.left, 0) - 1), min(end, self.offset_at(area.right, 0) + 1)

    def position_of(self, number: int) -> tuple[int, float]:
        return 0, self.edges[number]

    def offset_at(self, x: float, row: int) -> int:
        del row
        number = self._number_at(x)
        return self.span(number)[0] + self.piece(number).offset_at(x - self.edges[number])

    def boxes(self, start: int, end: int) -> Iterator[tuple[int, float, float]]:
        """Yield one rectangle from the start to the end."""
        number = self.number_at(start)
        first, stop = self.span(number)
        if end < stop:
            # Fast path: this is called for thousands of short ranges at once.
            piece, edge = self.piece(number), self.edges[number]
            ends = edge + piece.x_of(start - first), edge + piece.x_of(end - first)
        else:
            ends = self.point_of(start)[1], self.point_of(end)[1]
        yield 0, min(ends), max(ends)


class WrappedLine(CodeLine):
    """A line wrapped into rows. `is_complete` says whether their number is exact."""

    def __init__(self, line: str, options: LineLayoutOptions, words: Sequence[StyledWord] = ()) -> None:
        self._wrapper = LineWrapper(line, options.width, advances_of(options.style))
        super().__init__(line, options, words, self._wrapper.starts)

    def _recut(self, more: str, kept: int) -> None:
        del kept
        self._wrapper.append(self.line, more)

    @property
    def is_complete(self) -> bool:
        return self._wrapper.is_complete

    def count_more(self, until: float) -> None:
        """Count at least some rows, until the time is over."""
        self._wrapper.count_more(until)

    @property
    def rows(self) -> int:
        """Return the number of rows, an estimate until it is complete."""
        return self._wrapper.count

    def number_at(self, offset: int) -> int:
        # There are never more characters than units.
        self._wrapper.wrap_until(offset)
        return super().number_at(offset)

    def pieces_in(self, area: VisibleArea) -> Iterator[int]:
        self._wrapper.wrap_rows(area.last_row + 1)
        yield from range(max(0, area.first_row), min(area.last_row, len(self.starts) - 1) + 1)

    def position_of(self, number: int) -> tuple[int, float]:
        return number, 0.0

    def offset_at(self, x: float, row: int) -> int:
        """Return the nearest offset in this row, or in the last one."""
        self._wrapper.wrap_rows(row + 1)
        number = max(0, min(row, len(self.starts) - 1))
        return self.span(number)[0] + self.piece(number).offset_at(x)

    def boxes(self, start: int, end: int) -> Iterator[tuple[int, float, float]]:
        """Yield one rectangle for each row; rows in between count as full until they were laid out."""
        first, last = self.number_at(start), self.number_at(max(start, end - 1))
        for number in range(first, last + 1):
            begin, stop = self.span(number)
            if first < number < last and number not in self._pieces:
                yield number, 0.0, float(self.options.width)
                continue
            piece = self.piece(number)
            left, right = sorted(piece.x_of(position - begin) for position in (max(begin, start), min(stop, end)))
            yield number, left, right
