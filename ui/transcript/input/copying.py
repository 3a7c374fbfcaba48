"""Copying: at once when it is little, in slices between frames when it is a whole long conversation."""

from collections.abc import Callable, Iterator
from time import perf_counter

from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QGuiApplication

_SLICE = 0.008
"""Seconds of work between two looks at the event loop."""


class Copier(QObject):
    """Puts text on the clipboard; a later copy replaces one that is still being put together."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._parts: list[str] = []
        self._pieces: Iterator[str] = iter(())
        self._joint = ""
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._go_on)

    def copy(self, text: str) -> None:
        """This text."""
        self._timer.stop()
        if text:
            QGuiApplication.clipboard().setText(text)

    def copy_pieces(self, pieces: Iterator[str], joint: str = "\n\n") -> None:
        """What these pieces make together; empty ones are left out."""
        self._parts, self._pieces, self._joint = [], pieces, joint
        self._timer.start()
        self._go_on()

    def stop(self) -> None:
        """Give up a copy that is not complete."""
        self._timer.stop()

    def _go_on(self) -> None:
        until = perf_counter() + _SLICE
        for piece in self._pieces:
            if piece:
                self._parts.append(piece)
            if perf_counter() > until:
                return
        self.copy(self._joint.join(self._parts))


Copy = Callable[[str], None]
