"""What the agent asks for: another mode, with the two things that can be said to it."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QWidget

from desktop_agent.vocabulary.conduct.modes import Mode
from ui.look.controls import announce, button, label
from ui.look.parts.flow_rows import FlowRows
from ui.look.parts.mode_words import mode_title
from ui.look.theme import SPACE_M, SPACE_S

MIN_TEXT_CHARS = 36
"""Letters in a line beside the buttons."""


class ModeRequestBar(QFrame):
    """Hidden while the agent asks for nothing."""

    accepted = Signal(str)
    """The mode's name."""
    refused = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._requested_name = ""
        self._request_label = label(wrap=True)
        self._accept_button = button("", lambda: self.accepted.emit(self._requested_name))
        self._refuse_button = button("", self.refused.emit)
        self.setProperty("kind", "card")
        self.setAccessibleName(self.tr("The agent asks for another mode"))
        self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._row.setContentsMargins(SPACE_M, SPACE_S, SPACE_M, SPACE_S)
        self._row.setSpacing(SPACE_S)
        self._row.addWidget(self._request_label, 1)
        self._row.addWidget(FlowRows((self._accept_button, self._refuse_button), trailing=True))
        self.hide()

    def show_request(self, requested: Mode | None, current: Mode) -> None:
        """The mode that is asked for, if one is, and the one that holds."""
        wish = requested.name if requested is not None else ""
        is_new = bool(wish) and wish != self._requested_name
        self._requested_name = wish
        if requested is not None:
            words = self.tr("The agent asks for the mode “{0}”. It changes at its next step unless you object.")
            self._request_label.setText(words.format(mode_title(requested)))
            for each, text in (
                (self._accept_button, self.tr("Change now")),
                (self._refuse_button, self._refuse_text(current)),
            ):
                each.setText(text.replace("&", "&&"))
                each.setAccessibleName(text)
        self.setVisible(bool(wish))
        if is_new:
            announce(self, self._request_label.text())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The words stand over the buttons where they would have little room beside them."""
        super().resizeEvent(event)
        letters = MIN_TEXT_CHARS * self.fontMetrics().averageCharWidth()
        wide = letters + self._accept_button.sizeHint().width() + self._refuse_button.sizeHint().width()
        side = QBoxLayout.Direction
        self._row.setDirection(side.LeftToRight if self.width() >= wide else side.TopToBottom)

    def _refuse_text(self, current: Mode) -> str:
        return self.tr("Keep “{0}”").format(mode_title(current))
