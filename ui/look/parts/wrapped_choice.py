"""A check box or a radio button beside words that take more lines where there is no room."""

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QWidget

from ui.look.controls import label


class WrappedChoice(QWidget):
    """The button itself has no words; a press on them is a press on it, and they are what it is called."""

    def __init__(self, choice: QAbstractButton, words: str) -> None:
        super().__init__()
        self._choice = choice
        choice.setAccessibleName(words)
        choice.setProperty("beside", "true")
        self._words = label(words, wrap=True)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(choice, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self._words, 1, Qt.AlignmentFlag.AlignTop)

    @property
    def words(self) -> str:
        """What stands beside the button."""
        return self._words.text()

    def event(self, event: QEvent) -> bool:
        """Another look, another height of the button."""
        if event.type() in {QEvent.Type.LayoutRequest, QEvent.Type.Show}:
            self._align_first_line()
        return super().event(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Of what is around the button; its own it takes itself."""
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self._choice.setFocus(Qt.FocusReason.MouseFocusReason)
            self._choice.click()

    def _align_first_line(self) -> None:
        """The first line stands beside the middle of the button."""
        above = max(self._choice.sizeHint().height() - self._words.fontMetrics().height(), 0) // 2
        self._words.setContentsMargins(0, above, 0, above)
