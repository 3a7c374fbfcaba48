"""Words from outside in a frame of their own: all of them, as they are."""

from math import ceil

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from ui.approval.visible_text import fold_lines
from ui.look.visible_text import show_hidden

_FRAME_HEIGHT = 12


class ServerText(QPlainTextEdit):
    """Read-only and plain, as high as its lines up to a bound; the rest scrolls. Hidden characters can be seen."""

    def __init__(self, name: str, most_lines: int = 8, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._most_lines = most_lines
        self.setAccessibleName(name)
        self.setReadOnly(True)
        self.setProperty("kind", "code")
        self.setUndoRedoEnabled(False)
        self.setTabChangesFocus(True)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def show_text(self, words: str) -> None:
        """These."""
        self.setPlainText(fold_lines(show_hidden(words)))
        self._fit()

    def resizeEvent(self, e: QResizeEvent) -> None:
        """Other lines, another height."""
        super().resizeEvent(e)
        self._fit()

    def _fit(self) -> None:
        # The plain-text layout measures in lines (QPlainTextDocumentLayout::documentSize).
        lines = max(round(self.document().size().height()), 1)
        self.blockBoundingRect(self.document().firstBlock())  # lays it out
        first = self.document().firstBlock().layout().lineAt(0)
        # What a layout gives a line is more than the distance that the font names.
        line = ceil(first.height()) if first.isValid() else self.fontMetrics().lineSpacing()
        always, never = Qt.ScrollBarPolicy.ScrollBarAsNeeded, Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        self.setVerticalScrollBarPolicy(always if lines > self._most_lines else never)
        self.setFixedHeight(
            min(lines, self._most_lines) * line + 2 * round(self.document().documentMargin()) + _FRAME_HEIGHT
        )
