"""The rows of a transcript and where they stand: guessed heights far away, exact ones near the screen.

Places on the screen hang on an anchor, a block and an offset below its top. Whatever becomes exact or changes above
it moves the scroll value, never the picture.
"""

from collections import OrderedDict
from collections.abc import Iterator

from desktop_agent.conversation.transcript import Transcript
from ui.transcript.geometry import Anchor, Heights
from ui.transcript.rows.chooser import row_for
from ui.transcript.rows.row import Row
from ui.transcript.rows.stage import Stage

GUESS = 160
"""Pixels: the height of a row that nobody has seen, about that of 500 characters."""

_KEPT_ROWS = 240
_MARGIN = 2
"""Screens above and below that keep their layouts."""


class RowList:
    """`top` is the y of the screen's upper edge, `view` the screen's height, all in pixels."""

    def __init__(self, transcript: Transcript, stage: Stage, width: int, view: int) -> None:
        self.transcript = transcript
        self.stage = stage
        self.width, self.view = width, view
        self.following = True
        self._anchor = Anchor(0, 0, 0)
        self._heights = Heights(len(transcript), GUESS)
        self._rows: OrderedDict[int, Row] = OrderedDict()
        self._tidied_at = 0

    def __len__(self) -> int:
        return len(self._heights)

    @property
    def total(self) -> int:
        """The height of all rows and the margins above and below."""
        return self._heights.total + 2 * self._margin

    @property
    def _margin(self) -> int:
        return self.stage.look.px(16)

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
        if not len(self) or self._anchor.row >= len(self):
            return 0
        row = self.row(self._anchor.row)
        return self.row_top(self._anchor.row) + row.block_top(min(self._anchor.block, max(0, len(row.blocks) - 1)))

    def row_top(self, index: int) -> int:
        """The y of a row."""
        return self._margin + self._heights.top(index)

    def row_at(self, y: int) -> int:
        """The row that holds y, or the nearest one."""
        return self._heights.find(y - self._margin)

    def row(self, index: int) -> Row:
        """Made when it is first asked for."""
        found = self._rows.get(index)
        if found is None:
            found = self._rows[index] = row_for(self.transcript[index], self.stage, self.width)
            self._heights[index] = found.height
        self._rows.move_to_end(index)
        return found

    def known(self, index: int) -> Row | None:
        """The row, if it has been made."""
        return self._rows.get(index)

    def between(self, top: int, bottom: int) -> Iterator[tuple[int, Row, int]]:
        """Index, row and y of the rows that reach into a span."""
        if not len(self):
            return
        index = self.row_at(top)
        y = self.row_top(index)
        while index < len(self) and y < bottom:
            row = self.row(index)
            yield index, row, y
            y += self._heights[index]
            index += 1

    def settle(self) -> None:
        """Make exact what the screen shows. Ends when a pass changes no height."""
        for _ in range(12):
            top = self.top
            if not self._settle_between(top, top + self.view) and self.top == top:
                break
        if not self.following:
            self._anchor_at(self.top)
        # Looking for what is far away costs time for every row: once for each screen is enough.
        if abs(self.top - self._tidied_at) > self.view:
            self._tidied_at = self.top
            self._give_up_far_ones()

    def _settle_between(self, top: int, bottom: int) -> bool:
        changed = False
        if not len(self):
            return changed
        index = self.row_at(top)
        while index < len(self) and (y := self.row_top(index)) < bottom:
            before = self._heights[index]
            row = self.row(index)
            row.settle(top - y, bottom - y)
            self._heights[index] = row.height
            changed |= before != row.height
            index += 1
        return changed

    def _anchor_at(self, y: int) -> None:
        """Hang the screen on the block at y."""
        if not len(self):
            self._anchor = Anchor(0, 0, 0)
            return
        index = self.row_at(y)
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
            if not self._settle_between(max(0, top - pixels), anchor_y):
                break

    def hold(self) -> None:
        """Stop following and stay exactly here."""
        self._anchor_at(self.top)
        self.following = False

    def index_of(self, item_id: str) -> int | None:
        """Where the row of an item stands, if it has been made."""
        return next((index for index, row in self._rows.items() if row.item.id == item_id), None)

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
        if width != self.width:
            self.width = width
            for row in self._rows.values():
                row.place(width)
        self.settle()

    def restyle(self, stage: Stage) -> None:
        """Another theme or zoom: rows are made anew when they are seen."""
        self.stage = stage
        self._rows.clear()

    def added(self, index: int) -> None:
        """An item stands at index."""
        if index < len(self):
            self._rows = OrderedDict((at + (at >= index), row) for at, row in self._rows.items())
            if index <= self._anchor.row and not self.following:
                self._anchor = Anchor(self._anchor.row + 1, self._anchor.block, self._anchor.offset)
        self._heights.insert(index)

    def removed(self, first: int, count: int) -> None:
        """Items are gone."""
        self._heights.remove(first, count)
        kept = {at: row for at, row in self._rows.items() if not first <= at < first + count}
        self._rows = OrderedDict((at - count if at >= first else at, row) for at, row in kept.items())
        if self._anchor.row >= first + count:
            self._anchor = Anchor(self._anchor.row - count, self._anchor.block, self._anchor.offset)
        elif self._anchor.row >= first:
            self._anchor = Anchor(max(0, first - 1), 0, 0)

    def updated(self, index: int, what: str) -> int | None:
        """The item changed; answers the y inside its row from which it looks different, or None when it is unseen."""
        row = self._rows.get(index)
        if row is None:
            return None
        y = row.refresh(what)
        self._heights[index] = row.height
        return y

    def measured(self, index: int) -> None:
        """A row changed by itself."""
        self._heights[index] = self.row(index).height

    def _give_up_far_ones(self) -> None:
        top = self.top
        far = _MARGIN * self.view
        if len(self._rows) > _KEPT_ROWS:
            for index in list(self._rows)[: len(self._rows) - _KEPT_ROWS // 2]:
                if not self._rows[index].is_open:
                    del self._rows[index]
        for index, row in self._rows.items():
            y = self.row_top(index)
            if row.height > 3 * self.view or not top - far < y + row.height / 2 < top + self.view + far:
                row.forget_outside(top - far - y, top + self.view + far - y)
