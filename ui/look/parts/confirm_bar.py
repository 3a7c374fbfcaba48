"""Is this really to go? Asked in place."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from ui.look.controls import announce, button, label
from ui.look.parts.words_and_buttons import TextWithButtons
from ui.look.theme import SPACE_S


class ConfirmBar(QFrame):
    """A question, a button that keeps everything and one that does not. Escape keeps it. Hidden until it asks."""

    confirmed = Signal()
    declined = Signal()

    def __init__(self, keep: tuple[str, str], confirm: tuple[str, str], parent: QWidget | None = None) -> None:
        """Of each button the text and the accessible name."""
        super().__init__(parent)
        self.setProperty("kind", "banner")
        self.setProperty("level", "notice")
        self._words = label(wrap=True)
        self._keep = button(keep[0], self.declined.emit, name=keep[1])
        really = button(confirm[0], self.confirmed.emit, "danger", confirm[1])
        row = QHBoxLayout(self)
        row.setContentsMargins(SPACE_S, SPACE_S, SPACE_S, SPACE_S)
        row.addWidget(TextWithButtons(self._words, (self._keep, really)))
        self.hide()

    def ask(self, words: str) -> None:
        """Show this question."""
        self._words.setText(words)
        self.show()
        announce(self, words)
        self._keep.setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape keeps it, and only that."""
        if event.key() == Qt.Key.Key_Escape:
            self.declined.emit()
        else:
            super().keyPressEvent(event)
