"""Scrolling: the scroll bar, the wheel and changes of the transcript repaint as little as possible."""

from collections.abc import Sequence

from PySide6.QtCore import QObject, QRect, Signal
from PySide6.QtWidgets import QScrollBar, QWidget

from desktop_agent.conversation.items import Added, Change, Prepended, Removed, ThinkingItem, Updated
from ui.transcript.overlays import JumpButton
from ui.transcript.rows.row import UNFOLDED_KEY
from ui.transcript.viewport.prefetch import Prefetcher
from ui.transcript.viewport.row_list import RowList
from ui.transcript.viewport.selection import SelectionTracker
from ui.transcript.viewport.viewport import RowViewport


class ScrollController(QObject):
    """Follows the end until the person scrolls up; then what they see stays where it is, to the pixel."""

    start_neared = Signal()
    """The beginning of what is loaded is near."""
    moved = Signal()
    """Rows may be elsewhere in the viewport."""

    def __init__(self, viewport: RowViewport, bar: QScrollBar, jump_button: JumpButton, parent: QObject) -> None:
        super().__init__(parent)
        self._viewport = viewport
        self._bar = bar
        self._jump_button = jump_button
        self.offers_jump = True
        """Whether the button is there while the end is out of sight: what never grows needs none."""
        jump_button.clicked.connect(self.scroll_to_end)
        self._is_syncing = False
        self._prefetcher = Prefetcher(viewport, self._sync_scroll_bar, self)

    @property
    def is_near_start(self) -> bool:
        """Return whether less than one screen is above the viewport."""
        return self._rows.top < self._rows.view

    def stop(self) -> None:
        """Stop the prefetching."""
        self._prefetcher.stop()

    @property
    def _rows(self) -> RowList:
        return self._viewport.rows

    @property
    def _widget(self) -> QWidget:
        return self._viewport.widget

    def show_rows(self) -> None:
        """Settle and paint everything, after other rows, another size or another style."""
        self._rows.settle()
        self._sync_scroll_bar()
        self._widget.update()
        self._prefetcher.prefetch()

    def apply(self, changes: Sequence[Change]) -> None:
        """Apply one frame's changes: what is above the first of them only moves, what is below is painted."""
        rows = self._rows
        top = rows.top
        first: tuple[int, int] = (len(rows), 0)
        for change in changes:
            first = min(first, self._apply_change(change) or first)
        if any(isinstance(change, Prepended) for change in changes):
            rows.update_footers()
            self.show_rows()
            return
        if not all(isinstance(change, Updated) for change in changes):
            rows.padding = 0
            self._update_footers(first, top)
            # The removed rows may have been all that was below the viewport.
            self._on_arrived_at_end()
        else:
            self._repaint_below(first, top)

    def show_message_actions(self) -> None:
        """Show below the messages what can be done with them now."""
        self._update_footers((len(self._rows), 0), self._rows.top)
        self._widget.update()

    def _update_footers(self, first: tuple[int, int], top: int) -> None:
        changed = self._rows.update_footers()
        self._repaint_below(first if changed is None else min(first, (changed, 0)), top)

    def row_changed(self, index: int) -> None:
        """Update a row that the person folded, unfolded or wrapped; what they pressed stays under the pointer."""
        rows = self._rows
        top = rows.top
        if rows.following:
            rows.stop_following()
        rows.remeasure_row(index)
        self._repaint_below((index, 0), top)
        self._on_arrived_at_end()

    def row_arrived(self, index: int) -> None:
        """Update a row whose content arrived, at another height, without anybody pressing anything."""
        rows = self._rows
        if rows.existing_row(index):
            top = rows.top
            rows.remeasure_row(index)
            self._repaint_below((index, 0), top)
            self._on_arrived_at_end()

    def _apply_change(self, change: Change) -> tuple[int, int] | None:
        """Return the row, and the y in it, from which the picture differs."""
        rows, selection = self._rows, self._viewport.selection
        match change:
            case Added(index):
                rows.insert(index)
                self._viewport.apply_change(change)
                if not rows.following:
                    self._jump_button.set_count(self._jump_button.count + 1)
                return index, 0
            case Prepended(count):
                rows.prepend(count)
                self._viewport.apply_change(change)
                return None
            case Removed(index, count):
                rows.remove(index, count)
                self._viewport.apply_change(change)
                return index, 0
            case Updated(index, what):
                self._keep_unfolded(index, what)
                tracker = SelectionTracker(selection, rows, index)
                y = rows.update_row(index, what)
                tracker.restore()
                return None if y is None else (index, y)

    def _keep_unfolded(self, index: int, what: str) -> None:
        """Keep reasoning unfolded that somebody is reading."""
        row = self._rows.existing_row(index)
        item = row.item if row else None
        if what == "state" and isinstance(item, ThinkingItem) and item.finished and not self._rows.following:
            choices = self._rows.render_context.choices
            choices.set(item.id, UNFOLDED_KEY, choices.get(item.id, UNFOLDED_KEY, default=True))

    def _repaint_below(self, first: tuple[int, int], top: int) -> None:
        rows = self._rows
        row, y = first
        before = rows.row_top(row) + y - top
        rows.settle()
        after = rows.row_top(row) + y - rows.top
        self._sync_scroll_bar()
        if after <= 0 and before <= 0:
            self._widget.update()
            return
        self._blit(after - before)
        if after < rows.view:
            self._widget.update(QRect(0, after, self._widget.width(), rows.view - after))

    def on_scroll_bar_moved(self) -> None:
        """Follow the scroll bar, unless this class moved it."""
        if self._is_syncing:
            return
        value = self._bar.value()
        if value >= self._bar.maximum():
            self.scroll_to_end()
        else:
            self.scroll_by(value - self._rows.top)

    def scroll_by(self, pixels: int) -> None:
        """Scroll for the person; at the end, following starts again."""
        rows = self._rows
        if not pixels or (pixels > 0 and rows.following):
            return
        if abs(pixels) < 2 * rows.view:
            self._blit(-rows.scroll_by(pixels))
        else:
            rows.scroll_to(rows.top + pixels)
            self._widget.update()
        self._on_arrived_at_end()

    def scroll_to_start(self) -> None:
        """Scroll to the first row."""
        self._rows.scroll_to(0)
        self._widget.update()
        self._on_arrived_at_end()

    def scroll_to_end(self) -> None:
        """Scroll to the last row, and follow."""
        top, total = self._rows.top, self._rows.total
        self._rows.padding = 0
        self._rows.following = True
        self._rows.settle()
        if self._rows.total == total and abs(self._rows.top - top) < self._rows.view:
            self._blit(top - self._rows.top)
        else:
            self._widget.update()
        self._on_arrived_at_end()

    def scroll_to_row(self, index: int) -> None:
        """Scroll until this row is visible, or its beginning."""
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
        self._sync_scroll_bar()
        self._prefetcher.prefetch()

    def _sync_scroll_bar(self) -> None:
        """Set the scroll bar without reacting to it."""
        rows = self._rows
        self._is_syncing = True
        if self._bar.maximum() != rows.bottom or self._bar.pageStep() != rows.view:
            self._bar.setPageStep(rows.view)
            self._bar.setSingleStep(rows.render_context.style.line)
            self._bar.setRange(0, rows.bottom)
        self._bar.setValue(rows.top)
        self._is_syncing = False
        self.moved.emit()
        self._prefetcher.start()
        if rows.following:
            self._jump_button.set_count(0)
        self._jump_button.setHidden(rows.following or not self.offers_jump)
        if self.is_near_start:
            self.start_neared.emit()

    def _blit(self, shift: int) -> None:
        if not shift:
            return
        widget, moved = self._widget, self._widget.rect()
        # Where the button lies over it, Qt would paint everything anew instead of moving it.
        if self._jump_button.isVisible():
            moved.setBottom(self._jump_button.y() - widget.y() - 1)
        if abs(shift) >= moved.height():
            widget.update()
            return
        widget.scroll(0, shift, moved)
        widget.update(widget.rect().adjusted(0, moved.height(), 0, 0))
