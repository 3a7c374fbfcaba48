"""A block whose text is one flow: its places, and where they stand."""

from PySide6.QtCore import QPoint, QRectF

from ui.transcript.blocks.copied import StyledTextBlock
from ui.transcript.blocks.flow import TextLayout
from ui.transcript.markdown.inline import OBJECT, utf16_length


class LaidOutTextBlock(StyledTextBlock):
    """Places are those of the plain text, in which a formula is its source."""

    _text_layout: TextLayout | None = None

    def offset_at(self, point: QPoint) -> int:
        """The nearest place."""
        return (
            self._text_layout.line.to_plain(self._text_layout.offset_at(point.x(), point.y()))
            if self._text_layout
            else 0
        )

    def boxes(self, start: int, end: int) -> list[QRectF]:
        """What a part of the text covers, line by line."""
        if not self._text_layout:
            return []
        end = min(end, self._text_end(self._text_layout))
        if not self._text_layout.objects:
            return self._text_layout.boxes(start, end - start)
        line = self._text_layout.line
        first, last = line.from_plain(start), line.from_plain(end)
        # A part of a formula is all of it.
        first -= first == last and first > 0 and end > start
        return self._text_layout.boxes(first, last - first)

    def _text_end(self, text_layout: TextLayout) -> int:
        """Where its own text ends: looked up once for each flow, for that goes through all of the text."""
        if text_layout.said is None:
            text_layout.said = utf16_length(self.plain())
        return text_layout.said

    def caret_rect_at(self, offset: int) -> QRectF | None:
        """In its line."""
        return self._text_layout.caret_rect_at(self._text_layout.line.from_plain(offset)) if self._text_layout else None

    def caret_stop_at(self, offset: int) -> int:
        """Not inside of a formula."""
        line = self.line()
        return line.to_plain(line.from_plain(offset)) if OBJECT in line.text else offset

    def link_at(self, point: QPoint) -> str:
        """The target under a point."""
        return self._text_layout.link_at(point.x(), point.y()) if self._text_layout else ""

    def natural_width(self) -> int:
        """The longest line."""
        return int(self._text_layout.width) + 1 if self._text_layout else 0
