"""Lines of code in a block: the places of what is in it, and counting their rows."""

from typing import TypeVar

from PySide6.QtCore import QPoint, QRect, QRectF

from ui.transcript.blocks.block import TextRange
from ui.transcript.blocks.code.code_places import PositionedCodeLines
from ui.transcript.blocks.code.host import CodeCallbacks
from ui.transcript.blocks.copied import CodeSourceBlock

_Result = TypeVar("_Result")


class CodeLinesBlock(CodeSourceBlock):
    """`_head` is what stands above the lines, `_pad` what stands beside them, in pixels."""

    def __init__(self, lines: PositionedCodeLines, callbacks: CodeCallbacks) -> None:
        self._lines = lines
        self._callbacks = callbacks
        self._width = 0
        self._header_height = 0
        self._pad = 0
        self._counts = False

    @property
    def text(self) -> str:
        """All of it."""
        return self._lines.text

    def _continue_counting(self) -> None:
        """Rows are counted a little at a time."""
        if not self._lines.rows.is_complete and not self._counts:
            self._counts = True
            if self._callbacks.run_later:
                self._callbacks.run_later(self._count)

    def _count(self) -> None:
        self._counts = False
        rows = self._lines.rows
        if rows.is_complete:
            return
        # All at its end: heights that change every few frames would let what is read jump.
        is_over = rows.count_more()
        if rows.was_wrong_on_screen or (is_over and rows.is_estimate_wrong):
            self.is_laid_out = False
            (self._callbacks.on_arrived or self._callbacks.on_changed)()
        self._continue_counting()

    def offset_at(self, point: QPoint) -> int:
        """The nearest place."""
        return self._after_lookup(self._lines.offset_at(point.x() - self._pad, point.y() - self._header_height))

    def _after_lookup(self, found: _Result) -> _Result:
        """Looking for places may have told more of the height than was known."""
        if self._lines.rows.was_wrong_on_screen or self._lines.rows.underestimated_lines():
            self.is_laid_out = False
        return found

    def boxes(self, start: int, end: int) -> list[QRectF]:
        """What a part of the code covers."""
        return self._after_lookup(
            [box.translated(self._pad, self._header_height) for box in self._lines.boxes((start, end))]
        )

    def caret_rect_at(self, offset: int) -> QRectF | None:
        """In its line."""
        return self._after_lookup(self._lines.caret_rect_at(offset).translated(self._pad, self._header_height))

    def caret_stop_at(self, offset: int) -> int:
        """Not within hidden characters that one label stands for."""
        return self._lines.caret_stop_at(offset)

    def visible_ranges(self, clip: QRect) -> list[TextRange]:
        """The parts of the code that are inside a clip, from above to below. Only when laid out."""
        inner = clip.intersected(QRect(1, self._header_height, self._width - 2, self._lines.height))
        return (
            list(self._lines.visible_ranges(inner.translated(-self._pad, -self._header_height)))
            if not inner.isEmpty()
            else []
        )

    def paragraph_at(self, offset: int) -> TextRange:
        """The line."""
        return self._lines.line_span(offset)

    def scroll_horizontally(self, pixels: int) -> bool:
        """Only when lines do not wrap and one is too long."""
        return self._lines.scroll_horizontally(pixels)
