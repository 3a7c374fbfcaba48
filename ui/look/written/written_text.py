"""Code, paths or JSON in a field, in the order in which they are written."""

from PySide6.QtCore import QMimeData
from PySide6.QtWidgets import QPlainTextEdit

from ui.look.written.order import in_written_order, without_order_marks


class WrittenText(QPlainTextEdit):
    """What is copied or dragged out of it has no marks of the order."""

    @property
    def text(self) -> str:
        """What stands there, without marks."""
        return without_order_marks(self.toPlainText())

    def show_in_order(self, text: str) -> None:
        """Show this."""
        self.setPlainText(in_written_order(text))

    def createMimeDataFromSelection(self) -> QMimeData:
        """Qt's own, in plain text."""
        made = QMimeData()
        made.setText(without_order_marks(self.textCursor().selection().toPlainText()))
        return made
