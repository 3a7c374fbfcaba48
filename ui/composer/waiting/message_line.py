"""The words of a message that waits, and what stands beside them."""

from PySide6.QtCore import QEvent, QRect, QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QStyle, QWidget

from ui.composer.waiting.row_controls import QueuedMessageControls
from ui.look.controls import ElidedLabel
from ui.look.theme import SPACE_S, SPACE_XS

MIN_LETTERS = 24


class QueuedMessageLine(QWidget):
    """One line. In little room first the controls fold; then the words, not to be cut to nothing, stand over them."""

    def __init__(self, words: ElidedLabel, controls: QueuedMessageControls, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words, self._controls = words, controls
        words.setParent(self)
        controls.setParent(self)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def hasHeightForWidth(self) -> bool:
        """Always."""
        return True

    def heightForWidth(self, width: int) -> int:
        """Of one line, or of two."""
        words, controls = self._words.sizeHint().height(), self._controls.sizeHint().height()
        return max(words, controls) if self._is_one_line(width) else words + SPACE_XS + controls

    def sizeHint(self) -> QSize:
        """With all that there is in one line."""
        width = self._min_text_width + SPACE_S + self._controls.preferred_width(folded=False)
        return QSize(width, self.heightForWidth(width))

    def minimumSizeHint(self) -> QSize:
        """As narrow as the folded controls."""
        return QSize(self._controls.preferred_width(folded=True), self.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another width, other places."""
        super().resizeEvent(event)
        self._place()

    def event(self, event: QEvent) -> bool:
        """What stands in it wants another size."""
        if event.type() in {QEvent.Type.LayoutRequest, QEvent.Type.Show, QEvent.Type.LayoutDirectionChange}:
            self._place()
            self.updateGeometry()
        return super().event(event)

    @property
    def _min_text_width(self) -> int:
        return self._words.fontMetrics().averageCharWidth() * MIN_LETTERS

    def _is_one_line(self, width: int) -> bool:
        return self._min_text_width + SPACE_S + self._controls.preferred_width(folded=True) <= width

    def _place(self) -> None:
        width, height = self.width(), self.height()
        folded = self.sizeHint().width() > width
        if folded != self._controls.is_folded:
            self._controls.fold(folded=folded)
        if self._is_one_line(width):
            room = self._controls.sizeHint().width()
            words = QRect(0, 0, width - room - SPACE_S, height)
            controls = QRect(width - room, 0, room, height)
        else:
            top = self._words.sizeHint().height()
            words, controls = QRect(0, 0, width, top), QRect(0, top + SPACE_XS, width, height - top - SPACE_XS)
        for part, area in ((self._words, words), (self._controls, controls)):
            part.setGeometry(QStyle.visualRect(self.layoutDirection(), self.rect(), area))
