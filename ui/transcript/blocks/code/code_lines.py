"""The lines of a code block: heights by arithmetic, layouts only for visible lines, and their text offsets."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace

from PySide6.QtCore import QPointF, QRect, QRectF
from PySide6.QtGui import QPainter, QTextCharFormat

from ui.style.text import one_line, truncate
from ui.transcript.blocks.block import TextRange
from ui.transcript.blocks.code.highlighter_protocol import StyledWord
from ui.transcript.blocks.code.line_breaking import advances_of
from ui.transcript.blocks.code.line_layout import CodeLine, LineLayoutOptions, UnwrappedLine, VisibleArea, WrappedLine
from ui.transcript.blocks.code.row_counter import RowCounter
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.style import RenderStyle, WordFormats

# Lines whose layouts are kept.
_KEPT = 400

_DIFF_COLOURS = {"+": "added_background", "-": "removed_background"}


class CodeLines:
    """The text of a code block as lines, laid out when visible. Appending costs only what the new text costs.

    Offsets are UTF-16 units, coordinates pixels from where the lines are painted. Unwrapped lines are equally high.
    """

    def __init__(self, text: str, *, wraps: bool) -> None:
        self.words: list[list[StyledWord]] = []
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + utf16_length(line) + 1)
        self._longest = max(range(len(self._lines)), key=lambda index: len(self._lines[index]))
        self.wraps = wraps
        self.is_diff = False
        """Whether lines that begin with "+" or "-" are green or red."""
        self.rows = RowCounter()
        self._laid_out: dict[int, CodeLine] = {}
        self._line_height = 1
        self._width = 0
        self._scrolled = 0
        self._content_width = 0
        self._widest: int = 0
        self._options: LineLayoutOptions | None = None

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    @property
    def size(self) -> int:
        return self._starts[-1] - 1

    def lines_between(self, first: int, last: int) -> str:
        """Return complete lines with their line ends."""
        return "".join(f"{line}\n" for line in self._lines[first:last])

    def beginning(self, length: int) -> str:
        """Return up to `length` characters of the first line with a word; hidden characters are spelled out."""
        lines = (one_line(line[: 2 * length], 2 * length) for line in self._lines)
        return truncate(next((line for line in lines if any(map(str.isalnum, line))), ""), length)

    def words_of(self, index: int) -> list[StyledWord]:
        """Return the highlighted words of a line, as far as known."""
        return self.words[index] if index < len(self.words) else []

    def highlight(self, first: int, words: list[list[StyledWord]]) -> int | None:
        """Set the words of the lines from `first` on; return the first line whose colours changed."""
        self.words += [[] for _ in range(len(self.words), first)]
        old = self.words[first : first + len(words)]
        self.words[first : first + len(words)] = words
        old += [[] for _ in range(len(old), len(words))]
        changed = [index for index, (new, before) in enumerate(zip(words, old, strict=True), first) if new != before]
        for index in changed:
            if line := self._cached_line(index):
                line.set_words(self.words_of(index))
        return changed[0] if changed else None

    def append(self, text: str) -> int:
        """Append text; return the first line that changed."""
        first = len(self._lines) - 1
        head, *more = text.split("\n")
        self._lines[-1] += head
        self._starts[-1] += utf16_length(head)
        for line in more:
            self._lines.append(line)
            self._starts.append(self._starts[-1] + utf16_length(line) + 1)
        added = range(first, len(self._lines))
        self._longest = max(self._longest, *added, key=lambda index: len(self._lines[index]))
        if grown := self._cached_line(first):
            grown.append(self._lines[first], head)
        self.rows.line_changed(first)
        return first

    def line_span(self, offset: int) -> TextRange:
        """Return the range of the line at an offset."""
        index = self._line_of(offset)
        return self._starts[index], self._starts[index + 1] - 1

    def _line_of(self, offset: int) -> int:
        return max(0, min(bisect_right(self._starts, offset) - 1, len(self._lines) - 1))

    def _range_in_line(self, index: int, selected_range: TextRange | None) -> TextRange | None:
        """Return the part of a range that is in a line, in offsets of the line."""
        if not selected_range:
            return None
        start = max(selected_range[0], self._starts[index])
        end = min(selected_range[1], self._starts[index + 1] - 1)
        return (start - self._starts[index], end - self._starts[index]) if end > start else None

    @property
    def height(self) -> int:
        return self.top(len(self))

    def top(self, index: int) -> int:
        """Return the y of a line."""
        return self._line_height * (self.rows.top(index) if self.wraps else index)

    def _cached_line(self, index: int) -> CodeLine | None:
        return self._laid_out.get(index) or self.rows.counting.get(index)

    def layout(self, width: int, style: RenderStyle) -> None:
        """Set the width; count rows only if lines wrap."""
        self._line_height, self._width = style.mono_line, width
        options = self._set_options(width, style)
        if self.wraps:
            self.rows.count(self._lines, width, advances_of(style), lambda index: self._line_to_count(index, options))
        else:
            self._content_width = 0
            self._widen(self._longest, style)
        self._scrolled = min(self._scrolled, self._max_scroll())

    def _set_options(self, width: int, style: RenderStyle) -> LineLayoutOptions:
        options = self._options
        if options is None or (options.style, options.wraps) != (style, self.wraps):
            options = LineLayoutOptions(style, WordFormats(style), self.wraps, width)
            self.forget()
        elif options.width != width:
            options = replace(options, width=width)
            if self.wraps:
                self._laid_out.clear()
                self.rows.forget_rows()
        self._options = options
        return options

    def _line_to_count(self, index: int, options: LineLayoutOptions) -> WrappedLine:
        """Return a line to count its rows; the last one is cached, because it may grow."""
        line = self._cached_line(index)
        if isinstance(line, WrappedLine):
            return line
        line = WrappedLine(self._lines[index], options, self.words_of(index))
        if index == len(self) - 1:
            self._cache_line(index, line)
        return line

    def _widen(self, index: int, style: RenderStyle) -> None:
        line = self._line(index)
        if isinstance(line, UnwrappedLine):
            width = int(line.width) + style.px(8)
            # An estimate may have been too wide, as that of hidden characters, which share a label.
            if width > self._content_width or index == self._widest:
                self._content_width, self._widest = width, index

    def forget(self) -> None:
        """Drop all layouts."""
        self._laid_out.clear()
        self.rows.forget()

    def paint(self, painter: QPainter, style: RenderStyle, clip: QRect, selection: TextRange | None) -> None:
        """Paint the lines inside the clip, which starts at the painter's origin."""
        marked = QTextCharFormat()
        marked.setBackground(style.color("selection"))
        marked.setForeground(style.color("text"))
        painter.setPen(style.color("text"))
        self._scrolled = min(self._scrolled, self._max_scroll())
        for index, line in self._visible_lines(clip):
            if isinstance(line, UnwrappedLine) and self._scrolled:
                # Exact widths replace estimates left of the viewport; keep the visible part where it is.
                self._scrolled = max(0, self._scrolled + round(line.settle_at(clip.left() + self._scrolled)))
            if self.is_diff and (colour := _DIFF_COLOURS.get(self._lines[index][:1])):
                area = QRect(clip.left(), self.top(index), clip.width(), self.top(index + 1) - self.top(index))
                painter.fillRect(area, style.color(colour))
            part = self._range_in_line(index, selection) or (0, 0)
            for number in line.pieces_in(self._visible_area(index, clip)):
                first, end = line.span(number)
                selected = max(part[0], first) - first, min(part[1], end) - first
                row, left = line.position_of(number)
                origin = QPointF(left - self._scrolled, self.top(index) + row * self._line_height)
                line.piece(number).draw(painter, origin, selected if selected[0] < selected[1] else None, marked)
            if not self.wraps:
                self._widen(index, style)

    def _visible_lines(self, clip: QRect) -> Iterator[tuple[int, CodeLine]]:
        for index in range(self._index_at(clip.top()), self._index_at(clip.bottom()) + 1):
            yield index, self._line(index)

    def _visible_area(self, index: int, clip: QRect) -> VisibleArea:
        top, line_height = self.top(index), self._line_height
        last = min((clip.bottom() - top) // line_height, (self.top(index + 1) - top) // line_height - 1)
        return VisibleArea(
            clip.left() + self._scrolled, clip.right() + self._scrolled, (clip.top() - top) // line_height, last
        )

    def paint_scroll_bar(self, painter: QPainter, style: RenderStyle, track: QRect) -> None:
        """Paint the scroll bar of long lines."""
        if not self._max_scroll():
            return
        width = min(track.width(), max(style.px(16), int(track.width() * self._width / self._content_width)))
        left = track.left() + int((track.width() - width) * self._scrolled / self._max_scroll())
        style.paint_box(painter, QRect(left, track.top(), width, track.height()), 2, "border")

    def scroll_horizontally(self, pixels: int) -> bool:
        """Scroll sideways; return whether anything moved."""
        scrolled = max(0, min(self._scrolled + pixels, self._max_scroll()))
        moved, self._scrolled = scrolled != self._scrolled, scrolled
        return moved

    def _max_scroll(self) -> int:
        return 0 if self.wraps else max(0, self._content_width - self._width)

    def _index_at(self, y: int) -> int:
        row = y // self._line_height
        return max(0, min(self.rows.line_at(row) if self.wraps else row, len(self) - 1))

    def _line(self, index: int) -> CodeLine:
        line = self._cached_line(index)
        if line is None:
            if self._options is None:
                raise RuntimeError("code was not laid out")
            line_class = WrappedLine if self.wraps else UnwrappedLine
            line = line_class(self._lines[index], self._options, self.words_of(index))
            self._cache_line(index, line)
        if isinstance(line, WrappedLine):
            self.rows.on_line_visible(index, line)
        return line

    def _cache_line(self, index: int, line: CodeLine) -> None:
        if len(self._laid_out) >= _KEPT:
            del self._laid_out[next(iter(self._laid_out))]
        self._laid_out[index] = line

    def with_text(self, text: str) -> "CodeLines":
        """Return lines with another text, and the same wrapping and scrolling."""
        lines = CodeLines(text, wraps=self.wraps)
        lines._scrolled, lines.is_diff = self._scrolled, self.is_diff
        return lines

    def offset_at(self, x: int, y: int) -> int:
        """Return the nearest offset. Requires a layout."""
        if y < 0:
            return 0
        if y >= self.height:
            return self.size
        index = self._index_at(y)
        row = (y - self.top(index)) // self._line_height
        return self._starts[index] + self._line(index).offset_at(x + self._scrolled, row)

    def boxes(self, span: TextRange) -> list[QRectF]:
        """Return the rectangles of a part of the text, one for each row."""
        first, last = self._line_of(span[0]), self._line_of(span[1])
        rects: list[QRectF] = []
        for index in range(first, last + 1):
            if part := self._range_in_line(index, span):
                rects += [self._box(index, *box) for box in self._line(index).boxes(*part)]
        return rects

    def visible_ranges(self, clip: QRect) -> Iterator[TextRange]:
        """Yield the ranges inside the clip, with some characters beside them."""
        for index, line in self._visible_lines(clip):
            first, end = line.visible_range(self._visible_area(index, clip))
            yield self._starts[index] + first, self._starts[index] + end

    def caret_rect_at(self, offset: int) -> QRectF:
        """Return the caret before the character at an offset."""
        index = self._line_of(offset)
        row, x = self._line(index).point_of(offset - self._starts[index])
        return self._box(index, row, x, x)

    def caret_stop_at(self, offset: int) -> int:
        """Return the offset, or the end of the label of hidden characters that it is in."""
        index = self._line_of(offset)
        start = self._starts[index]
        return start + self._line(index).caret_stop_at(offset - start)

    def _box(self, index: int, row: int, left: float, right: float) -> QRectF:
        top = self.top(index) + row * self._line_height
        return QRectF(left - self._scrolled, top, right - left, self._line_height)
