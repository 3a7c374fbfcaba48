"""Where the places of code stand: what is under a point, what a part covers, where a caret stands."""

from collections.abc import Iterator

from PySide6.QtCore import QRect, QRectF

from ui.transcript.blocks.block import Span
from ui.transcript.blocks.code.code_lines import CodeLines


class PlacedLines(CodeLines):
    """Lines of code with their places, all in pixels from where they are painted."""

    def replaced(self, text: str) -> "PlacedLines":
        """Another text that wraps as this one does, and is moved as far, if it is as wide."""
        made = PlacedLines(text, wraps=self.wraps)
        made._scrolled = self._scrolled
        return made

    def offset_at(self, x: int, y: int) -> int:
        """The nearest place. Only when laid out."""
        if y < 0:
            return 0
        if y >= self.height:
            return self.size
        index = self._index_at(y)
        if self._setting is None:
            return self._starts[index]
        row = (y - self.top(index)) // self._line_height
        return self._starts[index] + self._cut_line(index, self._setting).offset_at(x + self._scrolled, row)

    def boxes(self, span: Span) -> list[QRectF]:
        """What a part of the text covers, a box for each row it stands on."""
        first, last = self._line_of(span[0]), self._line_of(span[1])
        found: list[QRectF] = []
        for index in range(first, last + 1):
            part = self._part(index, span)
            if part and self._setting:
                found += [self._box(index, *box) for box in self._cut_line(index, self._setting).boxes(*part)]
        return found

    def seen(self, clip: QRect) -> Iterator[Span]:
        """The parts of the text that are inside the clip, and some characters beside them."""
        for index, line in self._seen(clip):
            first, end = line.seen(self._area(index, clip))
            yield self._starts[index] + first, self._starts[index] + end

    def caret_at(self, offset: int) -> QRectF:
        """Where a caret stands before the character at a place."""
        index = self._line_of(offset)
        if self._setting is None:
            return self._box(index, 0, 0, 0)
        row, x = self._cut_line(index, self._setting).point_of(offset - self._starts[index])
        return self._box(index, row, x, x)

    def stop_at(self, offset: int) -> int:
        """The place itself, or the end of the hidden characters that one label stands for."""
        index = self._line_of(offset)
        if self._setting is None:
            return offset
        start = self._starts[index]
        return start + self._cut_line(index, self._setting).stop_at(offset - start)

    def _box(self, index: int, row: int, left: float, right: float) -> QRectF:
        top = self.top(index) + row * self._line_height
        return QRectF(left - self._scrolled, top, right - left, self._line_height)
