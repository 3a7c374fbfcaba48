"""Where the places of code stand: what is under a point, what a part covers, where a caret stands."""

from collections.abc import Iterator

from PySide6.QtCore import QRect, QRectF

from ui.transcript.blocks.block import TextRange
from ui.transcript.blocks.code.code_lines import CodeLines


class PositionedCodeLines(CodeLines):
    """Lines of code with their places, all in pixels from where they are painted."""

    def with_text(self, text: str) -> "PositionedCodeLines":
        """Another text that wraps as this one does, and is moved as far, if it is as wide."""
        made = PositionedCodeLines(text, wraps=self.wraps)
        made._scrolled = self._scrolled
        return made

    def offset_at(self, x: int, y: int) -> int:
        """The nearest place. Only when laid out."""
        if y < 0:
            return 0
        if y >= self.height:
            return self.size
        index = self._index_at(y)
        if self._options is None:
            return self._starts[index]
        row = (y - self.top(index)) // self._line_height
        return self._starts[index] + self._cut_line(index, self._options).offset_at(x + self._scrolled, row)

    def boxes(self, span: TextRange) -> list[QRectF]:
        """What a part of the text covers, a box for each row it stands on."""
        first, last = self._line_of(span[0]), self._line_of(span[1])
        found: list[QRectF] = []
        for index in range(first, last + 1):
            part = self._range_in_line(index, span)
            if part and self._options:
                found += [self._box(index, *box) for box in self._cut_line(index, self._options).boxes(*part)]
        return found

    def visible_ranges(self, clip: QRect) -> Iterator[TextRange]:
        """The parts of the text that are inside the clip, and some characters beside them."""
        for index, line in self._visible_lines(clip):
            first, end = line.visible_range(self._visible_area(index, clip))
            yield self._starts[index] + first, self._starts[index] + end

    def caret_rect_at(self, offset: int) -> QRectF:
        """Where a caret stands before the character at a place."""
        index = self._line_of(offset)
        if self._options is None:
            return self._box(index, 0, 0, 0)
        row, x = self._cut_line(index, self._options).point_of(offset - self._starts[index])
        return self._box(index, row, x, x)

    def caret_stop_at(self, offset: int) -> int:
        """The place itself, or the end of the hidden characters that one label stands for."""
        index = self._line_of(offset)
        if self._options is None:
            return offset
        start = self._starts[index]
        return start + self._cut_line(index, self._options).caret_stop_at(offset - start)

    def _box(self, index: int, row: int, left: float, right: float) -> QRectF:
        top = self.top(index) + row * self._line_height
        return QRectF(left - self._scrolled, top, right - left, self._line_height)
