"""The buttons under a question of a server."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from ui.approval.parts.key_guard import ShortcutBar
from ui.look.controls import label
from ui.look.parts.words_and_buttons import TextWithButtons
from ui.look.theme import SPACE_S, ThemeSource


class AnswerBar(ShortcutBar):
    """Yes and no. Each question that waits has its own."""

    yes_pressed = Signal()
    no_pressed = Signal()

    def __init__(self, themes: ThemeSource, input_delay_ms: int, yes: tuple[str, str], no: tuple[str, str]) -> None:
        super().__init__(themes, input_delay_ms)
        self._can_accept = True
        self._hint: QLabel = label(kind="small", wrap=True)
        self._no = self._create_button(*no, "danger", self._emit_no)
        self._yes = self._create_button(*yes, "primary", self._emit_yes)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        layout.addWidget(self._typing_hint)
        layout.addWidget(TextWithButtons(self._hint, (self._no, self._yes)))

    @property
    def last_in_tab_order(self) -> QWidget:
        """Where the keyboard leaves it."""
        return self._yes

    def set_can_accept(self, can: bool, hint: str = "") -> None:  # noqa: FBT001  # a setter, like Qt's own
        """Whether it can be agreed to as it stands, and what is missing where not."""
        self._can_accept = can
        self._hint.setText(hint or self.tr("Esc closes without an answer."))
        self._refresh()

    def _emit_yes(self) -> None:
        if not self.is_input_delayed and self._can_accept:
            self.yes_pressed.emit()

    def _emit_no(self) -> None:
        if not self.is_input_delayed:
            self.no_pressed.emit()

    def _refresh(self) -> None:
        ready = not self.is_input_delayed
        self._yes.setEnabled(ready and self._can_accept)
        self._no.setEnabled(ready)
