"""The lines of a code block: heights by arithmetic, layouts only for what is looked at."""

from collections.abc import Iterator
from dataclasses import replace

from PySide6.QtCore import QPointF, QRect, Qt
from PySide6.QtGui import QPainter, QTextCharFormat

from ui.transcript.blocks.block import TextRange
from ui.transcript.blocks.code.lines.advances import advances_of
from ui.transcript.blocks.code.lines.code_text import CodeText
from ui.transcript.blocks.code.lines.cut_line import CodeLine, LineLayoutOptions, VisibleArea
from ui.transcript.blocks.code.lines.inks import WordFormats
from ui.transcript.blocks.code.lines.row_counts import RowCounter
from ui.transcript.blocks.code.lines.side_line import UnwrappedLine
from ui.transcript.blocks.code.lines.wrapped_line import WrappedLine
from ui.transcript.look import RenderStyle

_KEPT = 400
"""Lines whose layouts are kept at once."""


class CodeLines(CodeText):
    """Without wrapping all lines are equally high."""

    def __init__(self, text: str, *, wraps: bool) -> None:
        super().__init__(text)
        self.wraps = wraps
        self.rows = RowCounter()
        self._cut: dict[int, CodeLine] = {}
        self._line_height = 1
        self._width = 0
        self._scrolled = 0
        self._content_width = 0
        self._options: LineLayoutOptions | None = None

    @property
    def height(self) -> int:
        """Of all lines."""
        return self.top(len(self))

    def top(self, index: int) -> int:
        """Where a line begins."""
        return self._line_height * (self.rows.top(index) if self.wraps else index)

    def _on_highlighted(self, index: int) -> None:
        if found := self._cached_line(index):
            found.set_words(self.words_of(index))

    def _on_line_grown(self, index: int, more: str) -> None:
        if found := self._cached_line(index):
            found.append(self._lines[index], more)
        self.rows.line_changed(index)

    def _cached_line(self, index: int) -> CodeLine | None:
        return self._cut.get(index) or self.rows.counting.get(index)

    def layout(self, width: int, style: RenderStyle) -> None:
        """Take the width; count rows only when lines wrap."""
        self._line_height, self._width = style.mono_line, width
        options = self._set_options(width, style)
        if self.wraps:
            self.rows.count(self._lines, width, advances_of(style), lambda index: self._line_to_count(index, options))
        else:
            self._content_width = 0
            self._widen(self._longest)
        self._scrolled = min(self._scrolled, self._max_scroll())

    def _set_options(self, width: int, style: RenderStyle) -> LineLayoutOptions:
        """Forget what was laid out for something else."""
        options = self._options
        if options is None or (options.style, options.wraps) != (style, self.wraps):
            options = LineLayoutOptions(style, WordFormats(style), self.wraps, width)
            self.forget()
        elif options.width != width:
            options = replace(options, width=width)
            if self.wraps:
                self._cut.clear()
                self.rows.forget_rows()
        self._options = options
        return options

    def _line_to_count(self, index: int, options: LineLayoutOptions) -> WrappedLine:
        """Kept if it is the last one, which may grow."""
        found = self._cached_line(index)
        if isinstance(found, WrappedLine):
            return found
        made = WrappedLine(self._lines[index], options, self.words_of(index))
        if index == len(self) - 1:
            self._cache_line(index, made)
        return made

    def _widen(self, index: int) -> None:
        """A line may reach further than was known."""
        if self._options:
            width = self._cut_line(index, self._options).width
            self._content_width = max(self._content_width, int(width) + self._options.style.px(8))

    def forget(self) -> None:
        """All layouts."""
        self._cut.clear()
        self.rows.forget()

    def paint(self, painter: QPainter, style: RenderStyle, clip: QRect, selection: TextRange | None) -> None:
        """The lines inside the clip, from the painter's origin."""
        marked = QTextCharFormat()
        marked.setBackground(style.color("selection"))
        painter.setPen(style.color("text"))
        for index, line in self._visible_lines(clip):
            if isinstance(line, UnwrappedLine) and self._scrolled:
                # What was a guess becomes exact to the left of the screen: what is on it stays where it is.
                self._scrolled = max(0, self._scrolled + round(line.settle_at(clip.left() + self._scrolled)))
            part = self._range_in_line(index, selection) or (0, 0)
            for piece in line.pieces_in(self._visible_area(index, clip)):
                first, end = line.span(piece.number)
                chosen = max(part[0], first) - first, min(part[1], end) - first
                at = QPointF(piece.left - self._scrolled, self.top(index) + piece.row * self._line_height)
                line.piece(piece.number).draw(painter, at, chosen if chosen[0] < chosen[1] else None, marked)
            if not self.wraps:
                self._widen(index)

    def _visible_lines(self, clip: QRect) -> Iterator[tuple[int, CodeLine]]:
        """The lines inside the clip."""
        if self._options:
            for index in range(self._index_at(clip.top()), self._index_at(clip.bottom()) + 1):
                yield index, self._cut_line(index, self._options)

    def _visible_area(self, index: int, clip: QRect) -> VisibleArea:
        """What of a line is inside the clip."""
        top, high = self.top(index), self._line_height
        last = min((clip.bottom() - top) // high, (self.top(index + 1) - top) // high - 1)
        return VisibleArea(
            clip.left() + self._scrolled, clip.right() + self._scrolled, (clip.top() - top) // high, last
        )

    def paint_scroll_bar(self, painter: QPainter, style: RenderStyle, track: QRect) -> None:
        """How far a long line was moved."""
        if not self._max_scroll():
            return
        wide = min(track.width(), max(style.px(16), int(track.width() * self._width / self._content_width)))
        left = track.left() + int((track.width() - wide) * self._scrolled / self._max_scroll())
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(style.color("border"))
        painter.drawRoundedRect(QRect(left, track.top(), wide, track.height()), 2, 2)

    def scroll_horizontally(self, pixels: int) -> bool:
        """Answers whether anything moved."""
        wanted = max(0, min(self._scrolled + pixels, self._max_scroll()))
        moved, self._scrolled = wanted != self._scrolled, wanted
        return moved

    def _max_scroll(self) -> int:
        return 0 if self.wraps else max(0, self._content_width - self._width)

    def _index_at(self, y: int) -> int:
        row = y // self._line_height
        return max(0, min(self.rows.line_at(row) if self.wraps else row, len(self) - 1))

    def _cut_line(self, index: int, options: LineLayoutOptions) -> CodeLine:
        found = self._cached_line(index)
        if found is None:
            made = WrappedLine if self.wraps else UnwrappedLine
            found = made(self._lines[index], options, self.words_of(index))
            self._cache_line(index, found)
        if isinstance(found, WrappedLine):
            self.rows.on_line_visible(index, found)
        return found

    def _cache_line(self, index: int, line: CodeLine) -> None:
        if len(self._cut) >= _KEPT:
            del self._cut[next(iter(self._cut))]
        self._cut[index] = line
