"""A read-only field for text from outside, as high as its lines."""

from math import ceil

from PySide6.QtCore import Qt
from PySide6.QtGui import QInputMethodEvent

from ui.style.controls import AutoHeightText
from ui.style.text import show_hidden

_FRAME_HEIGHT = 12
"""Pixels of the border and the padding, above and below together."""


class ReadOnlyText(AutoHeightText):
    """Plain text of at most `most_lines` visible lines; a longer one scrolls. Hidden characters can be seen."""

    def __init__(self, text: str, name: str, most_lines: int = 6) -> None:
        """`name` is the accessible one."""
        super().__init__(most_lines)
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setTabChangesFocus(True)
        self.setProperty("kind", "code")
        self.setAccessibleName(name)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.show_text(text)

    def show_text(self, text: str) -> None:
        """Show another text. The same one keeps its selection."""
        shown = show_hidden(text)
        if shown != self.toPlainText():
            self.setPlainText(shown)
        self.fit_height()

    def inputMethodEvent(self, e: QInputMethodEvent) -> None:
        """Ignore it: Qt would insert text that was composed in another field and comes late."""
        e.ignore()

    def height_for(self, lines: int) -> int:
        """Return the height for this many visible lines, in pixels."""
        self.blockBoundingRect(self.document().firstBlock())  # lays it out
        first = self.document().firstBlock().layout().lineAt(0)
        # In a layout, a line is higher than the line spacing of the font.
        line = ceil(first.height()) if first.isValid() else self.fontMetrics().lineSpacing()
        return lines * line + 2 * round(self.document().documentMargin()) + _FRAME_HEIGHT
