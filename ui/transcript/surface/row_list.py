"""Where the screen stands over the rows.

Places on the screen hang on an anchor, a block and an offset below its top. Whatever becomes exact or changes above
it moves the scroll value, never the picture.
"""

from time import perf_counter

from desktop_agent.conversation.transcript import Transcript
from ui.transcript.geometry import ScrollAnchor
from ui.transcript.rows.body.replacing import BlockReplacement
from ui.transcript.rows.stage import RenderContext
from ui.transcript.surface.row_store import RowStore

_MAX_PASSES = 12
_MAX_STEPS = 8
"""Of reading what is on the screen, before the loop goes on."""


class RowList(RowStore):
    """`top` is the y of the screen's upper edge, `view` the screen's height, all in pixels."""

    def __init__(self, transcript: Transcript, render_context: RenderContext, width: int, view: int) -> None:
        super().__init__(transcript, render_context, width, view)
        self.following = True
        self._anchor = ScrollAnchor(0, 0, 0)
        self.is_view_laid_out = True
        """Not while what was read on the screen is still laid out, in slices."""
        self.on_replaced.append(self._keep_anchor)

    @property
    def bottom(self) -> int:
        """The largest `top`."""
        return max(0, self.total - self.view)

    @property
    def top(self) -> int:
        """Where the screen's upper edge is now."""
        if self.following:
            return self.bottom
        return min(self.bottom, max(0, self._anchor_top() + self._anchor.offset))

    def _anchor_top(self) -> int:
        # The transcript may be shorter already than what the view was told of.
        index = min(self._anchor.row, self._last() - 1)
        if index < 0:
            return 0
        row = self.row(index)
        return self.row_top(index) + row.block_top(min(self._anchor.block, max(0, len(row.blocks) - 1)))

    def settle(self, steps: int = _MAX_STEPS) -> None:
        """Make exact what the screen shows, and read so much for it. Ends when a pass changes no height."""
        for _ in range(_MAX_PASSES + steps):
            if steps and self._read_nearby(0, self.view):
                steps -= 1
                continue
            top = self.top
            if not self.settle_between(top, top + self.view) and self.top == top:
                break
        if not self.following:
            self._set_anchor(self.top)
        self.release_far_rows(self.top)

    def _set_anchor(self, y: int) -> None:
        """Hang the screen on the block at y."""
        if not self._last():
            self._anchor = ScrollAnchor(0, 0, 0)
            return
        index = min(self.row_at(y), self._last() - 1)
        row = self.row(index)
        inside = y - self.row_top(index)
        block = row.block_at(inside)
        self._anchor = ScrollAnchor(index, block, inside - row.block_top(block))

    def scroll_by(self, pixels: int) -> int:
        """Move over laid out content; answers by how many pixels the picture really moved."""
        if pixels < 0:
            self._settle_above(-pixels)
        start = self.top
        self._set_anchor(max(0, min(self.bottom, start + pixels)))
        self.following = False
        self.settle()
        return self.top - start

    def _settle_above(self, pixels: int) -> None:
        """Make exact what comes into sight above, with the picture below staying where it is."""
        if self.following:
            self._set_anchor(self.top)
            self.following = False
        steps = _MAX_STEPS
        for _ in range(_MAX_PASSES + _MAX_STEPS):
            if steps and self._read_nearby(pixels, 0):
                steps -= 1
                continue
            top = self.top
            if not self.settle_between(max(0, top - pixels), top - self._anchor.offset):
                break

    def stop_following(self) -> None:
        """Stop following and stay exactly here."""
        self._set_anchor(self.top)
        self.following = False

    def jump_to(self, y: int) -> None:
        """Go to a place, guessed or exact."""
        self.following = False
        self._set_anchor(max(0, min(self.bottom, y)))
        self.settle()

    def resize(self, width: int, view: int) -> None:
        """Another screen: what was exact is a guess again."""
        if not self.following:
            self._set_anchor(self.top)
        self.view = view
        self.set_width(width)
        self.settle()

    def insert(self, index: int) -> None:
        """An item stands at index; what is read stays."""
        if index < len(self) and index <= self._anchor.row and not self.following:
            self._anchor = ScrollAnchor(self._anchor.row + 1, self._anchor.block, self._anchor.offset)
        super().insert(index)

    def remove(self, first: int, count: int) -> None:
        """Items are gone; what is read stays, if it is still there."""
        super().remove(first, count)
        if self._anchor.row >= first + count:
            self._anchor = ScrollAnchor(self._anchor.row - count, self._anchor.block, self._anchor.offset)
        elif self._anchor.row >= first:
            self._anchor = ScrollAnchor(max(0, first - 1), 0, 0)

    def _keep_anchor(self, index: int, replacement: BlockReplacement) -> None:
        """What is read stays, whatever its block's number is now."""
        if index == self._anchor.row:
            block, offset = replacement.map_position(self._anchor.block)[0], self._anchor.offset
            if self._anchor.block == replacement.at:
                row = self.row(index)
                y = row.block_top(block) + offset
                block = row.block_at(y)
                offset = y - row.block_top(block)
            self._anchor = ScrollAnchor(index, block, offset)

    def _read_nearby(self, above: int, below: int) -> bool:
        """One step of reading what lies so far around `top`; answers whether there was something to read."""
        for _ in range(_MAX_PASSES):
            top = self.top
            near = list(self.between(max(0, top - above), top + below))
            # Rows that were only now made are not as high as was guessed.
            if self.top == top:
                return any(row.read_between(top - above - y, top + below - y) for _, row, y in near)
        return False

    def _nearby_rows(self) -> list[int]:
        """Rows that are made, on the screen first, then on the screens beside it."""
        if not self._last():
            return []
        top = self.top
        first, last = self.row_at(top - self.view), min(self.row_at(top + 2 * self.view), self._last() - 1)
        seen = range(self.row_at(top), self.row_at(top + self.view) + 1)
        return sorted(
            (index for index in range(first, last + 1) if self.existing_row(index)), key=lambda at: at not in seen
        )

    def has_lazy_sections(self) -> bool:
        """Whether something of the rows near the screen was not read yet, or not laid out since."""
        return not self.is_view_laid_out or any(
            self.row(index).last_lazy_section() is not None for index in self._nearby_rows()
        )

    def has_lazy_sections_in_view(self) -> bool:
        """Whether something on the screen was not read yet, or not laid out since."""
        top = self.top
        return not self.is_view_laid_out or any(
            row.has_lazy_section_between(top - y, top + self.view - y)
            for _, row, y in self.between(top, top + self.view)
        )

    def read_in_view(self, until: float) -> None:
        """Read what is on the screen until the clock says so, one step at least."""
        while self._read_nearby(0, self.view) and perf_counter() < until:
            pass

    def read_ahead(self, until: float) -> bool:
        """Read near the screen until the clock says so, one step at least; answers whether anything was unread."""
        has_read = False
        for index in self._nearby_rows():
            row = self.row(index)
            while (last := row.last_lazy_section()) is not None:
                row.read(last, until)
                has_read = True
                if perf_counter() >= until:
                    return True
        return has_read
