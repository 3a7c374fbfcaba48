"""Where the person reads, from which on something is looked for."""

from bisect import bisect_left

from ui.transcript.rows.body.replacing import BlockReplacement
from ui.transcript.rows.row import RowSelection
from ui.transcript.surface.finding.reading import first_lazy_section
from ui.transcript.surface.finding.tally import MatchCounts
from ui.transcript.surface.places import text_boxes
from ui.transcript.surface.screen import RowViewport


class SearchOrigin:
    """A row, a block of it and a y in that. While somebody goes on typing it is where they read when they began to."""

    def __init__(self, viewport: RowViewport) -> None:
        self._viewport = viewport
        self.row = 0
        self._block = 0
        self._y = 0
        self._scrolled_to: tuple[int, int] | None = None
        viewport.on_replaced.append(self._on_replaced)

    def set_here(self) -> None:
        """They look for something else: unless they scrolled, they still read where they did."""
        here = self._current_position()
        if here != self._scrolled_to:
            self.row, y = here
            row = self._viewport.rows.row(self.row) if len(self._viewport.rows) else None
            self._block = row.block_at(y) if row and row.blocks else 0
            self._y = y - row.block_top(self._block) if row else 0

    def _current_position(self) -> tuple[int, int]:
        # Not `top` alone: it also changes when what stands above becomes exact.
        rows = self._viewport.rows
        row = rows.row_at(rows.top) if len(rows) else 0
        return row, rows.top - rows.row_top(row)

    def on_scrolled_away(self) -> None:
        """They were taken elsewhere."""
        self._scrolled_to = self._current_position()

    def forget(self) -> None:
        """They read wherever they are now."""
        self._scrolled_to = None

    def _on_replaced(self, row: int, replacement: BlockReplacement) -> None:
        """Blocks that were read stand in the place of one that was not."""
        if row != self.row:
            return
        block = replacement.map_position(self._block)[0]
        if self._block == replacement.at:
            # What was read of it stands where it stood.
            read = self._viewport.rows.row(row)
            y = read.block_top(block) + self._y
            block = read.block_at(y) if read.blocks else 0
            self._y = y - read.block_top(block)
        self._block = block

    def read_step(self) -> bool:
        """Read its row one step further down to it; answers whether there was something to read."""
        unread = self._next_lazy_section()
        if unread is not None:
            self._viewport.rows.row(self.row).read(unread, 0)
        return unread is not None

    def _next_lazy_section(self) -> int | None:
        """Until it is read, the places of matches are not those of the blocks that stand there."""
        unread = first_lazy_section(self._viewport.rows.row(self.row))
        return unread if unread is not None and unread <= self._block else None

    def choose_match(self, counts: MatchCounts, index: int) -> tuple[int, int] | None:
        """Of a row with matches the first one at or below the origin; of rows above it the nearest one.

        None in its own row as long as that is not read down to it.
        """
        if not counts[index]:
            return None
        if index > self.row:
            return index, 0
        if index < self.row:
            nearest = self.row if counts[self.row] else index
            return nearest, counts[nearest] - 1
        nth = self._first_below(counts) if self._next_lazy_section() is None else None
        return None if nth is None else (index, nth)

    def _first_below(self, counts: MatchCounts) -> int | None:
        row, places = self._viewport.rows.row(self.row), counts.matches_in_row(self.row)
        if not row.blocks:
            return 0
        here = min(self._block, len(row.blocks) - 1)
        y = row.block_top(here) + self._y

        def is_below(position: RowSelection) -> bool:
            block = position[0][0]
            if block != here:
                return block > here
            box = next(text_boxes(row, position), None)
            return (box.bottom() if box else row.block_box(block).bottom()) > y

        # Of thousands only a few are asked where they are: further on in the text is further down.
        nth = bisect_left(places, True, key=is_below)
        return nth if nth < len(places) else None
