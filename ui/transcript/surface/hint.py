"""What an empty conversation shows."""

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from ui.transcript.look import RenderStyle


def paint_empty_hint(viewport: QWidget, style: RenderStyle) -> None:
    """A friendly line and what to do, in the middle."""
    painter = QPainter(viewport)
    box = viewport.rect().adjusted(style.px(24), 0, -style.px(24), 0)
    middle = box.center().y()
    center = Qt.AlignmentFlag.AlignHCenter
    painter.setFont(style.heading(2))
    painter.setPen(style.color("text"))
    greeting = QCoreApplication.translate("Transcript", "What can I do for you?")
    painter.drawText(box.adjusted(0, middle - style.px(40), 0, 0), center, greeting)
    painter.setFont(style.body)
    painter.setPen(style.color("muted"))
    hint = QCoreApplication.translate("Transcript", "Write a message below. You can paste or drop pictures too.")
    painter.drawText(box.adjusted(0, middle, 0, 0), center | Qt.TextFlag.TextWordWrap, hint)
    painter.end()
