"""Lines of code in a block: the places of what is in it, and counting their rows."""

from typing import TypeVar

from PySide6.QtCore import QPoint, QRect, QRectF

from ui.transcript.blocks.block import Span
from ui.transcript.blocks.code.code_places import PlacedLines
from ui.transcript.blocks.code.host import CodeHost
from ui.transcript.blocks.copied import SourceBlock

_Found = TypeVar("_Found")


class LinesBlock(SourceBlock):
    """`_head` is what stands above the lines, `_pad` what stands beside them, in pixels."""

    def __init__(self, lines: PlacedLines, host: CodeHost) -> None:
        self._lines = lines
        self._host = host
        self._width = 0
        self._head = 0
        self._pad = 0
        self._counts = False

    @property
    def text(self) -> str:
        """All of it."""
        return self._lines.text

    def _count_on(self) -> None:
        """Rows are counted a little at a time."""
        if not self._lines.rows.is_complete and not self._counts:
            self._counts = True
            if self._host.later:
                self._host.later(self._count)

    def _count(self) -> None:
        self._counts = False
        rows = self._lines.rows
        if rows.is_complete:
            return
        # All at its end: heights that change every few frames would let what is read jump.
        is_over = rows.go_on()
        if rows.was_seen_wrong or (is_over and rows.is_misjudged):
            self.laid = False
            (self._host.arrived or self._host.changed)()
        self._count_on()

    def offset_at(self, point: QPoint) -> int:
        """The nearest place."""
        return self._looked(self._lines.offset_at(point.x() - self._pad, point.y() - self._head))

    def _looked(self, found: _Found) -> _Found:
        """Looking for places may have told more of the height than was known."""
        if self._lines.rows.was_seen_wrong or self._lines.rows.too_low():
            self.laid = False
        return found

    def boxes(self, start: int, end: int) -> list[QRectF]:
        """What a part of the code covers."""
        return self._looked([box.translated(self._pad, self._head) for box in self._lines.boxes((start, end))])

    def caret_at(self, offset: int) -> QRectF | None:
        """In its line."""
        return self._looked(self._lines.caret_at(offset).translated(self._pad, self._head))

    def stop_at(self, offset: int) -> int:
        """Not within hidden characters that one label stands for."""
        return self._lines.stop_at(offset)

    def seen(self, clip: QRect) -> list[Span]:
        """The parts of the code that are inside a clip, from above to below. Only when laid out."""
        inner = clip.intersected(QRect(1, self._head, self._width - 2, self._lines.height))
        return list(self._lines.seen(inner.translated(-self._pad, -self._head))) if not inner.isEmpty() else []

    def paragraph_at(self, offset: int) -> Span:
        """The line."""
        return self._lines.line_span(offset)

    def scroll_sideways(self, pixels: int) -> bool:
        """Only when lines do not wrap and one is too long."""
        return self._lines.scroll_sideways(pixels)
