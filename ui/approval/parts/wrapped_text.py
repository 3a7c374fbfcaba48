"""A label whose text breaks anywhere: what a model or a server wrote may be one word of thousands of letters."""

from math import ceil

from PySide6.QtCore import QPointF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QTextLayout, QTextOption
from PySide6.QtWidgets import QLabel

from ui.look.controls import LabelKind
from ui.look.written.order import strip_bidi_marks

_UNLIMITED_WIDTH = 1_000_000


class WrappingLabel(QLabel):
    """Plain text of any kind of label, never wider than its room. Between words where it can, else anywhere.

    Marks of the written order are drawn by; `text()`, which screen readers read too, is without them.
    """

    direction = Qt.LayoutDirection.LayoutDirectionAuto
    """How it is read: as its letters say."""

    def __init__(self, text: str = "", kind: LabelKind = "") -> None:
        super().__init__()
        self._drawn_text = ""
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(text)
        if kind:
            self.setProperty("kind", kind)
        self.setWordWrap(True)

    def setText(self, text: str) -> None:
        """Another one."""
        self._drawn_text = text.replace("\n", "\u2028")
        super().setText(strip_bidi_marks(text))
        # Qt's own is the same where only the marks are others.
        self.update()

    def hasHeightForWidth(self) -> bool:
        """Always."""
        return True

    def heightForWidth(self, width: int) -> int:
        """Of all of the text."""
        return self._size_for_width(max(width, 1)).height()

    def sizeHint(self) -> QSize:
        """On as few lines as it is written."""
        return self._size_for_width(_UNLIMITED_WIDTH)

    def minimumSizeHint(self) -> QSize:
        """A few letters wide."""
        letters, usual = 6 * self.fontMetrics().averageCharWidth(), self.sizeHint()
        return QSize(min(letters, usual.width()), usual.height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """The text, from its leading edge."""
        del event
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        laid, _ = self._layout_at(self.width())
        laid.draw(painter, QPointF(0, 0))

    def _size_for_width(self, width: int) -> QSize:
        self.ensurePolished()
        return self._layout_at(width)[1]

    def _layout_at(self, width: int) -> tuple[QTextLayout, QSize]:
        is_mirrored = self.layoutDirection() is Qt.LayoutDirection.RightToLeft and width != _UNLIMITED_WIDTH
        edge = Qt.AlignmentFlag.AlignRight if is_mirrored else Qt.AlignmentFlag.AlignLeft
        option = QTextOption(edge | Qt.AlignmentFlag.AlignAbsolute)
        # The window says where it begins.
        option.setTextDirection(self.direction)
        option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        laid = QTextLayout(self._drawn_text, self.font())
        laid.setTextOption(option)
        laid.beginLayout()
        height = widest = 0.0
        while (line := laid.createLine()).isValid():
            line.setLineWidth(width)
            line.setPosition(QPointF(0, height))
            height += line.height()
            widest = max(widest, line.naturalTextWidth())
        laid.endLayout()
        return laid, QSize(ceil(widest), ceil(height))
