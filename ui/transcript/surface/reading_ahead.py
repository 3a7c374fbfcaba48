"""Reads what stands near the screen and was not read yet, and makes the rows beside the screen, between frames."""

from time import perf_counter

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication

from ui.transcript.surface.preparing import layout_in_view, prefetch_rows
from ui.transcript.surface.screen import RowViewport

_READ_SECONDS = 0.002
"""Seconds of work between two looks at the event loop; the last step of a slice may take one more."""

_LAYOUT_SECONDS = 0.003
"""Seconds more for laying out what was read on the screen: after each slice all of it is painted."""

_AFTER_PAINTING = QEvent.Type(QEvent.registerEventType())
_BELOW_PAINTING = Qt.EventPriority.LowEventPriority.value - 1
"""Somebody waits for the picture: what is posted like this comes right after it."""

_HELD_MS = 50
"""Milliseconds until another look at whether a button of the mouse is still held."""


class Prefetcher(QObject):
    """From the end of each row towards its start. Nothing on the screen moves by it."""

    moved = Signal()
    """Heights above or below the screen are others now."""

    def __init__(self, viewport: RowViewport, parent: QObject) -> None:
        super().__init__(parent)
        self._viewport = viewport
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._on_timer)
        self._is_prefetched = True
        self._is_painting = False

    def start(self) -> None:
        """Look whether there is something to do."""
        if not self._timer.isActive() and (not self._is_prefetched or self._viewport.rows.has_lazy_sections()):
            self._timer.start(0)

    def prefetch(self) -> None:
        """The screen stands elsewhere: let what is seen next be there when somebody goes on."""
        self._is_prefetched = False
        self.start()
        if not self._is_painting:
            self._is_painting = True
            QCoreApplication.postEvent(self, QEvent(_AFTER_PAINTING), _BELOW_PAINTING)

    def stop(self) -> None:
        """Read nothing more."""
        self._timer.stop()

    def customEvent(self, event: QEvent) -> None:
        """What was to be painted is on the screen."""
        del event
        self._is_painting = False
        if self._timer.isActive():
            self._continue()

    def _on_timer(self) -> None:
        if not self._is_painting:
            self._continue()

    def _continue(self) -> None:
        rows = self._viewport.rows
        # What is pressed stays what it is until it is let go.
        is_held = QGuiApplication.mouseButtons() != Qt.MouseButton.NoButton
        until = perf_counter() + _READ_SECONDS
        self._timer.setInterval(_HELD_MS if is_held else 0)
        if rows.has_lazy_sections_in_view():
            rows.read_in_view(until)
            layout_in_view(rows, until + _LAYOUT_SECONDS)
            self._viewport.viewport.update()
            self.moved.emit()
        elif is_held:
            return
        elif (not self._is_prefetched and prefetch_rows(rows, until)) or rows.read_ahead(until):
            self.moved.emit()
        else:
            self._is_prefetched = True
            self._timer.stop()
