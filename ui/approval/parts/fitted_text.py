"""Plain text in a frame that asks for as much height as its lines need."""

from math import ceil

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QPlainTextEdit, QScrollArea, QSizePolicy, QWidget

from ui.look.written.written_text import WrittenText

_WIDTH = 240
# Where the last line only just fits, a bar appears.
_SLACK = 2


class FittedText(WrittenText):
    """Never higher than `most` rows. Where there is less room than for all, it can give way down to `least` rows.

    What does not fit scrolls inside. The wheel moves what is around it first, unless the text has the focus: nobody is
    caught in it on the way down.
    """

    def __init__(self, least: int, most: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._least, self._most = least, most
        self._asked = (0, 0)
        self._given = 0
        # Code, paths and JSON read from the left in every language.
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self.setTabChangesFocus(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.textChanged.connect(self.fit)

    @property
    def spare(self) -> int:
        """Pixels that it can do without."""
        rows = self._rows()
        return self._height_of(rows) - self._height_of(min(rows, self._least))

    @property
    def given(self) -> int:
        """Pixels that it does without now."""
        return min(self._given, self.spare)

    def give_way(self, pixels: int) -> None:
        """Do without so many."""
        self._given = pixels
        self.fit()

    def sizeHint(self) -> QSize:
        """All of it, or `most` rows, without what it gave."""
        return QSize(_WIDTH, self._height_of(self._rows()) - self.given)

    def minimumSizeHint(self) -> QSize:
        """No less high."""
        return QSize(_WIDTH // 2, self.sizeHint().height())

    def resizeEvent(self, e: QResizeEvent) -> None:
        """Another width, other rows."""
        super().resizeEvent(e)
        self.fit()

    def changeEvent(self, e: QEvent) -> None:
        """Another font, another height."""
        super().changeEvent(e)
        if e.type() in {QEvent.Type.FontChange, QEvent.Type.StyleChange}:
            self.fit()

    def wheelEvent(self, e: QWheelEvent) -> None:
        """Pass it on while what is around can move that way."""
        if not self.hasFocus() and self._around_moves(e.angleDelta().y() or e.pixelDelta().y()):
            e.ignore()
            return
        super().wheelEvent(e)

    def fit(self) -> None:
        """Ask for the room that the text needs now."""
        asked = (self.spare, self.sizeHint().height())
        if asked != self._asked:
            self._asked = asked
            self.updateGeometry()

    def _rows(self) -> int:
        """No more are laid out than can be asked for."""
        rows, block = 0, self.document().firstBlock()
        while block.isValid() and rows < self._most:
            self.blockBoundingRect(block)
            rows += block.lineCount()
            block = block.next()
        return max(1, min(rows, self._most))

    def _height_of(self, rows: int) -> int:
        first = self.document().firstBlock().layout().lineAt(0)
        # What a layout gives a line is more than the distance that the font names.
        line = ceil(first.height()) if first.isValid() else self.fontMetrics().lineSpacing()
        frame = 2 * self.frameWidth() + _SLACK
        beside = self.horizontalScrollBar()
        below = beside.sizeHint().height() if beside.maximum() > 0 and self._scrolls_sideways() else 0
        return rows * line + 2 * round(self.document().documentMargin()) + frame + below

    def _scrolls_sideways(self) -> bool:
        return self.lineWrapMode() is QPlainTextEdit.LineWrapMode.NoWrap

    def _around_moves(self, delta: int) -> bool:
        above = self.parentWidget()
        while above is not None and not isinstance(above, QScrollArea):
            above = above.parentWidget()
        if above is None:
            return False
        bar = above.verticalScrollBar()
        return bar.value() > bar.minimum() if delta > 0 else bar.value() < bar.maximum()
