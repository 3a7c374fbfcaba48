"""Find in conversation: which match is the current one, how it comes into view, and what is marked."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from time import perf_counter

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QPainter, QRegion

from desktop_agent.conversation.items import Added, Change, Removed, Updated
from ui.transcript.row_changes import number_after
from ui.transcript.rows.row import Selection
from ui.transcript.surface.finding.folds import Folds
from ui.transcript.surface.finding.marks import Marks, paint_marks
from ui.transcript.surface.finding.needle import Needle
from ui.transcript.surface.finding.origin import Origin
from ui.transcript.surface.finding.reading import Texts, first_unread
from ui.transcript.surface.finding.tally import Tally
from ui.transcript.surface.places import show_place
from ui.transcript.surface.screen import Screen
from ui.transcript.surface.scroller import Scroller

SLICE = 0.004
"""Seconds of work between two looks at the event loop."""

_REST = 80
"""Milliseconds between two looks at rows that change."""


@dataclass(frozen=True, slots=True)
class Found:
    """How many there are, and the number of the current one, from 1 on; `complete` when all rows were looked at."""

    current: int = 0
    total: int = 0
    complete: bool = True


class Finding(QObject):
    """Off while its needle is empty. What is found first where the person reads becomes the current match."""

    found = Signal(object)

    def __init__(self, screen: Screen, scroller: Scroller, parent: QObject) -> None:
        super().__init__(parent)
        self._screen = screen
        self._scroller = scroller
        self._folds = Folds(screen, scroller)
        self._texts = Texts(screen.rows)
        self._tally = Tally(Needle(""), screen.rows, self._texts)
        self._marks = Marks(self._tally.needle)
        self._work: Iterator[int] | None = None
        self._changed: set[int] = set()
        self._current: tuple[int, int] | None = None
        self._here: Selection | None = None
        self._origin = Origin(screen)
        self._is_coming = False
        self._timer, self._rest = QTimer(self), QTimer(self)
        self._timer.timeout.connect(self._go_on)
        self._rest.setSingleShot(True)
        self._rest.setInterval(_REST)
        self._rest.timeout.connect(self._look_again)

    @property
    def is_on(self) -> bool:
        """Whether something is looked for."""
        return bool(self._tally.needle)

    def look_for(self, needle: Needle) -> None:
        """Look for this from now on."""
        if needle != self._tally.needle:
            self._origin.note()
            self._start(needle)

    def stop(self) -> None:
        """Look for nothing any more. What was opened for the current match stays open."""
        self._folds.keep()
        self._origin.forget()
        self._texts = Texts(self._screen.rows)
        self._start(Needle(""))
        self._timer.stop()
        self._rest.stop()

    def rows_shown(self) -> None:
        """Other rows are there."""
        self._folds.keep()
        self._origin.forget()
        self._origin.note()
        self._texts = Texts(self._screen.rows)
        self._start(self._tally.needle)

    def step(self, by: int) -> None:
        """To a match after or before the current one, and around the ends."""
        tally = self._tally
        if tally.total and self._current:
            number = (tally.before(self._current[0]) + self._current[1] + by) % tally.total
            self._go_to(*tally.find(number))
        elif tally.total:
            # The row of the current match is gone.
            self._origin.note()
            number = (tally.before(min(self._origin.row, len(tally) - 1)) - (by < 0)) % tally.total
            self._go_to(*tally.find(number))
        self._tell()

    def apply(self, changes: Sequence[Change]) -> None:
        """After a frame's changes were taken in: only the rows that changed are looked at again."""
        if not self.is_on:
            return
        total = self._tally.total
        self._folds.apply(changes)
        self._changed = {there for each in self._changed if (there := number_after(each, changes)) is not None}
        for position, change in enumerate(changes, start=1):
            match change:
                case Added(index):
                    self._tally.insert(index)
                    self._note_change(number_after(index, changes[position:]), is_new=True)
                case Removed(first, count):
                    self._tally.remove(first, count)
                case Updated(index, _):
                    self._note_change(number_after(index, changes[position:]))
        if self._current:
            row = number_after(self._current[0], changes)
            self._current = None if row is None else (row, self._current[1])
            self._here = self._here if self._current else None
        if total != self._tally.total:
            self._tell()
        self._rest_first()

    def _note_change(self, index: int | None, *, is_new: bool = False) -> None:
        """A row is to be looked at again, if it is still there."""
        if index is None:
            return
        self._changed.add(index)
        if not is_new:
            item_id = self._screen.rows.transcript[index].id
            self._texts.forget(item_id)
            self._marks.forget(item_id)
            self._screen.repaint_rows(index, index)

    def paint(self, painter: QPainter, region: QRegion) -> None:
        """Mark what is on the screen."""
        if not self.is_on:
            return
        rows, dirty = self._screen.rows, region.boundingRect()
        top, left = rows.top, self._screen.column
        for index, row, y in rows.between(top + dirty.top(), top + dirty.bottom() + 1):
            clip = dirty.translated(-left, top - y)
            current = self._here if self._current and self._current[0] == index else None
            painter.save()
            painter.translate(left, y - top)
            paint_marks(painter, rows.stage.look, row, clip, self._marks.in_row(row, clip), current)
            painter.restore()

    def _start(self, needle: Needle) -> None:
        self._tally, self._marks = Tally(needle, self._screen.rows, self._texts), Marks(needle)
        self._changed.clear()
        self._current = self._here = None
        count = len(self._tally)
        first = min(self._origin.row, count)
        self._work = self._counted(chain(range(first, count), reversed(range(first))))
        self._screen.viewport.update()
        self._timer.start(0)
        self._go_on()

    def _counted(self, indices: Iterable[int]) -> Iterator[int]:
        """Row by row. Where the person reads, the row is read down to there before one of its matches is chosen."""
        for index in self._tally.count(indices):
            while index == self._origin.row and self._tally[index] and self._current is None and self._origin.read_on():
                yield index
            yield index

    def _go_on(self) -> None:
        """One slice."""
        if self._is_coming:
            self._arrive()
        until = perf_counter() + SLICE
        before = self._tally.total
        while self._work and perf_counter() < until:
            index = next(self._work, None)
            if index is None:
                self._work = None
            elif self._current is None and (there := self._origin.choose(self._tally, index)):
                self._go_to(*there)
        if self._work is None and not self._is_coming:
            self._timer.stop()
        if self._work is None:
            self._finish()
        if self._work is None or self._tally.total != before:
            self._tell()

    def _finish(self) -> None:
        if self._current is None and self._tally.total:
            self._go_to(*self._tally.find(self._tally.total - 1))
        self._folds.fold_others(self._current[0] if self._current else None)
        if self._changed:
            self._rest_first()

    def _rest_first(self) -> None:
        if self._changed and self._work is None and not self._rest.isActive():
            self._rest.start()

    def _look_again(self) -> None:
        """At the rows that changed. Nobody asked to go to what is found there."""
        if self._work is None and self.is_on:
            changed, self._changed = sorted(self._changed), set[int]()
            self._work = self._counted_again(changed)
            self._timer.start(0)

    def _counted_again(self, changed: Iterable[int]) -> Iterator[int]:
        tally = self._tally
        for index in tally.count(changed):
            if self._current is None and tally[index]:
                self._current = index, 0
            yield index
        if self._current and not (self._here and tally.is_final(self._current[0], self._here)):
            self._note_place()

    def _go_to(self, index: int, nth: int) -> None:
        """Make it the current match, open what it is folded in, and scroll to it."""
        self._current = index, nth
        self._folds.fold_others(index)
        self._folds.open(index, self._tally.places(index), nth)
        self._note_place()
        self._is_coming = True
        self._arrive()

    def _arrive(self) -> None:
        """Scroll to the current match, once everything before it in its row was read."""
        if not self._current or not self._here:
            self._is_coming = False
            return
        row, until = self._screen.rows.row(self._current[0]), perf_counter() + SLICE
        while (unread := first_unread(row)) is not None and unread <= self._here[0][0]:
            row.read(unread, until)
            if perf_counter() > until:
                self._timer.start(0)
                return
        self._is_coming = False
        show_place(self._screen, self._scroller, self._current[0], self._here)
        self._origin.left()
        self._screen.viewport.update()

    def _note_place(self) -> None:
        """Where the current match is."""
        self._here = None
        if self._current:
            index, nth = self._current
            places = self._tally.places(index)
            if places:
                self._current = index, min(nth, len(places) - 1)
                self._here = places[self._current[1]]

    def _tell(self) -> None:
        current = self._tally.before(self._current[0]) + self._current[1] + 1 if self._current else 0
        self.found.emit(Found(current, self._tally.total, self._work is None))
