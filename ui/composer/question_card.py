"""The card above the composer with a question of the agent, its choices and a field for a custom answer."""

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractButton, QApplication, QButtonGroup, QCheckBox, QFrame, QRadioButton, QWidget

from desktop_agent.types.engine_events import QuestionAsked
from ui.style.boxes import vbox
from ui.style.controls import announce, button, label, set_keys_tooltip
from ui.style.layouts import ScrollColumn
from ui.style.removal import remove_widget
from ui.style.text import native_shortcut, writes_text
from ui.style.theme import SPACE_M, SPACE_S, SPACE_XS, ThemeSource
from ui.style.widgets import SmallTextEdit, TextWithButtons, WrappedChoice

EDITOR_LINES = 2
MAX_NUMBERED = 9
"""Choices that have a key: its digit."""


class AnswerChoices(QWidget):
    """The choices of a question and a field. With one answer allowed, text and choice exclude each other."""

    changed = Signal()
    submitted = Signal()
    """Enter was pressed."""

    def __init__(self, question: QuestionAsked) -> None:
        super().__init__()
        self._question = question
        self._group = QButtonGroup(self)
        self._group.setExclusive(False)
        self._boxes: list[QAbstractButton] = []
        self._custom_field = (
            SmallTextEdit(self.tr("Answer in your own words"), EDITOR_LINES) if question.free_text else None
        )
        layout = vbox(parent=self, spacing=SPACE_XS, margins=0)
        for index, choice in enumerate(question.choices):
            box = QCheckBox() if question.several else QRadioButton()
            if not question.several:
                # In a group, Tab stops at one box only: check boxes would be out of reach of the keyboard.
                self._group.addButton(box)
            self._boxes.append(box)
            layout.addWidget(self._create_choice(box, index, choice))
            box.toggled.connect(self._on_choice_toggled)
        self._group.setExclusive(not question.several)
        if self._custom_field is not None:
            self._custom_field.setPlaceholderText(self._custom_field.accessibleName())
            layout.addWidget(self._custom_field)
            self._custom_field.textChanged.connect(self._on_custom_edited)
            self._custom_field.given.connect(self.submitted)

    @property
    def answer(self) -> Sequence[str]:
        """Return the selected choices and the text; empty without an answer."""
        answers = [choice for choice, box in zip(self._question.choices, self._boxes, strict=True) if box.isChecked()]
        custom = self.custom_answer
        return [*answers, custom] if custom else answers

    @property
    def custom_answer(self) -> str:
        return self._custom_field.toPlainText().strip() if self._custom_field is not None else ""

    def clear_custom_answer(self) -> None:
        """Clear the field."""
        if self._custom_field is not None:
            self._custom_field.clear()

    def write_custom(self, event: QKeyEvent) -> bool:
        """Pass a key that was pressed at a choice to the field; return False if it writes nothing or none exists."""
        if self._custom_field is None or self._custom_field.hasFocus() or not writes_text(event):
            return False
        self._custom_field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        QCoreApplication.sendEvent(self._custom_field, event)
        return True

    @property
    def accepts_numbers(self) -> bool:
        """Whether a digit selects a choice now, rather than being typed."""
        return bool(self._boxes) and (self._custom_field is None or not self._custom_field.hasFocus())

    @property
    def initial_focus(self) -> QWidget:
        return self._boxes[0] if self._boxes else self._custom_field or self

    def toggle_choice(self, index: int) -> bool:
        """Toggle the choice at an index from 0; return False where there is none."""
        if not 0 <= index < min(len(self._boxes), MAX_NUMBERED):
            return False
        box = self._boxes[index]
        box.setFocus(Qt.FocusReason.ShortcutFocusReason)
        box.click()
        return True

    def _create_choice(self, box: QAbstractButton, index: int, choice: str) -> QWidget:
        if index >= MAX_NUMBERED:
            return WrappedChoice(box, choice)
        row = WrappedChoice(box, self.tr("{0}. {1}").format(index + 1, choice))
        # Without the number, which is in the description.
        box.setAccessibleName(choice)
        box.setAccessibleDescription(self.tr("Key {0}").format(index + 1))
        return row

    def _on_choice_toggled(self, is_checked: bool) -> None:  # noqa: FBT001 - a slot
        if is_checked and not self._question.several:
            self.clear_custom_answer()
        self.changed.emit()

    def _on_custom_edited(self) -> None:
        if self._custom_field is not None and self._custom_field.toPlainText() and not self._question.several:
            self._group.setExclusive(False)
            for box in self._boxes:
                box.setChecked(False)
            self._group.setExclusive(True)
        self.changed.emit()


QUESTION_KEYS = "Ctrl+J"
MAX_CARD_HEIGHT = 280


