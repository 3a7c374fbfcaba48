"""Words with buttons at the end of their line, or under them where that would leave too little of the line."""

from collections.abc import Iterable

from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QWidget

from ui.look.parts.flow_rows import FlowRows
from ui.look.theme import SPACE_S


class TextWithButtons(QWidget):
    """The buttons stand beside the words as long as they leave half of the width to them."""

    def __init__(self, words: QWidget, buttons: Iterable[QWidget]) -> None:
        super().__init__()
        self._buttons = FlowRows(buttons, trailing=True)
        self._line = QHBoxLayout(self)
        self._line.setContentsMargins(0, 0, 0, 0)
        self._line.setSpacing(SPACE_S)
        self._line.addWidget(words, 1)
        self._line.addWidget(self._buttons)

    def minimumSizeHint(self) -> QSize:
        """As wide as the widest button: words break into lines."""
        return QSize(self._buttons.minimumSizeHint().width(), super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another width."""
        super().resizeEvent(event)
        across, down = QBoxLayout.Direction.LeftToRight, QBoxLayout.Direction.TopToBottom
        self._line.setDirection(down if 2 * self._buttons.sizeHint().width() > self.width() else across)
