"""What a call is about, on its card: drawn in the order in which it is written, copied and spoken without marks."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF

from ui.look.written.order import LEFT_FIRST, in_written_order, mark_places
from ui.transcript.blocks.block import Brush
from ui.transcript.blocks.flow import Flow
from ui.transcript.blocks.text_block import SMALL, TextBlock
from ui.transcript.look import Look
from ui.transcript.markdown.inline import Line


@dataclass(frozen=True, slots=True)
class _Drawn(Line):
    """A line with marks in it, which stand at these places of the drawn text."""

    marks: tuple[int, ...] = ()

    def to_plain(self, offset: int) -> int:
        """Without the marks before it."""
        return offset - bisect_left(self.marks, offset)

    def from_plain(self, offset: int) -> int:
        """With them."""
        # A mark is before a place if fewer characters are between it and the beginning than the place has.
        return offset + bisect_right([mark - at for at, mark in enumerate(self.marks)], offset)


class WrittenLine(TextBlock):
    """A small muted line. Places are those of the text without marks."""

    def __init__(self, text: str) -> None:
        super().__init__(Line(text), SMALL, "muted")

    def lay(self, width: int, look: Look) -> int:
        """Break into lines."""
        text = self.line().text
        marks = mark_places(text)
        if not marks:
            return super().lay(width, look)
        font = self.font(look)
        line = _Drawn(LEFT_FIRST + in_written_order(text), marks=(0, *(mark + 1 for mark in marks)))
        self._flow, self._shown, self.laid = Flow(line, font, look, width, look.line_of(font)), None, True
        self.dirty_from, self.is_right_to_left = 0, False
        return self._flow.height

    def boxes(self, start: int, end: int) -> list[QRectF]:
        """What a part of the text covers, line by line."""
        if not self._flow:
            return []
        first, last = self._drawn_places((start, min(end, self._end_in(self._flow))))
        return self._flow.boxes(first, last - first)

    def paint(self, brush: Brush) -> None:
        """The lines inside the clip."""
        if self._flow:
            selection = brush.selection and self._drawn_places(brush.selection)
            clip = QRectF(brush.clip)
            self._flow.draw(brush.painter, brush.look, QPointF(0, 0), self._color, selection, clip)

    def _drawn_places(self, span: tuple[int, int]) -> tuple[int, int]:
        line = self._flow.line if self._flow else Line("")
        return line.from_plain(span[0]), line.from_plain(span[1])
