"""The room before the number in its box: no style sheet reaches there."""

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QAbstractSpinBox

from ui.look.theme import BODY_SIZE, SPACE_S

TEXT_MARGIN = SPACE_S
"""Pixels at 100 % zoom: as in a field of text."""
_MARGIN_EVENTS = {QEvent.Type.Show, QEvent.Type.FontChange, QEvent.Type.LayoutDirectionChange}


class SpinBoxMargin(QObject):
    """Keeps a number as far from the edge of its box as words are from that of a field."""

    def __init__(self, box: QAbstractSpinBox) -> None:
        super().__init__(box)
        self._line = box.lineEdit()
        box.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Another size of text, or another direction."""
        if event.type() in _MARGIN_EVENTS and isinstance(watched, QAbstractSpinBox):
            # The edge is there as well, and the margin of every line of text.
            room = round(TEXT_MARGIN * watched.font().pointSizeF() / BODY_SIZE) - 1
            is_mirrored = watched.layoutDirection() is Qt.LayoutDirection.RightToLeft
            self._line.setTextMargins(0 if is_mirrored else room, 0, room if is_mirrored else 0, 0)
        return False
