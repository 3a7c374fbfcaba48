"""The buttons under a question of a server."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from ui.approval.parts.key_guard import KeyBar
from ui.look.controls import label
from ui.look.parts.words_and_buttons import WordsAndButtons
from ui.look.theme import SPACE_S, ThemeSource


class AnswerBar(KeyBar):
    """Yes and no. Each question that waits has its own."""

    yes_pressed = Signal()
    no_pressed = Signal()

    def __init__(self, themes: ThemeSource, settle_ms: int, yes: tuple[str, str], no: tuple[str, str]) -> None:
        super().__init__(themes, settle_ms)
        self._can_say_yes = True
        self._hint: QLabel = label(kind="small", wrap=True)
        self._no = self._command(*no, "danger", self._say_no)
        self._yes = self._command(*yes, "primary", self._say_yes)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        layout.addWidget(self._writing)
        layout.addWidget(WordsAndButtons(self._hint, (self._no, self._yes)))

    @property
    def last(self) -> QWidget:
        """Where the keyboard leaves it."""
        return self._yes

    def set_can_say_yes(self, can: bool, hint: str = "") -> None:  # noqa: FBT001  # a setter, like Qt's own
        """Whether it can be agreed to as it stands, and what is missing where not."""
        self._can_say_yes = can
        self._hint.setText(hint or self.tr("Esc closes without an answer."))
        self._refresh()

    def _say_yes(self) -> None:
        if not self.is_resting and self._can_say_yes:
            self.yes_pressed.emit()

    def _say_no(self) -> None:
        if not self.is_resting:
            self.no_pressed.emit()

    def _refresh(self) -> None:
        ready = not self.is_resting
        self._yes.setEnabled(ready and self._can_say_yes)
        self._no.setEnabled(ready)
