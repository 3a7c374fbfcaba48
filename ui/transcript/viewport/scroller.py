"""Scroll: the scroll bar, the wheel and changes of the transcript move the least of the picture, and rows beside the
screen are prefetched between frames.
"""

from collections.abc import Sequence
from time import perf_counter

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QRect, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QScrollBar, QWidget

from desktop_agent.conversation.items import Added, Change, Removed, ThinkingItem, Updated
from ui.transcript.viewport.row_list import RowList, control_after
from ui.transcript.viewport.selection import SelectionTracker
from ui.transcript.viewport.viewport import RowViewport


def prefetch_rows(rows: RowList, until: float) -> bool:
    """Make and lay out rows one screen above and below until the clock says so; answers whether there were any."""
    has_worked = False
    while _prefetch_row(rows, until):
        has_worked = True
        if perf_counter() > until:
            break
    return has_worked


def _prefetch_row(rows: RowList, until: float) -> bool:
    """The next row: those above first, since most look back."""
    last = min(len(rows), len(rows.transcript)) - 1
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


def layout_in_view(rows: RowList, until: float) -> None:
    """Lay out what was read on the screen until the clock says so, one block at least; all, when there is time."""
    rows.is_view_laid_out = _is_view_laid_out(rows, until)
    if rows.is_view_laid_out:
        rows.settle(0)


def _is_view_laid_out(rows: RowList, until: float) -> bool:
    # What is laid out is mostly less high than was guessed, and more comes into sight.
    has_laid = True
    while has_laid:
        has_laid, top = False, rows.top
        for index, row, y in list(rows.between(top, top + rows.view)):
            has_laid |= row.stack.layout_ahead(top - y, top + rows.view - y, until)
            rows.remeasure_row(index)
            if has_laid and perf_counter() > until:
                return False
    return True


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


