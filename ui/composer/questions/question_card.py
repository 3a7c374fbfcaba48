"""What the agent asks, above the composer: never in the way, answered by keys."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from ui.bridge.conduct.conduct import OpenQuestion
from ui.composer.questions.answer_choices import AnswerChoices
from ui.look.controls import announce, button, label
from ui.look.theme import SPACE_M, SPACE_S, ThemeSource

KEYS = "Ctrl+J"
MOST_HEIGHT = 280


class QuestionCard(QFrame):
    """Shows the oldest question that waits, and how many follow. Hidden while none waits.

    A number takes the choice of that number, Enter answers. It takes no focus by itself: who is writing goes on.
    """

    answered = Signal(str, list)
    """A question's id, and the answer: choices, then words of the person's own."""
    skipped = Signal(str)

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._question: OpenQuestion | None = None
        self._choices: AnswerChoices | None = None
        self._title = label(kind="small")
        self._words = label(wrap=True)
        self._inside = QWidget()
        self._column = QVBoxLayout(self._inside)
        self._scroll = QScrollArea()
        self._hint = label(kind="small")
        self._answer = button(self.tr("Answer"), self._give, "primary")
        self._skip = button(self.tr("Skip"), self._leave)
        self._build()
        self.hide()

    @property
    def question(self) -> OpenQuestion | None:
        """The one that is shown."""
        return self._question

    def show_questions(self, questions: Sequence[OpenQuestion]) -> None:
        """These wait, oldest first."""
        first = questions[0] if questions else None
        if first is not None:
            more = len(questions) - 1
            words = self.tr("The agent asks ({0} more wait)").format(more) if more else self.tr("The agent asks")
            self._title.setText(words)
        if first == self._question:
            return
        focused = QApplication.focusWidget()
        had_focus = focused is not None and self.isAncestorOf(focused)
        self._question = first
        self._take_away()
        if first is not None:
            self._show(first)
        self.setVisible(first is not None)
        if first is not None and had_focus:
            self.take_focus()

    def take_focus(self) -> None:
        """The person wants to answer."""
        if self._choices is not None:
            self._choices.first.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Numbers and Enter."""
        place = event.key() - Qt.Key.Key_1
        if self._choices is not None and 0 <= place < 9 and self._choices.choose(place):
            return
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self._give()
        else:
            super().keyPressEvent(event)

    def _show(self, question: OpenQuestion) -> None:
        self._words.setText(question.question)
        self._words.setAccessibleName(question.question)
        self._choices = AnswerChoices(question)
        self._choices.changed.connect(self._refresh)
        self._choices.given.connect(self._give)
        self._column.addWidget(self._choices)
        # What a layout shows later takes no focus now.
        self._choices.show()
        numbers = self.tr("Numbers choose, Enter answers. {0} comes here.")
        self._hint.setText((numbers if question.choices else self.tr("Enter answers. {0} comes here.")).format(KEYS))
        self._refresh()
        self._fit()
        announce(self, self.tr("The agent asks: {0}").format(question.question))

    def _take_away(self) -> None:
        if self._choices is not None:
            self._column.removeWidget(self._choices)
            self._choices.hide()
            self._choices.deleteLater()
            self._choices = None

    def _refresh(self) -> None:
        self._answer.setEnabled(self._choices is not None and bool(self._choices.answer))

    def _give(self) -> None:
        if self._question is not None and self._choices is not None and self._choices.answer:
            self.answered.emit(self._question.id, list(self._choices.answer))

    def _leave(self) -> None:
        if self._question is not None:
            self.skipped.emit(self._question.id)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Other lines, another height."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        width = max(self._scroll.viewport().width(), 1)
        wanted = self._column.heightForWidth(width) if self._column.hasHeightForWidth() else -1
        height = max(wanted, self._column.minimumSize().height()) if wanted > 0 else self._inside.sizeHint().height()
        self._scroll.setFixedHeight(min(height, MOST_HEIGHT * self._themes.zoom // 100))

    def _build(self) -> None:
        self.setProperty("kind", "card")
        self.setAccessibleName(self.tr("Question of the agent"))
        self._words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(SPACE_S)
        self._column.addWidget(self._words)
        self._scroll.setWidget(self._inside)
        self._scroll.setWidgetResizable(True)
        self._scroll.setFrameShape(QFrame.Shape.NoFrame)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._inside.setAutoFillBackground(False)
        self._scroll.viewport().setAutoFillBackground(False)
        self._skip.setToolTip(self.tr("The agent goes on without an answer."))
        self._answer.setToolTip(self.tr("Answer") + " (Enter)")
        head = QHBoxLayout()
        head.addWidget(self._title, 1)
        foot = QHBoxLayout()
        foot.setSpacing(SPACE_S)
        foot.addWidget(self._hint, 1)
        foot.addWidget(self._skip)
        foot.addWidget(self._answer)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_M, SPACE_S, SPACE_M, SPACE_M)
        layout.setSpacing(SPACE_S)
        layout.addLayout(head)
        layout.addWidget(self._scroll)
        layout.addLayout(foot)
