"""Plain text in a frame that asks for as much height as its lines need."""

from math import ceil

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QPlainTextEdit, QScrollArea, QSizePolicy, QWidget

from ui.look.written.written_text import LogicalOrderText

_PREFERRED_WIDTH = 240
# Where the last line only just fits, a bar appears.
_SLACK = 2


class AutoHeightText(LogicalOrderText):
    """Never higher than `most` rows. Where there is less room than for all, it can give way down to `least` rows.

    What does not fit scrolls inside. The wheel moves what is around it first, unless the text has the focus: nobody is
    caught in it on the way down.
    """

    def __init__(self, least: int, most: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._min_rows, self._max_rows = least, most
        self._requested = (0, 0)
        self._shrunk = 0
        # Code, paths and JSON read from the left in every language.
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self.setTabChangesFocus(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.textChanged.connect(self.update_height)

    @property
    def spare_height(self) -> int:
        """Pixels that it can do without."""
        rows = self._row_count()
        return self._height_of_rows(rows) - self._height_of_rows(min(rows, self._min_rows))

    @property
    def shrunk_height(self) -> int:
        """Pixels that it does without now."""
        return min(self._shrunk, self.spare_height)

    def shrink_by(self, pixels: int) -> None:
        """Do without so many."""
        self._shrunk = pixels
        self.update_height()

    def sizeHint(self) -> QSize:
        """All of it, or `most` rows, without what it gave."""
        return QSize(_PREFERRED_WIDTH, self._height_of_rows(self._row_count()) - self.shrunk_height)

    def minimumSizeHint(self) -> QSize:
        """No less high."""
        return QSize(_PREFERRED_WIDTH // 2, self.sizeHint().height())

    def resizeEvent(self, e: QResizeEvent) -> None:
        """Another width, other rows."""
        super().resizeEvent(e)
        self.update_height()

    def changeEvent(self, e: QEvent) -> None:
        """Another font, another height."""
        super().changeEvent(e)
        if e.type() in {QEvent.Type.FontChange, QEvent.Type.StyleChange}:
            self.update_height()

    def wheelEvent(self, e: QWheelEvent) -> None:
        """Pass it on while what is around can move that way."""
        if not self.hasFocus() and self._parent_can_scroll(e.angleDelta().y() or e.pixelDelta().y()):
            e.ignore()
            return
        super().wheelEvent(e)

    def update_height(self) -> None:
        """Ask for the room that the text needs now."""
        asked = (self.spare_height, self.sizeHint().height())
        if asked != self._requested:
            self._requested = asked
            self.updateGeometry()

    def _row_count(self) -> int:
        """No more are laid out than can be asked for."""
        rows, block = 0, self.document().firstBlock()
        while block.isValid() and rows < self._max_rows:
            self.blockBoundingRect(block)
            rows += block.lineCount()
            block = block.next()
        return max(1, min(rows, self._max_rows))

    def _height_of_rows(self, rows: int) -> int:
        first = self.document().firstBlock().layout().lineAt(0)
        # What a layout gives a line is more than the distance that the font names.
        line = ceil(first.height()) if first.isValid() else self.fontMetrics().lineSpacing()
        frame = 2 * self.frameWidth() + _SLACK
        beside = self.horizontalScrollBar()
        below = beside.sizeHint().height() if beside.maximum() > 0 and self._scrolls_sideways() else 0
        return rows * line + 2 * round(self.document().documentMargin()) + frame + below

    def _scrolls_sideways(self) -> bool:
        return self.lineWrapMode() is QPlainTextEdit.LineWrapMode.NoWrap

    def _parent_can_scroll(self, delta: int) -> bool:
        above = self.parentWidget()
        while above is not None and not isinstance(above, QScrollArea):
            above = above.parentWidget()
        if above is None:
            return False
        bar = above.verticalScrollBar()
        return bar.value() > bar.minimum() if delta > 0 else bar.value() < bar.maximum()
