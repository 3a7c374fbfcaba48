"""Texts that are as high as their rows."""

from math import ceil

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QPlainTextEdit, QSizePolicy

from ui.style.layouts import scroll_area_of
from ui.style.text import show_hidden
from ui.style.text_display import LogicalOrderText

_PREFERRED_WIDTH = 240
# Without it a scroll bar appears when the last line just fits.
_SLACK = 2


class AutoHeightText(LogicalOrderText):
    """A text as high as its rows, at most `most`, that can shrink to `least` rows when room is scarce.

    The rest scrolls inside. The wheel scrolls the area around it first, unless the text has the focus.
    """

    def __init__(self, least: int, most: int, name: str = "", *, is_read_only: bool = True) -> None:
        """`name` is the accessible name."""
        super().__init__()
        self.setAccessibleName(name)
        self.setReadOnly(is_read_only)
        self.setUndoRedoEnabled(not is_read_only)
        if is_read_only:
            self.setTextInteractionFlags(
                Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
            )
        self._min_rows, self._max_rows = least, most
        self._requested = (0, 0)
        self._shrunk = 0
        # Code, paths and JSON run from left to right in every language.
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self.setTabChangesFocus(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.textChanged.connect(self.update_height)

    @property
    def spare_height(self) -> int:
        """Pixels by which it can shrink."""
        rows = self._row_count()
        return self._height_of_rows(rows) - self._height_of_rows(min(rows, self._min_rows))

    @property
    def shrunk_height(self) -> int:
        """Pixels by which it is lower than its rows now."""
        return min(self._shrunk, self.spare_height)

    def shrink_by(self, pixels: int) -> None:
        """Make the text lower than its rows by this many pixels."""
        self._shrunk = pixels
        self.update_height()

    def sizeHint(self) -> QSize:
        """Return the height of all rows, or of `most`, minus the pixels by which it shrank."""
        return QSize(_PREFERRED_WIDTH, self._height_of_rows(self._row_count()) - self.shrunk_height)

    def minimumSizeHint(self) -> QSize:
        return QSize(_PREFERRED_WIDTH // 2, self.sizeHint().height())

    def resizeEvent(self, e: QResizeEvent) -> None:
        super().resizeEvent(e)
        self.update_height()

    def changeEvent(self, e: QEvent) -> None:
        super().changeEvent(e)
        if e.type() in {QEvent.Type.FontChange, QEvent.Type.StyleChange}:
            self.update_height()

    def wheelEvent(self, e: QWheelEvent) -> None:
        if not self.hasFocus() and self._parent_can_scroll(e.angleDelta().y() or e.pixelDelta().y()):
            e.ignore()
            return
        super().wheelEvent(e)

    def update_height(self) -> None:
        """Ask the layout for the height that the text needs now."""
        hint = (self.spare_height, self.sizeHint().height())
        if hint != self._requested:
            self._requested = hint
            self.updateGeometry()

    def _row_count(self) -> int:
        """Count the rows, but lay out no more than `most`."""
        rows, block = 0, self.document().firstBlock()
        while block.isValid() and rows < self._max_rows:
            self.blockBoundingRect(block)
            rows += block.lineCount()
            block = block.next()
        return max(1, min(rows, self._max_rows))

    def _height_of_rows(self, rows: int) -> int:
        first = self.document().firstBlock().layout().lineAt(0)
        # A laid-out line is higher than the line spacing of the font.
        line = ceil(first.height()) if first.isValid() else self.fontMetrics().lineSpacing()
        frame = 2 * self.frameWidth() + _SLACK
        scroll_bar = self.horizontalScrollBar()
        is_wrapping = self.lineWrapMode() is not QPlainTextEdit.LineWrapMode.NoWrap
        bar_height = 0 if is_wrapping or scroll_bar.maximum() <= 0 else scroll_bar.sizeHint().height()
        return rows * line + 2 * round(self.document().documentMargin()) + frame + bar_height

    def _parent_can_scroll(self, delta: int) -> bool:
        area = scroll_area_of(self)
        if area is None:
            return False
        bar = area.verticalScrollBar()
        return bar.value() > bar.minimum() if delta > 0 else bar.value() < bar.maximum()


class ReadOnlyText(AutoHeightText):
    """Text from outside, of at most `most_lines` visible lines. Hidden characters can be seen."""

    def __init__(self, text: str, name: str, most_lines: int = 6) -> None:
        """`name` is the accessible one."""
        super().__init__(most_lines, most_lines, name)
        # Sentences begin where the window's lines begin.
        self.unsetLayoutDirection()
        self.setProperty("kind", "code")
        self.show_text(text)

    def show_text(self, text: str) -> None:
        """Show another text. The same one keeps its selection."""
        shown = show_hidden(text)
        if shown != self.toPlainText():
            self.setPlainText(shown)
