"""What the agent asks for: another mode, with the two things that can be said to it."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from desktop_agent.vocabulary.conduct.modes import Mode
from ui.look.controls import announce, button, label
from ui.look.parts.mode_words import mode_title
from ui.look.theme import SPACE_M, SPACE_S


class ModeRequestBar(QFrame):
    """Hidden while the agent asks for nothing."""

    accepted = Signal(str)
    """The mode's name."""
    refused = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._wish = ""
        self._words = label(wrap=True)
        self._now = button("", lambda: self.accepted.emit(self._wish))
        self._keep = button("", self.refused.emit)
        self.setProperty("kind", "card")
        self.setAccessibleName(self.tr("The agent asks for another mode"))
        row = QHBoxLayout(self)
        row.setContentsMargins(SPACE_M, SPACE_S, SPACE_M, SPACE_S)
        row.setSpacing(SPACE_S)
        row.addWidget(self._words, 1)
        row.addWidget(self._now)
        row.addWidget(self._keep)
        self.hide()

    def show_request(self, requested: Mode | None, current: Mode) -> None:
        """The mode that is asked for, if one is, and the one that holds."""
        wish = requested.name if requested is not None else ""
        is_new = bool(wish) and wish != self._wish
        self._wish = wish
        if requested is not None:
            words = self.tr("The agent asks for the mode “{0}”. It changes at its next step unless you object.")
            self._words.setText(words.format(mode_title(requested)))
            for each, text in ((self._now, self.tr("Change now")), (self._keep, self._keep_words(current))):
                each.setText(text.replace("&", "&&"))
                each.setAccessibleName(text)
        self.setVisible(bool(wish))
        if is_new:
            announce(self, self._words.text())

    def _keep_words(self, current: Mode) -> str:
        return self.tr("Keep “{0}”").format(mode_title(current))
