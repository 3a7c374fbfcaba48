"""Where the places of code stand: what is under a point, what a part covers, where a caret stands."""

from bisect import bisect_right

from PySide6.QtCore import QRectF

from ui.transcript.blocks.block import Span
from ui.transcript.blocks.code.code_lines import CodeLines
from ui.transcript.blocks.flow import x_of


class PlacedLines(CodeLines):
    """Lines of code with their places, all in pixels from where they are painted."""

    def offset_at(self, x: int, y: int) -> int:
        """The nearest place. Only when laid out."""
        if y < 0:
            return 0
        if y >= self.height:
            return self.size
        index = self._index_at(y)
        if self._look is None:
            return self._starts[index]
        layout = self._layout(index, self._look)
        row = min((y - self.top(index)) // self._line_height, layout.lineCount() - 1)
        place = layout.lineAt(row).xToCursor(x + self._scrolled)
        shown = self._shown.get(index)
        return self._starts[index] + (shown.from_shown(place) if shown else place)

    def boxes(self, span: Span) -> list[QRectF]:
        """What a part of the text covers, a box for each row it stands on."""
        first, last = self._line_of(span[0]), self._line_of(span[1])
        found: list[QRectF] = []
        for index in range(first, last + 1):
            part = self._part(index, span)
            if part and self._look:
                layout = self._layout(index, self._look)
                start, end = self._shown_at(index, part[0]), self._shown_at(index, part[0] + part[1])
                for row in range(layout.lineCount()):
                    line = layout.lineAt(row)
                    begin, stop = max(start, line.textStart()), min(end, line.textStart() + line.textLength())
                    if begin < stop:
                        left, right = sorted((x_of(line, begin), x_of(line, stop)))
                        found.append(self._box(index, row, left, right))
        return found

    def caret_at(self, offset: int) -> QRectF:
        """Where a caret stands before the character at a place."""
        index = self._line_of(offset)
        if self._look is None:
            return self._box(index, 0, 0, 0)
        layout, at = self._layout(index, self._look), self._shown_at(index, offset - self._starts[index])
        line = layout.lineForTextPosition(at)
        return self._box(index, line.lineNumber(), x_of(line, at), x_of(line, at))

    def _line_of(self, offset: int) -> int:
        return max(0, min(bisect_right(self._starts, offset) - 1, len(self._lines) - 1))

    def _shown_at(self, index: int, offset: int) -> int:
        shown = self._shown.get(index)
        return shown.to_shown(offset) if shown else offset

    def _box(self, index: int, row: int, left: float, right: float) -> QRectF:
        top = self.top(index) + row * self._line_height
        return QRectF(left - self._scrolled, top, right - left, self._line_height)

    def line_span(self, offset: int) -> Span:
        """The line around a place."""
        index = min(bisect_right(self._starts, offset) - 1, len(self._lines) - 1)
        return self._starts[index], self._starts[index + 1] - 1
