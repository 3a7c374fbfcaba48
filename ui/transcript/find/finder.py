"""Find in the conversation: the current match, how it comes into view, and what is unfolded for it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from time import perf_counter

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QPainter, QRegion

from desktop_agent.conversation.items import Added, Change, Prepended, Removed, Updated
from ui.transcript.find.highlights import MatchHighlights, paint_highlights
from ui.transcript.find.matches import MatchCounts, Query, SearchOrigin
from ui.transcript.find.searchable_text import SearchableTexts, first_lazy_section
from ui.transcript.rows.row import UNFOLDED_KEY, RowSelection
from ui.transcript.viewport.positions import scroll_to_text
from ui.transcript.viewport.row_list import index_after
from ui.transcript.viewport.scroll_controller import ScrollController
from ui.transcript.viewport.viewport import RowViewport


@dataclass(frozen=True, slots=True)
class _UnfoldedRow:
    index: int
    item_id: str
    chosen: bool | None
    """The person's earlier choice."""


class TemporaryUnfolding:
    """Unfolds the row of the current match; at most one row at a time."""

    def __init__(self, viewport: RowViewport, scroller: ScrollController) -> None:
        self._viewport = viewport
        self._scroller = scroller
        self._opened: _UnfoldedRow | None = None

    def unfold(self, index: int) -> None:
        """Unfold a row whose match is hidden otherwise."""
        rows = self._viewport.rows
        row = rows.row(index)
        if row.unfolded:
            return
        choices = rows.render_context.choices.made
        self._opened = _UnfoldedRow(index, row.item.id, choices.get((row.item.id, UNFOLDED_KEY)))
        rows.render_context.choices.set(row.item.id, UNFOLDED_KEY, True)
        self._show(index)

    def fold_others(self, index: int | None) -> None:
        """Fold the unfolded row again when the current match is in another one, unless the person folded it."""
        opened, rows = self._opened, self._viewport.rows
        if opened is None or opened.index == index:
            return
        self._opened = None
        key = (opened.item_id, UNFOLDED_KEY)
        choices = rows.render_context.choices.made
        if not choices.get(key):
            return
        del choices[key]
        if opened.chosen is not None:
            choices[key] = opened.chosen
        if opened.index < len(rows):
            self._show(opened.index)

    def apply(self, changes: Sequence[Change]) -> None:
        """Follow the row when rows are added or removed."""
        if self._opened:
            index = index_after(self._opened.index, changes)
            self._opened = None if index is None else replace(self._opened, index=index)

    def keep_open(self) -> None:
        """Leave the unfolded row unfolded."""
        self._opened = None

    def _show(self, index: int) -> None:
        rows = self._viewport.rows
        if rows.existing_row(index):
            rows.update_row(index, "state")
            self._scroller.row_arrived(index)


SLICE_SECONDS = 0.004
"""Seconds of work before the event loop runs again."""

_REST_MS = 80
"""Milliseconds before changed rows are counted again."""

_WAIT_MS = 20
"""Milliseconds between two checks whether the worker has prepared a long text."""


@dataclass(frozen=True, slots=True)
class FindStatus:
    """The number of matches and of the current one, from 1 on; `complete` when all rows are counted."""

    current: int = 0
    total: int = 0
    complete: bool = True


