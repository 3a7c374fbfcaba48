"""The choices of a question, and a place for words of the person's own."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QAbstractButton,
    QButtonGroup,
    QCheckBox,
    QRadioButton,
    QVBoxLayout,
    QWidget,
)

from ui.bridge.conduct.conduct import OpenQuestion
from ui.look.parts.few_lines import SmallTextEdit
from ui.look.parts.wrapped_choice import WrappedChoice
from ui.look.theme import SPACE_XS

EDITOR_LINES = 2
MAX_NUMBERED = 9
"""Choices that have a key: its digit."""


class AnswerChoices(QWidget):
    """One answer, or several. Where one is taken, own words and a choice put each other out."""

    changed = Signal()
    submitted = Signal()
    """Enter was pressed."""

    def __init__(self, question: OpenQuestion, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._question = question
        self._group = QButtonGroup(self)
        self._group.setExclusive(False)
        self._boxes: list[QAbstractButton] = []
        self._custom_field = (
            SmallTextEdit(self.tr("Answer in your own words"), EDITOR_LINES) if question.free_text else None
        )
        layout = QVBoxLayout(self)
        # The boxes reach that far out of their places, with the frame that shows the focus.
        layout.setContentsMargins(SPACE_XS, 0, 0, 0)
        layout.setSpacing(SPACE_XS)
        for at, choice in enumerate(question.choices):
            box = QCheckBox() if question.several else QRadioButton()
            self._group.addButton(box)
            self._boxes.append(box)
            layout.addWidget(self._create_choice(box, at, choice))
            box.toggled.connect(self._on_choice_toggled)
        self._group.setExclusive(not question.several)
        if self._custom_field is not None:
            self._custom_field.setPlaceholderText(self._custom_field.accessibleName())
            layout.addWidget(self._custom_field)
            self._custom_field.textChanged.connect(self._on_custom_edited)
            self._custom_field.given.connect(self.submitted)

    @property
    def answer(self) -> Sequence[str]:
        """What is chosen and written; nothing yet where that is empty."""
        chosen = [choice for choice, box in zip(self._question.choices, self._boxes, strict=True) if box.isChecked()]
        own = self.custom_answer
        return [*chosen, own] if own else chosen

    @property
    def custom_answer(self) -> str:
        """What is written of the person's own."""
        return self._custom_field.toPlainText().strip() if self._custom_field is not None else ""

    def clear_custom_answer(self) -> None:
        """Begin anew to write."""
        if self._custom_field is not None:
            self._custom_field.clear()

    @property
    def accepts_numbers(self) -> bool:
        """Whether a digit chooses now, and is not written."""
        return bool(self._boxes) and (self._custom_field is None or not self._custom_field.hasFocus())

    @property
    def initial_focus(self) -> QWidget:
        """Where the keyboard begins."""
        return self._boxes[0] if self._boxes else self._custom_field or self

    def toggle_choice(self, place: int) -> bool:
        """The choice with this number, counted from 0, or not any more; False where there is none."""
        if not 0 <= place < min(len(self._boxes), MAX_NUMBERED):
            return False
        box = self._boxes[place]
        box.setFocus(Qt.FocusReason.ShortcutFocusReason)
        box.click()
        return True

    def _create_choice(self, box: QAbstractButton, at: int, choice: str) -> QWidget:
        if at >= MAX_NUMBERED:
            return WrappedChoice(box, choice)
        worded = WrappedChoice(box, self.tr("{0}. {1}").format(at + 1, choice))
        # As the agent gave it: the number is said after it.
        box.setAccessibleName(choice)
        box.setAccessibleDescription(self.tr("Key {0}").format(at + 1))
        return worded

    def _on_choice_toggled(self, chosen: bool) -> None:  # noqa: FBT001 - a slot
        if chosen and not self._question.several:
            self.clear_custom_answer()
        self.changed.emit()

    def _on_custom_edited(self) -> None:
        if self._custom_field is not None and self._custom_field.toPlainText() and not self._question.several:
            self._group.setExclusive(False)
            for box in self._boxes:
                box.setChecked(False)
            self._group.setExclusive(True)
        self.changed.emit()
