"""A check box or a radio button beside words that take more lines where there is no room."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QWidget

from ui.look.controls import label
from ui.look.theme import SPACE_XS


class WrappedChoice(QWidget):
    """The button itself has no words; a press on them is a press on it, and they are what it is called."""

    def __init__(self, choice: QAbstractButton, words: str) -> None:
        super().__init__()
        self._choice = choice
        choice.setAccessibleName(words)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(SPACE_XS)
        row.addWidget(choice, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(label(words, wrap=True), 1)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Of what is around the button; its own it takes itself."""
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self._choice.setFocus(Qt.FocusReason.MouseFocusReason)
            self._choice.click()
