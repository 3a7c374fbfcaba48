"""Says that a long copy is still being put together."""

from PySide6.QtCore import QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from ui.transcript.look import RenderStyle

_DELAY_MS = 200
"""Milliseconds: what is over sooner needs no words."""


class CopyProgressNote(QWidget):
    """A line of words at the upper edge of `over`, its sibling."""

    def __init__(self, style: RenderStyle, over: QWidget, parent: QWidget) -> None:
        super().__init__(parent)
        self._style = style
        self._over = over
        self._message = ""
        self._wait = QTimer(self)
        self._wait.setSingleShot(True)
        self._wait.setInterval(_DELAY_MS)
        self._wait.timeout.connect(self._appear)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def set_style(self, style: RenderStyle) -> None:
        """Another theme or zoom."""
        self._style = style
        self.update()

    def show_message(self, words: str) -> None:
        """These words, once they have lasted; nothing hides it."""
        self._message = words
        self.setAccessibleName(words)
        if not words:
            self._wait.stop()
            self.hide()
        elif self.isVisible():
            self._reposition()
        elif not self._wait.isActive():
            self._wait.start()

    def clear_message(self) -> None:
        """Say nothing more."""
        self.show_message("")

    def _appear(self) -> None:
        self._reposition()
        self.show()

    def _reposition(self) -> None:
        room = self._over.geometry()
        self.resize(self.sizeHint())
        self.move(room.left() + (room.width() - self.width()) // 2, room.top() + self._style.px(10))
        self.update()

    def sizeHint(self) -> QSize:
        """Around the words."""
        wide = QFontMetricsF(self._style.small).horizontalAdvance(self._message)
        return QSize(int(wide) + self._style.px(28), self._style.px(32))

    def paintEvent(self, event: QPaintEvent) -> None:
        """The words in a pill."""
        del event
        style, painter = self._style, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.setPen(style.color("border"))
        painter.setBrush(style.color("surface"))
        painter.drawRoundedRect(box, box.height() / 2, box.height() / 2)
        painter.setFont(style.small)
        painter.setPen(style.color("text"))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self._message)
        painter.end()
