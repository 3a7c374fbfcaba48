"""A picture among text: a place before it, a place behind it, and none inside."""

from PySide6.QtCore import QPoint

from ui.look.visible_text import show_hidden
from ui.transcript.blocks.block import TextRange
from ui.transcript.blocks.copied import ImageSourceBlock
from ui.transcript.markdown.inline import RemoteImage, utf16_length


class WholeImageBlock(ImageSourceBlock):
    """Selected as a whole or not at all."""

    def __init__(self, image: RemoteImage) -> None:
        super().__init__(image)
        self._width = 0

    def offset_at(self, point: QPoint) -> int:
        """Before it or behind it."""
        return 0 if point.x() < self._width / 2 else utf16_length(self.plain())

    def caret_stop_at(self, offset: int) -> int:
        """It has no places inside."""
        return utf16_length(self.plain()) if offset else 0

    def paragraph_at(self, offset: int) -> TextRange:
        """All of it."""
        del offset
        return 0, utf16_length(self.plain())

    def label(self) -> str:
        """With whatever is hidden in it written out."""
        return show_hidden(super().label())

    def natural_width(self) -> int:
        """Of the box or the picture."""
        return self._width
