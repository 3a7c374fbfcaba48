"""SIGTERM, SIGINT and SIGHUP end the program in order, like closing its window."""

import signal
import socket
from types import FrameType

from PySide6.QtCore import QObject, QSocketNotifier, Signal

_SIGNAL_NAMES = ("SIGTERM", "SIGINT", "SIGHUP")


class TerminationSignals(QObject):
    """`end_requested`: the system or the terminal asks the program to end.

    Python runs its handlers only between two of its own instructions, and an idle Qt runs none: the wakeup socket
    makes Qt call into Python (doc.qt.io/qt-6/unix-signals.html, docs.python.org/3/library/signal.html).
    """

    end_requested = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._read, self._write = socket.socketpair()
        self._read.setblocking(False)
        self._write.setblocking(False)
        self._notifier = QSocketNotifier(self._read.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._drain)
        self._wakeup_before = signal.set_wakeup_fd(self._write.fileno(), warn_on_full_buffer=False)
        # Windows has no SIGHUP.
        numbers = [getattr(signal, name) for name in _SIGNAL_NAMES if hasattr(signal, name)]
        self._before = {number: signal.signal(number, self._on_signal) for number in numbers}

    def close(self) -> None:
        """Put back what was there before. A signal that comes while the program ends is ignored until then."""
        self._notifier.setEnabled(False)
        signal.set_wakeup_fd(self._wakeup_before)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._read.close()
        self._write.close()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.end_requested.emit()

    def _drain(self) -> None:
        try:
            self._read.recv(4096)
        except BlockingIOError:
            return
