"""The wheel: up and down the transcript, sideways inside code and tables that are too wide."""

from collections.abc import Callable

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QWheelEvent

from ui.transcript.surface.screen import RowViewport

_NOTCH_DELTA = 120
"""What one notch reports: eighths of a degree times fifteen."""


class WheelHandler:
    """With Ctrl it zooms: `zoom` is told so many steps larger, or smaller."""

    def __init__(self, viewport: RowViewport, scroll: Callable[[int], None], zoom: Callable[[int], None]) -> None:
        self._viewport = viewport
        self._scroll = scroll
        self._zoom = zoom
        self._zoom_remainder = 0

    def handle(self, event: QWheelEvent) -> None:
        """Scroll by pixels where the device tells them, else three lines for a notch."""
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self._zoom_by(event.angleDelta().y())
            event.accept()
            return
        self._zoom_remainder = 0
        delta = event.pixelDelta()
        if delta.isNull():
            delta = event.angleDelta() * (3 * self._viewport.rows.render_context.style.line) / _NOTCH_DELTA
        sideways = delta.y() if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else delta.x()
        if sideways and abs(sideways) >= abs(delta.y()):
            self._scroll_horizontally(event.position().toPoint(), -sideways)
        else:
            self._scroll(-delta.y())
        event.accept()

    def _zoom_by(self, delta: int) -> None:
        """Fine wheels and touch pads report less than a notch at a time."""
        self._zoom_remainder += delta
        steps = int(self._zoom_remainder / _NOTCH_DELTA)
        if steps:
            self._zoom_remainder -= steps * _NOTCH_DELTA
            self._zoom(steps)

    def _scroll_horizontally(self, point: QPoint, pixels: int) -> None:
        rows, position = self._viewport.rows, self._viewport.place_at(point)
        blocks = rows.row(position.row).blocks if len(rows) else []
        if position.block < len(blocks) and blocks[position.block].scroll_horizontally(pixels):
            self._viewport.repaint_row(position.row)
