"""What a call is about, on its card: drawn in the order in which it is written, copied and spoken without marks."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF

from ui.look.written.order import LEFT_TO_RIGHT_MARK, bidi_mark_positions, in_logical_order
from ui.transcript.blocks.block import PaintContext
from ui.transcript.blocks.flow import TextLayout
from ui.transcript.blocks.text_block import SMALL, TextBlock
from ui.transcript.look import RenderStyle
from ui.transcript.markdown.inline import Line


@dataclass(frozen=True, slots=True)
class _DrawnLine(Line):
    """A line with marks in it, which stand at these places of the drawn text."""

    marks: tuple[int, ...] = ()

    def to_plain(self, offset: int) -> int:
        """Without the marks before it."""
        return offset - bisect_left(self.marks, offset)

    def from_plain(self, offset: int) -> int:
        """With them."""
        # A mark is before a place if fewer characters are between it and the beginning than the place has.
        return offset + bisect_right([mark - at for at, mark in enumerate(self.marks)], offset)


class CallSummaryBlock(TextBlock):
    """A small muted line. Places are those of the text without marks."""

    def __init__(self, text: str) -> None:
        super().__init__(Line(text), SMALL, "muted")

    def layout(self, width: int, style: RenderStyle) -> int:
        """Break into lines."""
        text = self.line().text
        marks = bidi_mark_positions(text)
        if not marks:
            return super().layout(width, style)
        font = self.font(style)
        line = _DrawnLine(LEFT_TO_RIGHT_MARK + in_logical_order(text), marks=(0, *(mark + 1 for mark in marks)))
        self._text_layout, self._shown, self.is_laid_out = (
            TextLayout(line, font, style, width, style.line_of(font)),
            None,
            True,
        )
        self.dirty_from, self.is_right_to_left = 0, False
        return self._text_layout.height

    def boxes(self, start: int, end: int) -> list[QRectF]:
        """What a part of the text covers, line by line."""
        if not self._text_layout:
            return []
        first, last = self._drawn_range((start, min(end, self._text_end(self._text_layout))))
        return self._text_layout.boxes(first, last - first)

    def paint(self, context: PaintContext) -> None:
        """The lines inside the clip."""
        if self._text_layout:
            selection = context.selection and self._drawn_range(context.selection)
            clip = QRectF(context.clip)
            self._text_layout.draw(context.painter, context.style, QPointF(0, 0), self._color, selection, clip)

    def _drawn_range(self, span: tuple[int, int]) -> tuple[int, int]:
        line = self._text_layout.line if self._text_layout else Line("")
        return line.from_plain(span[0]), line.from_plain(span[1])
