"""First messages to click, for who opened the demo and does not know what to ask."""

from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from ui.look.controls import button, label
from ui.look.parts.flow_rows import FlowRows
from ui.look.theme import SPACE_S, SPACE_XS

DEMO_STARTERS = ("What can you do?", "Tell me a long story", "Calculate 6 * 7", "Write a file")
"""What shows each side of the demo: thinking and Markdown, streaming and Stop, a tool, an approval.

Not translated: they are what is sent, and the demo knows these words only.
"""


class StarterMessages(QWidget):
    """One button for each message; a click sends it."""

    chosen = Signal(str)

    def __init__(self, messages: tuple[str, ...] = DEMO_STARTERS) -> None:
        super().__init__()
        self.setAccessibleName(self.tr("Suggestions"))
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACE_S, 0, SPACE_S, SPACE_S)
        column.setSpacing(SPACE_XS)
        column.addWidget(label(self.tr("Try one of these:"), "small"))
        column.addWidget(FlowRows([button(each, partial(self.chosen.emit, each)) for each in messages]))
        self.hide()
