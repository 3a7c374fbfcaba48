"""Says that a long copy is still being put together."""

from PySide6.QtCore import QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from ui.transcript.look import Look

_PATIENCE = 200
"""Milliseconds: what is over sooner needs no words."""


class CopyNote(QWidget):
    """A line of words at the upper edge of `over`, its sibling."""

    def __init__(self, look: Look, over: QWidget, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._over = over
        self._words = ""
        self._wait = QTimer(self)
        self._wait.setSingleShot(True)
        self._wait.setInterval(_PATIENCE)
        self._wait.timeout.connect(self._appear)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def use(self, look: Look) -> None:
        """Another theme or zoom."""
        self._look = look
        self.update()

    def say(self, words: str) -> None:
        """These words, once they have lasted; nothing hides it."""
        self._words = words
        self.setAccessibleName(words)
        if not words:
            self._wait.stop()
            self.hide()
        elif self.isVisible():
            self._place()
        elif not self._wait.isActive():
            self._wait.start()

    def stop(self) -> None:
        """Say nothing more."""
        self.say("")

    def _appear(self) -> None:
        self._place()
        self.show()

    def _place(self) -> None:
        room = self._over.geometry()
        self.resize(self.sizeHint())
        self.move(room.left() + (room.width() - self.width()) // 2, room.top() + self._look.px(10))
        self.update()

    def sizeHint(self) -> QSize:
        """Around the words."""
        wide = QFontMetricsF(self._look.small).horizontalAdvance(self._words)
        return QSize(int(wide) + self._look.px(28), self._look.px(32))

    def paintEvent(self, event: QPaintEvent) -> None:
        """The words in a pill."""
        del event
        look, painter = self._look, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.setPen(look.color("border"))
        painter.setBrush(look.color("surface"))
        painter.drawRoundedRect(box, box.height() / 2, box.height() / 2)
        painter.setFont(look.small)
        painter.setPen(look.color("text"))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self._words)
        painter.end()
