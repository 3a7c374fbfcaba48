"""A block whose text is one flow: its places, and where they stand."""

from PySide6.QtCore import QPoint, QRectF

from ui.transcript.blocks.copied import StyledTextBlock
from ui.transcript.blocks.flow import TextLayout
from ui.transcript.markdown.inline import OBJECT, utf16_length


class LaidOutTextBlock(StyledTextBlock):
    """Places are those of the plain text, in which a formula is its source."""

    _flow: TextLayout | None = None

    def offset_at(self, point: QPoint) -> int:
        """The nearest place."""
        return self._flow.line.to_plain(self._flow.offset_at(point.x(), point.y())) if self._flow else 0

    def boxes(self, start: int, end: int) -> list[QRectF]:
        """What a part of the text covers, line by line."""
        if not self._flow:
            return []
        end = min(end, self._text_end(self._flow))
        if not self._flow.objects:
            return self._flow.boxes(start, end - start)
        line = self._flow.line
        first, last = line.from_plain(start), line.from_plain(end)
        # A part of a formula is all of it.
        first -= first == last and first > 0 and end > start
        return self._flow.boxes(first, last - first)

    def _text_end(self, flow: TextLayout) -> int:
        """Where its own text ends: looked up once for each flow, for that goes through all of the text."""
        if flow.said is None:
            flow.said = utf16_length(self.plain())
        return flow.said

    def caret_rect_at(self, offset: int) -> QRectF | None:
        """In its line."""
        return self._flow.caret_rect_at(self._flow.line.from_plain(offset)) if self._flow else None

    def caret_stop_at(self, offset: int) -> int:
        """Not inside of a formula."""
        line = self.line()
        return line.to_plain(line.from_plain(offset)) if OBJECT in line.text else offset

    def link_at(self, point: QPoint) -> str:
        """The target under a point."""
        return self._flow.link_at(point.x(), point.y()) if self._flow else ""

    def natural_width(self) -> int:
        """The longest line."""
        return int(self._flow.width) + 1 if self._flow else 0