class QuestionCard(QFrame):
    """Shows the oldest waiting question, and how many follow. Hidden without one.

    Digits select choices, Enter answers. It does not take the focus by itself: the person may be typing.
    """

    answered = Signal(str, list)
    """A question's id, and the answer: choices, then the custom text."""
    skipped = Signal(str)
    edited = Signal()
    draft_returned = Signal(str)
    """The text of an answer that was not given."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self.question: QuestionAsked | None = None
        self._choices: AnswerChoices | None = None
        self._keys = QUESTION_KEYS
        self._is_answering = False
        """Whether an answer is being emitted: if it is accepted, the card is hidden before the signal returns."""
        self._title = label(kind="small")
        self._words = label(wrap=True)
        self._scroll = ScrollColumn(SPACE_S, most=lambda: themes.scaled(MAX_CARD_HEIGHT))
        self._hint = label(kind="small", wrap=True)
        self._answer = button(self.tr("Answer"), self._submit, "primary")
        self._skip = button(self.tr("Skip"), self._skip_question)
        self._build_layout()
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.focusChanged.connect(self._update_hint)
        self.hide()

    def show_questions(self, questions: Sequence[QuestionAsked]) -> None:
        """Show the waiting questions, oldest first."""
        first = questions[0] if questions else None
        if first is not None:
            self._title.setText(self._title_text(len(questions) - 1))
        if first == self.question:
            return
        focused = QApplication.focusWidget()
        had_focus = focused is not None and self.isAncestorOf(focused)
        self.question = first
        self._remove_choices()
        if first is not None:
            self._show_question(first)
        self.setVisible(first is not None)
        if first is not None and had_focus:
            self.take_focus()

    @property
    def custom_answer(self) -> str:
        return "" if self._choices is None else self._choices.custom_answer

    def return_draft(self) -> None:
        """Clear the field and emit its text."""
        words = self.custom_answer
        if words and self._choices is not None:
            self._choices.clear_custom_answer()
            self.draft_returned.emit(words)

    def show_keys(self, keys: str) -> None:
        """Show the keys that lead to the card."""
        self._keys = keys
        self._update_hint(None, QApplication.focusWidget())

    def take_focus(self) -> None:
        """Focus the first choice."""
        if self._choices is not None:
            self._choices.initial_focus.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._choices is not None and self._choices.toggle_choice(event.key() - Qt.Key.Key_1):
            return
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self._submit()
        elif self._choices is None or not self._choices.write_custom(event):
            super().keyPressEvent(event)

    def _show_question(self, question: QuestionAsked) -> None:
        self._words.setText(question.question)
        self._words.setAccessibleName(question.question)
        self._choices = AnswerChoices(question)
        self._choices.changed.connect(self._refresh)
        self._choices.submitted.connect(self._submit)
        self._scroll.column.addWidget(self._choices)
        # A layout shows it later, and what is hidden takes no focus now.
        self._choices.show()
        self._refresh()
        self._update_hint(None, QApplication.focusWidget())
        announce(self, self.tr("The agent asks: {0}").format(question.question))

    def _title_text(self, more: int) -> str:
        """Return the title; `more` questions wait behind this one."""
        if more < 2:
            return self.tr("The agent asks (1 more waits)") if more else self.tr("The agent asks")
        return self.tr("The agent asks (%n more wait)", "", more)

    def _update_hint(self, _before: QWidget | None, focused: QWidget | None) -> None:
        """Explain the keys of the card while it has the focus, else how to get there."""
        if self._choices is None:
            return
        if focused is None or not self.isAncestorOf(focused):
            keys = native_shortcut(self._keys)
            words = self.tr("To answer with the keyboard, press {0}.").format(keys) if keys else ""
        elif self._choices.accepts_numbers:
            words = self.tr("Press a number to choose, Enter to answer.")
        else:
            words = self.tr("Press Enter to answer.")
        self._hint.setText(words)

    def _remove_choices(self) -> None:
        if not self._is_answering:
            self.return_draft()
        if self._choices is not None:
            remove_widget(self._scroll.column, self._choices)
            self._choices = None
            self.edited.emit()

    def _refresh(self) -> None:
        self._answer.setEnabled(self._choices is not None and bool(self._choices.answer))
        self.edited.emit()

    def _submit(self) -> None:
        if self.question is not None and self._choices is not None and self._choices.answer:
            self._is_answering = True
            self.answered.emit(self.question.question_id, list(self._choices.answer))
            self._is_answering = False

    def _skip_question(self) -> None:
        if self.question is not None:
            self.skipped.emit(self.question.question_id)

    def _build_layout(self) -> None:
        self.setProperty("kind", "card")
        self.setAccessibleName(self.tr("Question of the agent"))
        self._words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._scroll.column.addWidget(self._words)
        self._skip.setToolTip(self.tr("The agent goes on without an answer."))
        set_keys_tooltip(self._answer, self.tr("Answer"), "Enter")
        foot = TextWithButtons(self._hint, (self._skip, self._answer))
        vbox(
            self._title, self._scroll, foot, parent=self, spacing=SPACE_S, margins=(SPACE_M, SPACE_S, SPACE_M, SPACE_M)
        )
