"""The choices of a question, and a place for words of the person's own."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QButtonGroup,
    QCheckBox,
    QPlainTextEdit,
    QRadioButton,
    QVBoxLayout,
    QWidget,
)

from ui.bridge.conduct.conduct import OpenQuestion
from ui.look.sentences import literal
from ui.look.theme import SPACE_S, SPACE_XS

EDITOR_LINES = 2


class OwnWords(QPlainTextEdit):
    """An answer in the person's own words. Enter gives it, Shift+Enter makes a new line."""

    given = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Answer in your own words"))
        self.setPlaceholderText(self.tr("Answer in your own words"))
        self.setTabChangesFocus(True)
        self.setFixedHeight(self.fontMetrics().lineSpacing() * EDITOR_LINES + 2 * SPACE_S)

    def keyPressEvent(self, e: QKeyEvent) -> None:
        """Enter."""
        if e.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            if e.modifiers() & Qt.KeyboardModifier.ShiftModifier:
                self.insertPlainText("\n")
            else:
                self.given.emit()
        elif e.key() == Qt.Key.Key_Escape:
            e.ignore()
        else:
            super().keyPressEvent(e)


class AnswerChoices(QWidget):
    """One answer, or several. Where one is taken, own words and a choice put each other out."""

    changed = Signal()
    given = Signal()
    """Enter was pressed."""

    def __init__(self, question: OpenQuestion, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._question = question
        self._group = QButtonGroup(self)
        self._group.setExclusive(False)
        self._boxes: list[QAbstractButton] = []
        self._own = OwnWords() if question.free_text else None
        layout = QVBoxLayout(self)
        # The boxes reach that far out of their places, with the frame that shows the focus.
        layout.setContentsMargins(SPACE_XS, 0, 0, 0)
        layout.setSpacing(SPACE_XS)
        for choice in question.choices:
            box = QCheckBox(literal(choice)) if question.several else QRadioButton(literal(choice))
            box.setAccessibleName(choice)
            self._group.addButton(box)
            self._boxes.append(box)
            layout.addWidget(box)
            box.toggled.connect(self._on_chosen)
        self._group.setExclusive(not question.several)
        if self._own is not None:
            layout.addWidget(self._own)
            self._own.textChanged.connect(self._on_written)
            self._own.given.connect(self.given)

    @property
    def answer(self) -> Sequence[str]:
        """What is chosen and written; nothing yet where that is empty."""
        chosen = [choice for choice, box in zip(self._question.choices, self._boxes, strict=True) if box.isChecked()]
        own = self._own.toPlainText().strip() if self._own is not None else ""
        return [*chosen, own] if own else chosen

    @property
    def first(self) -> QWidget:
        """Where the keyboard begins."""
        return self._boxes[0] if self._boxes else self._own or self

    def choose(self, place: int) -> bool:
        """The choice with this number, counted from 0, or not any more; False where there is none."""
        if not 0 <= place < len(self._boxes):
            return False
        box = self._boxes[place]
        box.setFocus(Qt.FocusReason.ShortcutFocusReason)
        box.click()
        return True

    def _on_chosen(self, chosen: bool) -> None:  # noqa: FBT001 - a slot
        if chosen and not self._question.several and self._own is not None:
            self._own.clear()
        self.changed.emit()

    def _on_written(self) -> None:
        if self._own is not None and self._own.toPlainText() and not self._question.several:
            self._group.setExclusive(False)
            for box in self._boxes:
                box.setChecked(False)
            self._group.setExclusive(True)
        self.changed.emit()
