"""A small editor for words that are given at once: an answer, another wording."""

import math

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent, QShowEvent
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from ui.look.theme import SPACE_S, SPACE_XS


class SmallTextEdit(QPlainTextEdit):
    """Enter gives the words, Shift+Enter makes a new line. Tab and Escape are for what it stands in."""

    given = Signal()

    def __init__(self, name: str, lines: int, parent: QWidget | None = None) -> None:
        """`name` is the accessible one; so many lines are seen."""
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setTabChangesFocus(True)
        self._lines = lines
        self.setFixedHeight(self.fontMetrics().lineSpacing() * lines + 2 * SPACE_S)

    def changeEvent(self, e: QEvent) -> None:
        """Another font or style."""
        super().changeEvent(e)
        if e.type() in {QEvent.Type.FontChange, QEvent.Type.StyleChange} and self.isVisible():
            self._fit()

    def showEvent(self, e: QShowEvent) -> None:
        """The style has the last word about its frame."""
        super().showEvent(e)
        self._fit()

    def _fit(self) -> None:
        frame = self.height() - self.viewport().height()
        margins = 2 * math.ceil(self.document().documentMargin())
        self.setFixedHeight(self.fontMetrics().lineSpacing() * self._lines + margins + frame + SPACE_XS)

    def keyPressEvent(self, e: QKeyEvent) -> None:
        """Enter and Escape."""
        if e.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            if e.modifiers() & Qt.KeyboardModifier.ShiftModifier:
                self.insertPlainText("\n")
            else:
                self.given.emit()
        elif e.key() == Qt.Key.Key_Escape:
            e.ignore()
        else:
            super().keyPressEvent(e)
