"""The buttons under a question of a server, and the moment of rest before they can be used."""

from collections.abc import Callable

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from ui.approval.decision_bar import KeyButton
from ui.look.controls import ButtonKind, label
from ui.look.theme import SPACE_S, ThemeSource


class AnswerBar(QWidget):
    """Yes and no, each with a key. What was on its way when the question appeared answers nothing."""

    yes_pressed = Signal()
    no_pressed = Signal()
    rested = Signal()

    def __init__(self, themes: ThemeSource, settle_ms: int, yes: tuple[str, str], no: tuple[str, str]) -> None:
        super().__init__()
        self._can_say_yes = True
        self._rest = QTimer(self, singleShot=True, interval=settle_ms)
        self._rest.timeout.connect(self._on_rested)
        self._hint: QLabel = label(kind="small", wrap=True)
        self._no = self._command(themes, *no, "danger", self._say_no)
        self._yes = self._command(themes, *yes, "primary", self._say_yes)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        layout.addWidget(self._hint, 1)
        layout.addWidget(self._no)
        layout.addWidget(self._yes)

    @property
    def is_resting(self) -> bool:
        """Whether nothing can be answered yet."""
        return self._rest.isActive()

    def settle(self) -> None:
        """The question has only just appeared."""
        self._rest.start()
        self._refresh()

    def still_arriving(self) -> None:
        """A key or click came while resting: more may be on its way."""
        if self.is_resting:
            self._rest.start()

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

    def _on_rested(self) -> None:
        self._refresh()
        self.rested.emit()

    def _refresh(self) -> None:
        ready = not self.is_resting
        self._yes.setEnabled(ready and self._can_say_yes)
        self._no.setEnabled(ready)

    def _command(
        self, themes: ThemeSource, text: str, key: str, kind: ButtonKind, command: Callable[[], None]
    ) -> KeyButton:
        made = KeyButton(themes, text, key, kind)
        made.clicked.connect(command)
        # Of the page and not of the window: each question that waits has its own. Two keys are called Enter.
        for each in {key, key.replace("Enter", "Return")}:
            QShortcut(QKeySequence(each), self, autoRepeat=False).activated.connect(command)
        return made
