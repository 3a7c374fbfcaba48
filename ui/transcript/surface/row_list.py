"""Where the screen stands over the rows.

Places on the screen hang on an anchor, a block and an offset below its top. Whatever becomes exact or changes above
it moves the scroll value, never the picture.
"""

from desktop_agent.conversation.transcript import Transcript
from ui.transcript.geometry import Anchor
from ui.transcript.rows.stage import Stage
from ui.transcript.surface.row_store import RowStore


class RowList(RowStore):
    """`top` is the y of the screen's upper edge, `view` the screen's height, all in pixels."""

    def __init__(self, transcript: Transcript, stage: Stage, width: int, view: int) -> None:
        super().__init__(transcript, stage, width, view)
        self.following = True
        self._anchor = Anchor(0, 0, 0)

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
        if not len(self) or self._anchor.row >= self._last():
            return 0
        row = self.row(self._anchor.row)
        return self.row_top(self._anchor.row) + row.block_top(min(self._anchor.block, max(0, len(row.blocks) - 1)))

    def settle(self) -> None:
        """Make exact what the screen shows. Ends when a pass changes no height."""
        for _ in range(12):
            top = self.top
            if not self.settle_between(top, top + self.view) and self.top == top:
                break
        if not self.following:
            self._anchor_at(self.top)
        self.tidy(self.top)

    def _anchor_at(self, y: int) -> None:
        """Hang the screen on the block at y."""
        if not self._last():
            self._anchor = Anchor(0, 0, 0)
            return
        index = min(self.row_at(y), self._last() - 1)
        row = self.row(index)
        inside = y - self.row_top(index)
        block = row.block_at(inside)
        self._anchor = Anchor(index, block, inside - row.block_top(block))

    def scroll_by(self, pixels: int) -> int:
        """Move over laid out content; answers by how many pixels the picture really moved."""
        if pixels < 0:
            self._settle_above(-pixels)
        start = self.top
        self._anchor_at(max(0, min(self.bottom, start + pixels)))
        self.following = False
        self.settle()
        return self.top - start

    def _settle_above(self, pixels: int) -> None:
        """Make exact what comes into sight above, with the picture below staying where it is."""
        if self.following:
            self._anchor_at(self.top)
            self.following = False
        for _ in range(12):
            top = self.top
            anchor_y = top - self._anchor.offset
            if not self.settle_between(max(0, top - pixels), anchor_y):
                break

    def hold(self) -> None:
        """Stop following and stay exactly here."""
        self._anchor_at(self.top)
        self.following = False

    def jump_to(self, y: int) -> None:
        """Go to a place, guessed or exact."""
        self.following = False
        self._anchor_at(max(0, min(self.bottom, y)))
        self.settle()

    def resize(self, width: int, view: int) -> None:
        """Another screen: what was exact is a guess again."""
        if not self.following:
            self._anchor_at(self.top)
        self.view = view
        self.place(width)
        self.settle()

    def insert(self, index: int) -> None:
        """An item stands at index; what is read stays."""
        if index < len(self) and index <= self._anchor.row and not self.following:
            self._anchor = Anchor(self._anchor.row + 1, self._anchor.block, self._anchor.offset)
        super().insert(index)

    def remove(self, first: int, count: int) -> None:
        """Items are gone; what is read stays, if it is still there."""
        super().remove(first, count)
        if self._anchor.row >= first + count:
            self._anchor = Anchor(self._anchor.row - count, self._anchor.block, self._anchor.offset)
        elif self._anchor.row >= first:
            self._anchor = Anchor(max(0, first - 1), 0, 0)
