"""Said before it is sent: this is more than the model can read."""

import math

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from ui.look.controls import announce, button, label
from ui.look.parts.flow_rows import FlowRows
from ui.look.theme import SPACE_S, SPACE_XS


class ContextOverflowNotice(QWidget):
    """By how many tokens, and what can be done about it. Hidden while it fits."""

    summary_requested = Signal()
    model_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words = label(kind="warning", wrap=True)
        # The sentence above says the rest; with large text in a narrow window there is room for no more.
        summarise, choose = self.tr("Summarise older messages"), self.tr("Choose another model")
        self._summarise = button(self.tr("Summarise"), self.summary_requested.emit, "link", summarise)
        self._choose = button(self.tr("Another model"), self.model_requested.emit, "link", choose)
        buttons = FlowRows((self._summarise, self._choose), gap=SPACE_XS)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_S, 0, SPACE_S, 0)
        layout.setSpacing(0)
        layout.addWidget(self._words)
        layout.addWidget(buttons)
        self.hide()

    @property
    def is_shown(self) -> bool:
        """Whether the person has been told."""
        return not self.isHidden()

    def show_overflow(self, over: int, window: int, *, can_summarise: bool) -> None:
        """What is to be sent is `over` tokens more than the `window` of the model; 0 or less is no overflow."""
        self._summarise.setVisible(can_summarise)
        if can_summarise:
            words = self.tr(
                "With this the conversation is about {0} tokens longer than the {1} that the model can read. "
                "Write less, have older messages summarised, or choose a model that reads more."
            )
        else:
            words = self.tr(
                "This is about {0} tokens longer than the {1} that the model can read. "
                "Write less, or choose a model that reads more."
            )
        # An estimate: more than two figures would claim more than is known.
        about = round(over, 1 - int(math.log10(over))) if over > 0 else 0
        said = words.format(f"{about:,}", f"{window:,}") if over > 0 else ""
        if said and self.isHidden():
            announce(self, said)
        self._words.setText(said)
        self.setVisible(bool(said))