class Scroller(QObject):
    """Follows the end until the person scrolls up; then what they see stays where it is, to the pixel."""

    following_changed = Signal(bool)
    new_count_changed = Signal(int)

    def __init__(self, viewport: RowViewport, bar: QScrollBar, parent: QObject) -> None:
        super().__init__(parent)
        self._viewport = viewport
        self._bar = bar
        self._is_syncing = False
        self._new = 0
        self._was_following = True
        self._prefetcher = Prefetcher(viewport, self)
        self._prefetcher.moved.connect(self._sync_bar)

    def stop(self) -> None:
        """Do nothing more by itself."""
        self._prefetcher.stop()

    @property
    def _rows(self) -> RowList:
        return self._viewport.rows

    @property
    def _widget(self) -> QWidget:
        return self._viewport.viewport

    def show_rows(self) -> None:
        """Other rows, another size or another look: settle and paint all."""
        self._rows.settle()
        self._sync_bar()
        self._widget.update()
        self._prefetcher.prefetch()

    def apply(self, changes: Sequence[Change]) -> None:
        """One frame's changes: everything above the first of them only moves, everything below is painted."""
        rows = self._rows
        top = rows.top
        first: tuple[int, int] = (len(rows), 0)
        for change in changes:
            first = min(first, self._apply_change(change) or first)
        self._repaint_below(first, top)

    def row_changed(self, index: int) -> None:
        """A row folded, unfolded or was recoloured. What the person pressed stays under the pointer."""
        rows = self._rows
        top = rows.top
        if rows.following:
            rows.stop_following()
        rows.remeasure_row(index)
        self._repaint_below((index, 0), top)
        self._on_arrived_at_end()

    def row_arrived(self, index: int) -> None:
        """Something that a row waited for is there, and has another height: nobody pressed anything."""
        rows = self._rows
        if rows.existing_row(index):
            top = rows.top
            rows.remeasure_row(index)
            self._repaint_below((index, 0), top)
            self._on_arrived_at_end()

    def _apply_change(self, change: Change) -> tuple[int, int] | None:
        """Answers the row, and the y in it, from which the picture differs."""
        rows, viewport, selection = self._rows, self._viewport, self._viewport.selection
        if not isinstance(change, Updated):
            viewport.hovered, viewport.focused = (
                control_after(each, change) for each in (viewport.hovered, viewport.focused)
            )
        match change:
            case Added(index):
                rows.insert(index)
                selection.rows_added(index)
                self._count(1)
                return index, 0
            case Removed(index, count):
                rows.remove(index, count)
                selection.rows_removed(index, count)
                return index, 0
            case Updated(index, what):
                self._keep_unfolded(index, what)
                kept = SelectionTracker(selection, rows, index)
                y = rows.update_row(index, what)
                kept.restore()
                return None if y is None else (index, y)

    def _keep_unfolded(self, index: int, what: str) -> None:
        """Reasoning that somebody is reading does not fold away under their eyes."""
        row = self._rows.existing_row(index)
        item = row.item if row else None
        if what == "state" and isinstance(item, ThinkingItem) and item.finished and not self._rows.following:
            choices = self._rows.render_context.choices
            choices.set(item.id, "unfolded", value=choices.get(item.id, "unfolded", default=True))

    def _repaint_below(self, first: tuple[int, int], top: int) -> None:
        rows = self._rows
        row, y = first
        before = rows.row_top(row) + y - top
        rows.settle()
        after = rows.row_top(row) + y - rows.top
        self._sync_bar()
        if after <= 0 and before <= 0:
            self._widget.update()
            return
        self._blit(after - before)
        if after < rows.view:
            self._widget.update(QRect(0, after, self._widget.width(), rows.view - after))

    def on_bar_moved(self) -> None:
        """The scroll bar has another value: the person's doing, unless it was ours."""
        if self._is_syncing:
            return
        value = self._bar.value()
        if value >= self._bar.maximum():
            self.to_end()
        else:
            self.scroll_by(value - self._rows.top)

    def scroll_by(self, pixels: int) -> None:
        """Move as the person wants; arriving at the end follows it again."""
        rows = self._rows
        if not pixels or (pixels > 0 and rows.following):
            return
        if abs(pixels) < 2 * rows.view:
            self._blit(-rows.scroll_by(pixels))
        else:
            rows.jump_to(rows.top + pixels)
            self._widget.update()
        self._on_arrived_at_end()

    def to_start(self) -> None:
        """The first row."""
        self._rows.jump_to(0)
        self._widget.update()
        self._on_arrived_at_end()

    def to_end(self) -> None:
        """The last row, and follow."""
        top, total = self._rows.top, self._rows.total
        self._rows.following = True
        self._rows.settle()
        if self._rows.total == total and abs(self._rows.top - top) < self._rows.view:
            self._blit(top - self._rows.top)
        else:
            self._widget.update()
        self._on_arrived_at_end()

    def show_row(self, index: int) -> None:
        """Scroll until this row is seen: all of it, or its beginning."""
        rows = self._rows
        rows.row(index)
        top = rows.row_top(index) - rows.top
        if top < 0 or rows.row(index).stack.height > rows.view:
            self.scroll_by(top - 8)
        elif top + rows.row(index).stack.height > rows.view:
            self.scroll_by(top + rows.row(index).stack.height - rows.view + 8)

    def _on_arrived_at_end(self) -> None:
        rows = self._rows
        if rows.top >= rows.bottom:
            rows.following = True
        self._sync_bar()
        self._prefetcher.prefetch()

    def _sync_bar(self) -> None:
        """Tell the bar where we are, without hearing it back."""
        rows = self._rows
        self._is_syncing = True
        if self._bar.maximum() != rows.bottom or self._bar.pageStep() != rows.view:
            self._bar.setPageStep(rows.view)
            self._bar.setSingleStep(rows.render_context.style.line)
            self._bar.setRange(0, rows.bottom)
        self._bar.setValue(rows.top)
        self._is_syncing = False
        self._prefetcher.start()
        if rows.following:
            self._count(-self._new)
        if rows.following != self._was_following:
            self._was_following = rows.following
            self.following_changed.emit(rows.following)

    def _count(self, more: int) -> None:
        if more > 0 and self._rows.following:
            return
        if more:
            self._new += more
            self.new_count_changed.emit(self._new)

    def _blit(self, shift: int) -> None:
        if not shift:
            return
        if abs(shift) < self._widget.height():
            self._widget.scroll(0, shift)
        else:
            self._widget.update()
