"""Where the person reads, from which on something is looked for."""

from bisect import bisect_left

from ui.transcript.rows.row import Selection
from ui.transcript.surface.finding.tally import Tally
from ui.transcript.surface.places import boxes_in
from ui.transcript.surface.screen import Screen


class Origin:
    """A row and a y in it. While somebody goes on typing it is where they read when they began to."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self.row = 0
        self._y = 0
        self._left_at: tuple[int, int] | None = None

    def note(self) -> None:
        """They look for something else: unless they scrolled, they still read where they did."""
        here = self._here()
        if here != self._left_at:
            self.row, self._y = here

    def _here(self) -> tuple[int, int]:
        # Not `top` alone: it also changes when what stands above becomes exact.
        rows = self._screen.rows
        row = rows.row_at(rows.top) if len(rows) else 0
        return row, rows.top - rows.row_top(row)

    def left(self) -> None:
        """They were taken elsewhere."""
        self._left_at = self._here()

    def forget(self) -> None:
        """They read wherever they are now."""
        self._left_at = None

    def choose(self, tally: Tally, index: int) -> tuple[int, int] | None:
        """Of a row with matches the first one at or below the origin; of rows above it the nearest one."""
        if not tally[index]:
            return None
        if index > self.row:
            return index, 0
        if index < self.row:
            nearest = self.row if tally[self.row] else index
            return nearest, tally[nearest] - 1
        nth = self._first_below(tally)
        return None if nth is None else (index, nth)

    def _first_below(self, tally: Tally) -> int | None:
        row, places = self._screen.rows.row(self.row), tally.places(self.row)

        def is_below(place: Selection) -> bool:
            block = place[0][0]
            if block >= len(row.blocks):
                return True
            box = next(boxes_in(row, place), None)
            return (box.bottom() if box else row.block_box(block).bottom()) > self._y

        # Of thousands only a few are asked where they are: further on in the text is further down.
        nth = bisect_left(places, True, key=is_below)
        return nth if nth < len(places) else None