class Finder(QObject):
    """The search in a conversation; off while the query is empty. It begins where the person reads."""

    status_changed = Signal(object)

    def __init__(self, viewport: RowViewport, scroller: ScrollController, parent: QObject) -> None:
        super().__init__(parent)
        self._viewport = viewport
        self._scroller = scroller
        self._unfolding = TemporaryUnfolding(viewport, scroller)
        self._texts = SearchableTexts(viewport.rows)
        self._counts = MatchCounts(Query(""), viewport.rows, self._texts)
        self._highlights = MatchHighlights(self._counts.query)
        self._work: Iterator[int] | None = None
        self._changed: set[int] = set()
        self._current: tuple[int, int] | None = None
        self._here: RowSelection | None = None
        self._search_origin = SearchOrigin(viewport)
        self._is_coming = False
        self._timer, self._rest = QTimer(self), QTimer(self, singleShot=True, interval=_REST_MS)
        self._timer.timeout.connect(self._continue)
        self._rest.timeout.connect(self._recheck)

    @property
    def is_on(self) -> bool:
        return bool(self._counts.query)

    def search(self, query: Query) -> None:
        """Search for this query from now on."""
        if query != self._counts.query:
            self._search_origin.set_here()
            self._start(query)

    def search_from(self, query: Query, row: int) -> None:
        """Search for this query; the first match in this row or below becomes the current one."""
        self._search_origin.set_row(row)
        self._start(query)

    def stop(self) -> None:
        """Stop searching. The row of the current match stays unfolded and gets the focus."""
        self._unfolding.keep_open()
        if self._current is not None and self._current[0] != self._viewport.focused[0]:
            self._viewport.focus((self._current[0], ""))
        self._search_origin.forget()
        self._texts = SearchableTexts(self._viewport.rows)
        self._start(Query(""))
        self._timer.stop()
        self._rest.stop()

    def rows_shown(self) -> None:
        """Search again, in another transcript."""
        self._unfolding.keep_open()
        self._search_origin.forget()
        self._search_origin.set_here()
        self._texts = SearchableTexts(self._viewport.rows)
        self._start(self._counts.query)

    def step(self, by: int) -> None:
        """Go to the next (1) or previous (-1) match, around the ends."""
        counts = self._counts
        if counts.total and self._current:
            number = (counts.before(self._current[0]) + self._current[1] + by) % counts.total
            self._go_to(*counts.find(number))
        elif counts.total:
            # The row of the current match is gone.
            self._search_origin.set_here()
            number = (counts.before(min(self._search_origin.row, len(counts) - 1)) - (by < 0)) % counts.total
            self._go_to(*counts.find(number))
        self._emit_status()

    def apply(self, changes: Sequence[Change]) -> None:
        """Count the changed rows again, after the rows applied a frame's changes."""
        if not self.is_on:
            return
        total = self._counts.total
        self._unfolding.apply(changes)
        self._changed = {moved for changed in self._changed if (moved := index_after(changed, changes)) is not None}
        for position, change in enumerate(changes, start=1):
            match change:
                case Prepended(count):
                    self._on_prepended(count)
                case Added(index):
                    self._counts.insert(index)
                    self._mark_changed(index_after(index, changes[position:]), is_new=True)
                case Removed(first, count):
                    self._counts.remove(first, count)
                case Updated(index, _):
                    self._mark_changed(index_after(index, changes[position:]))
        if self._current:
            row = index_after(self._current[0], changes)
            self._current = None if row is None else (row, self._current[1])
            self._here = self._here if self._current else None
        if total != self._counts.total:
            self._emit_status()
        self._restart_timer()

    def _on_prepended(self, count: int) -> None:
        self._counts.prepend(count)
        self._search_origin.move(count)
        if self._work is None:
            self._changed.update(range(count))
        else:
            # The running count uses the old numbers of the rows.
            self._work = self._count_all_in_steps()

    def _mark_changed(self, index: int | None, *, is_new: bool = False) -> None:
        """Count a row again later, if it still exists."""
        if index is None:
            return
        self._changed.add(index)
        if not is_new:
            item_id = self._viewport.rows.transcript[index].id
            self._texts.forget(item_id)
            self._highlights.forget(item_id)
            self._viewport.repaint_rows(index, index)

    def paint(self, painter: QPainter, region: QRegion) -> None:
        """Highlight the visible matches."""
        if not self.is_on:
            return
        rows, dirty = self._viewport.rows, region.boundingRect()
        top, left = rows.top, self._viewport.column
        for index, row, y in rows.between(top + dirty.top(), top + dirty.bottom() + 1):
            clip = dirty.translated(-left, top - y)
            current = self._here if self._current and self._current[0] == index else None
            painter.save()
            painter.translate(left, y - top)
            matches = self._highlights.matches_in_row(row, clip)
            paint_highlights(painter, rows.render_context.style, row, clip, matches, current)
            painter.restore()

    def _start(self, query: Query) -> None:
        self._counts, self._highlights = MatchCounts(query, self._viewport.rows, self._texts), MatchHighlights(query)
        self._changed.clear()
        self._current = self._here = None
        self._work = self._count_all_in_steps()
        self._viewport.widget.update()
        self._timer.start(0)
        self._continue()

    def _count_all_in_steps(self) -> Iterator[int]:
        count = len(self._counts)
        first = min(self._search_origin.row, count)
        return self._count_in_steps(chain(range(first, count), reversed(range(first))))

    def _count_in_steps(self, indices: Iterable[int]) -> Iterator[int]:
        """Count row by row; parse the row of the search origin down to there before one of its matches is chosen."""
        for index in self._counts.count(indices):
            while (
                index == self._search_origin.row
                and self._counts[index]
                and self._current is None
                and self._search_origin.read_step()
            ):
                yield index
            yield index

    def _continue(self) -> None:
        if self._is_coming:
            self._scroll_to_current()
        until = perf_counter() + SLICE_SECONDS
        before = self._counts.total
        while self._work and perf_counter() < until:
            index = next(self._work, None)
            if index is None:
                self._work = None
            elif self._current is None and (match := self._search_origin.choose_match(self._counts, index)):
                self._go_to(*match)
            if self._texts.is_waiting:
                break
        self._timer.setInterval(_WAIT_MS if self._texts.is_waiting else 0)
        if self._work is None and not self._is_coming:
            self._timer.stop()
        if self._work is None:
            self._finish()
        if self._work is None or self._counts.total != before:
            self._emit_status()

    def _finish(self) -> None:
        if self._current is None and self._counts.total:
            self._go_to(*self._counts.find(self._counts.total - 1))
        self._unfolding.fold_others(self._current[0] if self._current else None)
        if self._changed:
            self._restart_timer()

    def _restart_timer(self) -> None:
        if self._changed and self._work is None and not self._rest.isActive():
            self._rest.start()

    def _recheck(self) -> None:
        """Count the changed rows, without going to a match."""
        if self._work is None and self.is_on:
            changed, self._changed = sorted(self._changed), set[int]()
            self._work = self._recount_in_steps(changed)
            self._timer.start(0)

    def _recount_in_steps(self, changed: Iterable[int]) -> Iterator[int]:
        counts = self._counts
        for index in counts.count(changed):
            if self._current is None and counts[index]:
                self._current = index, 0
            yield index
        if self._current and not (self._here and counts.is_final(self._current[0], self._here)):
            self._remember_current()

    def _go_to(self, index: int, nth: int) -> None:
        """Make a match the current one, unfold its row, and scroll to it."""
        self._current = index, nth
        self._unfolding.fold_others(index)
        if nth < len(self._counts.matches_in_row(index)):
            self._unfolding.unfold(index)
        self._remember_current()
        self._is_coming = True
        self._scroll_to_current()

    def _scroll_to_current(self) -> None:
        """Scroll to the current match once everything before it in its row is parsed."""
        if not self._current or not self._here:
            self._is_coming = False
            return
        row, until = self._viewport.rows.row(self._current[0]), perf_counter() + SLICE_SECONDS
        while (section := first_lazy_section(row)) is not None and section <= self._here[0][0]:
            row.stack.read(section, until)
            if perf_counter() > until:
                self._timer.start(0)
                return
        self._is_coming = False
        scroll_to_text(self._viewport, self._scroller, self._current[0], self._here)
        self._search_origin.on_scrolled_away()
        self._viewport.widget.update()

    def _remember_current(self) -> None:
        self._here = None
        if self._current and (matches := self._counts.matches_in_row(self._current[0])):
            index, nth = self._current
            self._current = index, min(nth, len(matches) - 1)
            self._here = matches[self._current[1]]

    def _emit_status(self) -> None:
        current = self._counts.before(self._current[0]) + self._current[1] + 1 if self._current else 0
        self.status_changed.emit(FindStatus(current, self._counts.total, self._work is None))
