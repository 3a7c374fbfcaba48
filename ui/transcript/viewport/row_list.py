"""The rows of a transcript, their heights, and where the viewport stands over them; scrolling hangs on an anchor."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter

from desktop_agent.conversation.items import Added, Change, Removed
from desktop_agent.conversation.transcript import Transcript
from ui.transcript.blocks.block import BlockReplacement
from ui.transcript.rows.heights import Heights, ScrollAnchor
from ui.transcript.rows.render_context import RenderContext
from ui.transcript.rows.row import Row
from ui.transcript.rows.row_factory import make_row

ESTIMATED_ROW_HEIGHT = 160
"""Pixels: the height of a row that nobody has seen, about that of 500 characters."""

_MAX_ROWS = 240
_MARGIN_SCREENS = 2
"""Screens above and below that keep their layouts."""


class RowStore:
    """Rows are made when they are first asked for and given up when they are far away; all heights are pixels."""

    def __init__(self, transcript: Transcript, render_context: RenderContext, width: int, view: int) -> None:
        self.transcript = transcript
        self.render_context = render_context
        self.width, self.view = width, view
        self._heights = Heights(len(transcript), ESTIMATED_ROW_HEIGHT)
        self._rows: OrderedDict[int, Row] = OrderedDict()
        self._tidied_at = 0
        _cancel_renders(render_context)
        self.on_replaced: list[Callable[[int, BlockReplacement], None]] = []
        """Those who hear in which row blocks took the place of one that was not read."""

    def __len__(self) -> int:
        return len(self._heights)

    @property
    def total(self) -> int:
        """The height of all rows and the margins above and below."""
        return self._heights.total + 2 * self.margin

    @property
    def margin(self) -> int:
        """Above the first and below the last row."""
        return self.render_context.style.px(16)

    def _last(self) -> int:
        """One past the last row there is something for: the transcript may be ahead of the changes we were told."""
        return min(len(self._heights), len(self.transcript))

    def insert(self, index: int) -> None:
        """An item stands at index."""
        if index < len(self):
            self._rows = OrderedDict((at + (at >= index), row) for at, row in self._rows.items())
        self._heights.insert(index)

    def remove(self, first: int, count: int) -> None:
        """Items are gone."""
        self._heights.remove(first, count)
        kept = {at: row for at, row in self._rows.items() if not first <= at < first + count}
        for index in self._rows.keys() - kept.keys():
            self._rows[index].stack.forget_outside(0, 0)
        self._rows = OrderedDict((at - count if at >= first else at, row) for at, row in kept.items())

    def restyle(self, render_context: RenderContext) -> None:
        """Another theme or zoom: rows are made anew when they are seen."""
        self.render_context = render_context
        self._rows.clear()
        _cancel_renders(render_context)

    def set_width(self, width: int) -> None:
        """Another width: what was exact is a guess again."""
        if width != self.width:
            self.width = width
            for row in self._rows.values():
                row.set_width(width)

    def row_top(self, index: int) -> int:
        """The y of a row."""
        return self.margin + self._heights.top(index)

    def row_at(self, y: int) -> int:
        """The row that holds y, or the nearest one."""
        return self._heights.find(y - self.margin)

    def row(self, index: int) -> Row:
        """Made when it is first asked for."""
        found = self._rows.get(index)
        if found is None:
            found = self._rows[index] = make_row(self.transcript[index], self.render_context, self.width)
            self._heights[index] = found.stack.height
            found.stack.replaced = partial(self._blocks_replaced, found)
        self._rows.move_to_end(index)
        return found

    def _blocks_replaced(self, row: Row, replacement: BlockReplacement) -> None:
        index = next((at for at, each in self._rows.items() if each is row), None)
        if index is not None:
            self._heights[index] = row.stack.height
            for notify in self.on_replaced:
                notify(index, replacement)

    def between(self, top: int, bottom: int) -> Iterator[tuple[int, Row, int]]:
        """Index, row and y of the rows that reach into a span."""
        if not self._last():
            return
        index = self.row_at(top)
        y = self.row_top(index)
        while index < self._last() and y < bottom:
            row = self.row(index)
            yield index, row, y
            y += self._heights[index]
            index += 1

    def settle_between(self, top: int, bottom: int) -> bool:
        """Make exact what was read between two y; answers whether a height changed."""
        changed = False
        if not self._last():
            return changed
        index = self.row_at(top)
        while index < self._last() and (y := self.row_top(index)) < bottom:
            before = self._heights[index]
            row = self.row(index)
            changed |= row.stack.layout_between(top - y, bottom - y)
            self._heights[index] = row.stack.height
            changed |= before != row.stack.height
            index += 1
        return changed

    def existing_row(self, index: int) -> Row | None:
        """The row, if it has been made."""
        return self._rows.get(index)

    def index_of(self, item_id: str) -> int | None:
        """Where the row of an item stands, if it has been made."""
        return next((index for index, row in self._rows.items() if row.item.id == item_id), None)

    def update_row(self, index: int, what: str) -> int | None:
        """The item changed; answers the y inside its row from which it looks different, or None when it is unseen."""
        row = self._rows.get(index)
        if row is None:
            return None
        y = row.refresh(what)
        self._heights[index] = row.stack.height
        return y

    def remeasure_row(self, index: int) -> None:
        """A row changed by itself."""
        self._heights[index] = self.row(index).stack.height

    def release_far_rows(self, top: int) -> None:
        """Give up rows and layouts far from the screen, whose upper edge is at `top`."""
        # Looking for them costs time for every row: once for each screen is enough.
        if abs(top - self._tidied_at) <= self.view:
            return
        self._tidied_at = top
        far = _MARGIN_SCREENS * self.view
        if len(self._rows) > _MAX_ROWS:
            for index in list(self._rows)[: len(self._rows) - _MAX_ROWS // 2]:
                if not self._rows[index].is_open:
                    self._rows.pop(index).stack.forget_outside(0, 0)
        for index, row in self._rows.items():
            if not row.stack.has_layouts:
                continue
            y = self.row_top(index)
            if row.stack.height > 3 * self.view or not top - far < y + row.stack.height / 2 < top + self.view + far:
                row.stack.forget_outside(top - far - y, top + self.view + far - y)


def _cancel_renders(render_context: RenderContext) -> None:
    """No row that was shown until now waits for anything."""
    if render_context.formulas:
        render_context.formulas.cancel_all()


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
        return self.row_top(index) + row.stack.block_top(min(self._anchor.block, max(0, len(row.blocks) - 1)))

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
        block = row.stack.block_at(inside)
        self._anchor = ScrollAnchor(index, block, inside - row.stack.block_top(block))

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
                y = row.stack.block_top(block) + offset
                block = row.stack.block_at(y)
                offset = y - row.stack.block_top(block)
            self._anchor = ScrollAnchor(index, block, offset)

    def _read_nearby(self, above: int, below: int) -> bool:
        """One step of reading what lies so far around `top`; answers whether there was something to read."""
        for _ in range(_MAX_PASSES):
            top = self.top
            near = list(self.between(max(0, top - above), top + below))
            # Rows that were only now made are not as high as was guessed.
            if self.top == top:
                return any(row.stack.read_between(top - above - y, top + below - y) for _, row, y in near)
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
            self.row(index).stack.last_lazy_section() is not None for index in self._nearby_rows()
        )

    def has_lazy_sections_in_view(self) -> bool:
        """Whether something on the screen was not read yet, or not laid out since."""
        top = self.top
        return not self.is_view_laid_out or any(
            row.stack.has_lazy_section_between(top - y, top + self.view - y)
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
            while (last := row.stack.last_lazy_section()) is not None:
                row.stack.read(last, until)
                has_read = True
                if perf_counter() >= until:
                    return True
        return has_read


def index_after(index: int, changes: Sequence[Change]) -> int | None:
    """The number that a row has after these changes; None when it is gone."""
    for change in changes:
        match change:
            case Added(at) if at <= index:
                index += 1
            case Removed(first, count) if first <= index:
                if index < first + count:
                    return None
                index -= count
            case _:
                pass
    return index


def control_after(where: tuple[int, str], change: Change) -> tuple[int, str]:
    """A control, by its row's number and its key, after this change; (-1, "") when it is gone."""
    row = index_after(where[0], [change]) if where[0] >= 0 else None
    return (-1, "") if row is None else (row, where[1])
