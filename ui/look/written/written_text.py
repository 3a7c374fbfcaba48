"""Code, paths or JSON in a field, in the order in which they are written."""

from PySide6.QtCore import QMimeData
from PySide6.QtWidgets import QPlainTextEdit

from ui.look.written.order import in_logical_order, strip_bidi_marks


class LogicalOrderText(QPlainTextEdit):
    """What is copied or dragged out of it has no marks of the order."""

    @property
    def text(self) -> str:
        """What stands there, without marks."""
        return strip_bidi_marks(self.toPlainText())

    def set_text(self, text: str) -> None:
        """Show this."""
        self.setPlainText(in_logical_order(text))

    def createMimeDataFromSelection(self) -> QMimeData:
        """Qt's own, in plain text."""
        made = QMimeData()
        made.setText(strip_bidi_marks(self.textCursor().selection().toPlainText()))
        return made
