"""The wheel: up and down the transcript, sideways inside code and tables that are too wide."""

from collections.abc import Callable

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QWheelEvent

from ui.transcript.surface.screen import Screen

_NOTCH = 120
"""What one notch reports: eighths of a degree times fifteen."""


class Wheel:
    """With Ctrl it zooms: `zoom` is told so many steps larger, or smaller."""

    def __init__(self, screen: Screen, scroll: Callable[[int], None], zoom: Callable[[int], None]) -> None:
        self._screen = screen
        self._scroll = scroll
        self._zoom = zoom
        self._turned = 0

    def turn(self, event: QWheelEvent) -> None:
        """Scroll by pixels where the device tells them, else three lines for a notch."""
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self._turn_zoom(event.angleDelta().y())
            event.accept()
            return
        self._turned = 0
        delta = event.pixelDelta()
        if delta.isNull():
            delta = event.angleDelta() * (3 * self._screen.rows.stage.look.line) / _NOTCH
        sideways = delta.y() if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else delta.x()
        if sideways and abs(sideways) >= abs(delta.y()):
            self._sideways(event.position().toPoint(), -sideways)
        else:
            self._scroll(-delta.y())
        event.accept()

    def _turn_zoom(self, delta: int) -> None:
        """Fine wheels and touch pads report less than a notch at a time."""
        self._turned += delta
        steps = int(self._turned / _NOTCH)
        if steps:
            self._turned -= steps * _NOTCH
            self._zoom(steps)

    def _sideways(self, point: QPoint, pixels: int) -> None:
        rows, place = self._screen.rows, self._screen.place_at(point)
        blocks = rows.row(place.row).blocks if len(rows) else []
        if place.block < len(blocks) and blocks[place.block].scroll_sideways(pixels):
            self._screen.repaint_row(place.row)
