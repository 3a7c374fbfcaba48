"""Parse and lay out rows near the viewport between frames, so that scrolling finds them ready."""

from collections.abc import Callable
from time import perf_counter

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QGuiApplication

from ui.transcript.viewport.row_list import RowList
from ui.transcript.viewport.viewport import RowViewport

_READ_SECONDS = 0.002
"""Seconds of work before the event loop runs again; the last step of a slice may take as long once more."""

_LAYOUT_SECONDS = 0.003
"""Seconds more for laying out what was parsed in the viewport: after each slice all of it is painted."""

_AFTER_PAINTING = QEvent.Type(QEvent.registerEventType())
_BELOW_PAINTING = Qt.EventPriority.LowEventPriority.value - 1
"""An event of this priority comes right after the pending paint event, which must not be delayed."""

_HELD_MS = 50
"""Milliseconds before the next check whether a mouse button is still held."""


def prefetch_rows(rows: RowList, until: float) -> bool:
    """Make and lay out rows one screen above and below until the deadline; return whether there were any."""
    has_worked = False
    while _prefetch_row(rows, until):
        has_worked = True
        if perf_counter() > until:
            break
    return has_worked


def _prefetch_row(rows: RowList, until: float) -> bool:
    """Prefetch the next row: those above first, since most people look back."""
    last = rows.count - 1
    if last < 0:
        return False
    top = rows.top
    above, below = top - rows.view, top + 2 * rows.view
    shown = min(rows.row_at(top), last)
    for index in (*range(shown, rows.row_at(above) - 1, -1), *range(shown + 1, min(rows.row_at(below), last) + 1)):
        row = rows.existing_row(index)
        if row is None:
            rows.row(index)
            return True
        y = rows.row_top(index)
        if row.stack.layout_ahead(above - y, below - y, until):
            rows.remeasure_row(index)
            return True
    return False


def read_in_view(rows: RowList, until: float) -> None:
    """Parse what is visible until the deadline, at least one step."""
    while rows.read_nearby(0, rows.view) and perf_counter() < until:
        pass


def layout_in_view(rows: RowList, until: float) -> None:
    """Lay out the parsed visible blocks until the deadline, at least one; settle when all are."""
    rows.is_view_laid_out = _is_view_laid_out(rows, until)
    if rows.is_view_laid_out:
        rows.settle(0)


def _is_view_laid_out(rows: RowList, until: float) -> bool:
    # Layouts are mostly less high than estimated, and more becomes visible.
    has_laid = True
    while has_laid:
        has_laid, top = False, rows.top
        for index, row, y in list(rows.between(top, top + rows.view)):
            has_laid |= row.stack.layout_ahead(top - y, top + rows.view - y, until)
            rows.remeasure_row(index)
            if has_laid and perf_counter() > until:
                return False
    return True


def read_ahead(rows: RowList, until: float) -> bool:
    """Parse near the viewport until the deadline, at least one step; return whether there was any."""
    has_read = False
    for index in rows.nearby_rows():
        stack = rows.row(index).stack
        # From the end of each row to its start: nothing in the viewport moves by it.
        while (last := stack.last_lazy_section()) is not None:
            stack.read(last, until)
            has_read = True
            if perf_counter() >= until:
                return True
    return has_read


class Prefetcher(QObject):
    """Parses and lays out what is visible, then what is near, in slices between frames.

    `on_moved` is called when heights near the viewport changed.
    """

    def __init__(self, viewport: RowViewport, on_moved: Callable[[], None], parent: QObject) -> None:
        super().__init__(parent)
        self._viewport = viewport
        self._on_moved = on_moved
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._on_timer)
        self._is_prefetched = True
        self._is_painting = False

    def start(self) -> None:
        """Start if there is anything to do."""
        if not self._timer.isActive() and (not self._is_prefetched or self._viewport.rows.has_lazy_sections()):
            self._timer.start(0)

    def prefetch(self) -> None:
        """Prefetch around a new position of the viewport, after it is painted."""
        self._is_prefetched = False
        self.start()
        if not self._is_painting:
            self._is_painting = True
            QCoreApplication.postEvent(self, QEvent(_AFTER_PAINTING), _BELOW_PAINTING)

    def stop(self) -> None:
        """Stop the timer."""
        self._timer.stop()

    def customEvent(self, event: QEvent) -> None:
        del event
        self._is_painting = False
        if self._timer.isActive():
            self._continue()

    def _on_timer(self) -> None:
        if not self._is_painting:
            self._continue()

    def _continue(self) -> None:
        rows = self._viewport.rows
        # A pressed block must not change before the button is released.
        is_held = QGuiApplication.mouseButtons() != Qt.MouseButton.NoButton
        until = perf_counter() + _READ_SECONDS
        self._timer.setInterval(_HELD_MS if is_held else 0)
        if rows.has_lazy_sections_in_view():
            read_in_view(rows, until)
            layout_in_view(rows, until + _LAYOUT_SECONDS)
            self._viewport.widget.update()
            self._on_moved()
        elif is_held:
            return
        elif (not self._is_prefetched and prefetch_rows(rows, until)) or read_ahead(rows, until):
            self._on_moved()
        else:
            self._is_prefetched = True
            self._timer.stop()
