"""A text from outside, all of it, to be read and copied and not changed."""

from math import ceil

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent, QTextOption
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from ui.look.theme import SPACE_S
from ui.look.visible_text import show_hidden

_FRAME = 2


class ReadOnlyText(QPlainTextEdit):
    """As high as its text, up to `most_lines`; what is longer is scrolled. Hidden characters can be seen."""

    def __init__(self, text: str, name: str, most_lines: int = 6, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._most_lines = most_lines
        self.setReadOnly(True)
        self.setTabChangesFocus(True)
        self.setProperty("kind", "code")
        self.setAccessibleName(name)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.show_text(text)

    def show_text(self, text: str) -> None:
        """Another text."""
        shown = show_hidden(text)
        if shown != self.toPlainText():
            self.setPlainText(shown)
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another width has other lines."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        # Its layout counts in lines, not in pixels.
        lines = max(1, round(self.document().documentLayout().documentSize().height()))
        first = self.firstVisibleBlock()
        line = (
            ceil(first.layout().lineAt(0).height()) if first.layout().lineCount() else self.fontMetrics().lineSpacing()
        )
        margins = 2 * (round(self.document().documentMargin()) + _FRAME) + SPACE_S
        fits = lines <= self._most_lines
        policy = Qt.ScrollBarPolicy.ScrollBarAlwaysOff if fits else Qt.ScrollBarPolicy.ScrollBarAsNeeded
        self.setVerticalScrollBarPolicy(policy)
        self.setFixedHeight(min(lines, self._most_lines) * line + margins)
