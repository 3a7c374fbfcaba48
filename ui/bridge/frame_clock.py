"""At most one repaint a frame: whoever has news asks for a tick, and all get the same one."""

from math import ceil
from time import monotonic

from PySide6.QtCore import QObject, Qt, QTimer, Signal

FRAME_SECONDS = 1 / 60


class FrameClock(QObject):
    """Ticks once after it was asked, and never twice within a frame. Idle, it does nothing at all."""

    tick = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._on_timeout)
        self._last = 0.0

    def request(self) -> None:
        """Tick soon: at once when the last frame is past, else when it is."""
        if not self._timer.isActive():
            wait = max(0.0, self._last + FRAME_SECONDS - monotonic())
            self._timer.start(ceil(wait * 1000))

    def stop(self) -> None:
        """Forget a tick that was asked for."""
        self._timer.stop()

    def _on_timeout(self) -> None:
        self._last = monotonic()
        self.tick.emit()
