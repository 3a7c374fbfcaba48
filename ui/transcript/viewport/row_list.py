"""The rows of a transcript, their heights, and where the viewport is over them; scrolling is bound to an anchor."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from desktop_agent.conversation.items import Added, Change, Prepended, Removed
from desktop_agent.conversation.transcript import Transcript
from ui.transcript.blocks.block import BlockReplacement
from ui.transcript.blocks.message_footer import FOOTER_HEIGHT
from ui.transcript.rows.block_stack import BlockStack
from ui.transcript.rows.heights import Heights
from ui.transcript.rows.message_actions import update_footer
from ui.transcript.rows.message_rows import AnswerRow, ThinkingRow
from ui.transcript.rows.render_context import RenderContext
from ui.transcript.rows.row import Row
from ui.transcript.rows.row_factory import make_row

ESTIMATED_ROW_HEIGHT = 160
"""Pixels: the height of a row that was never laid out, about that of 500 characters."""

_MAX_ROWS = 240
_MARGIN_SCREENS = 2
"""Screens above and below that keep their layouts."""

_MAX_PASSES = 12
_MAX_STEPS = 8
"""Steps of parsing visible sections before the event loop runs again."""


@dataclass(frozen=True, slots=True)
class ScrollAnchor:
    """A position that stays where it is on the screen: `offset` pixels below the top of a block of a row."""

    row: int = 0
    block: int = 0
    offset: int = 0

    def after_replacement(self, row: int, stack: BlockStack, replacement: BlockReplacement) -> "ScrollAnchor":
        """Return the anchor after blocks replaced one of a row; the blocks parsed from it are where it was."""
        if row != self.row:
            return self
        block = replacement.map_position(self.block)[0]
        if self.block != replacement.at:
            return replace(self, block=block)
        return anchor_in_row(row, stack, stack.block_top(block) + self.offset)


def anchor_in_row(row: int, stack: BlockStack, y: int) -> ScrollAnchor:
    """Return the anchor at a y of a row."""
    block = stack.block_at(y)
    return ScrollAnchor(row, block, y - stack.block_top(block))


class RowList:
    """Rows are made on demand and dropped far from the viewport. All measures are pixels.

    `top` is the y of the viewport's upper edge, `view` the viewport's height.
    """

    def __init__(self, transcript: Transcript, render_context: RenderContext, width: int, view: int) -> None:
        self.transcript = transcript
        self.width, self.view = width, view
        self.following = True
        self.padding = 0
        """Empty pixels at the end, for a version that is shorter than the one whose place it takes."""
        self.is_view_laid_out = True
        """False while the parsed visible blocks are still laid out, in slices."""
        self.on_replaced: list[Callable[[int, BlockReplacement], None]] = []
        """Called with the row when blocks replaced a lazy section."""
        self._heights = Heights(len(transcript), ESTIMATED_ROW_HEIGHT)
        self._rows: OrderedDict[int, Row] = OrderedDict()
        self._anchor = ScrollAnchor()
        self._released_at = 0
        self._use(render_context)

    def __len__(self) -> int:
        return len(self._heights)

    @property
    def count(self) -> int:
        """The number of rows that have an item: the transcript may be ahead of the changes applied here."""
        return min(len(self._heights), len(self.transcript))

    @property
    def total(self) -> int:
        """The height of all rows and the margins above and below.

        While an answer grows, the room of what will be below it is kept: nothing jumps when it ends.
        """
        actions = self.render_context.message_actions
        reserved = self._footer_height if actions and actions.is_working else 0
        return self._heights.total + 2 * self.margin + reserved + self.padding

    @property
    def bottom(self) -> int:
        """The largest `top`."""
        return max(0, self.total - self.view)

    @property
    def top(self) -> int:
        return self.bottom if self.following else min(self.bottom, max(0, self._anchor_top() + self._anchor.offset))

    def _anchor_top(self) -> int:
        index = min(self._anchor.row, self.count - 1)
        if index < 0:
            return 0
        row = self.row(index)
        return self.row_top(index) + row.stack.block_top(min(self._anchor.block, max(0, len(row.blocks) - 1)))

    def insert(self, index: int) -> None:
        """Insert a row; the anchor stays on its text."""
        if index < len(self):
            if index <= self._anchor.row and not self.following:
                self._anchor = replace(self._anchor, row=self._anchor.row + 1)
            self._rows = OrderedDict((number + (number >= index), row) for number, row in self._rows.items())
        self._heights.insert(index)

    def prepend(self, count: int) -> None:
        """Insert `count` rows at the beginning; the anchor stays on its text."""
        self._anchor = replace(self._anchor, row=self._anchor.row + count)
        self._rows = OrderedDict((number + count, row) for number, row in self._rows.items())
        self._heights.replace(0, 0, [ESTIMATED_ROW_HEIGHT] * count)

    def remove(self, first: int, count: int) -> None:
        """Remove rows; the anchor stays on its text, or moves to the row above."""
        self._heights.remove(first, count)
        kept = {index: row for index, row in self._rows.items() if not first <= index < first + count}
        for index in self._rows.keys() - kept.keys():
            self._rows[index].stack.forget_outside(0, 0)
        self._rows = OrderedDict((index - count if index >= first else index, row) for index, row in kept.items())
        row = index_after(self._anchor.row, [Removed(first, count)])
        self._anchor = ScrollAnchor(max(0, first - 1)) if row is None else replace(self._anchor, row=row)

    def restyle(self, render_context: RenderContext, width: int, kept: Iterable[int]) -> None:
        """Use another style: rows are made anew when visible, but answers and reasoning among `kept` are restyled.

        Positions in those rows stay valid.
        """
        rows = {index: row for index in kept if isinstance(row := self.existing_row(index), AnswerRow | ThinkingRow)}
        for row in rows.values():
            row.restyle(width)
        self._rows.clear()
        self._use(render_context)
        self._rows.update(rows)
        for index in rows:
            self.remeasure_row(index)

    def _use(self, render_context: RenderContext) -> None:
        self.render_context = render_context
        # The rows shown until now wait for these.
        render_context.formulas.cancel_all()
        # Computed once for a style: each frame uses them often.
        self.margin = render_context.style.px(16)
        """The space above the first and below the last row."""
        self._footer_height = render_context.style.px(FOOTER_HEIGHT + 4)

    def resize(self, width: int, view: int) -> None:
        """Set the size of the viewport; with another width, heights become estimates again."""
        if not self.following:
            self._anchor = self.anchor_at(self.top)
        self.view = view
        if width != self.width:
            self.width = width
            for row in self._rows.values():
                row.set_width(width)
        self.settle()

    def row_top(self, index: int) -> int:
        """Return the y of a row."""
        return self.margin + self._heights.top(index)

    def row_at(self, y: int) -> int:
        """Return the row at y, or the nearest one."""
        return self._heights.find(y - self.margin)

    def row(self, index: int) -> Row:
        """Return the row, which is made on demand."""
        row = self._rows.get(index)
        if row is None:
            row = self._rows[index] = make_row(self.transcript[index], self.render_context, self.width)
            update_footer(row, self.transcript, index)
            self._heights[index] = row.stack.height
            row.stack.replaced = partial(self._on_blocks_replaced, row)
        self._rows.move_to_end(index)
        return row

    def _on_blocks_replaced(self, row: Row, replacement: BlockReplacement) -> None:
        index = next((index for index, known in self._rows.items() if known is row), None)
        if index is not None:
            self._heights[index] = row.stack.height
            self._anchor = self._anchor.after_replacement(index, row.stack, replacement)
            for notify in self.on_replaced:
                notify(index, replacement)

    def between(self, top: int, bottom: int) -> Iterator[tuple[int, Row, int]]:
        """Yield index, row and y of the rows between two y."""
        count = self.count
        if not count:
            return
        index = self.row_at(top)
        y = self.row_top(index)
        while index < count and y < bottom:
            row = self.row(index)
            yield index, row, y
            y += self._heights[index]
            index += 1

    def existing_row(self, index: int) -> Row | None:
        """Return the row if it has been made."""
        return self._rows.get(index)

    def index_of(self, item_id: str) -> int | None:
        """Return the index of an item's row if that has been made."""
        return next((index for index, row in self._rows.items() if row.item.id == item_id), None)

    def update_row(self, index: int, what: str) -> int | None:
        """Show a change of the item; return the y in its row from which it looks different, None if not made yet."""
        row = self._rows.get(index)
        if row is None:
            return None
        y = row.refresh(what)
        row.restore_footer()
        self._heights[index] = row.stack.height
        return y

    def update_footers(self) -> int | None:
        """Show what can be done with each message now; return the first row whose height changed."""
        first = None
        for index, row in sorted(self._rows.items()):
            # The transcript may be ahead of the changes applied here.
            if index < self.count and self.transcript[index] is row.item:
                if update_footer(row, self.transcript, index):
                    first = index if first is None else first
                self._heights[index] = row.stack.height
        return first

    def remeasure_row(self, index: int) -> None:
        """Update the height of a row that changed by itself."""
        self._heights[index] = self.row(index).stack.height

    def _release_far_rows(self, top: int) -> None:
        # Looking for them costs time for every row: once for each screen is enough.
        if abs(top - self._released_at) <= self.view:
            return
        self._released_at = top
        far = _MARGIN_SCREENS * self.view
        if len(self._rows) > _MAX_ROWS:
            for index in list(self._rows)[: len(self._rows) - _MAX_ROWS // 2]:
                if not self._rows[index].is_open:
                    self._rows.pop(index).stack.forget_outside(0, 0)
        for index, row in self._rows.items():
            if not row.stack.has_layouts:
                continue
            y, height = self.row_top(index), row.stack.height
            if height > 3 * self.view or not top - far < y + height / 2 < top + self.view + far:
                row.stack.forget_outside(top - far - y, top + self.view + far - y)

    def settle(self, steps: int = _MAX_STEPS) -> None:
        """Lay out what is visible, and parse up to `steps` steps for it, until no height changes."""
        self._settle_around(0, self.view, steps)
        if not self.following:
            self._anchor = self.anchor_at(self.top)
        self._release_far_rows(self.top)

    def _settle_around(self, above: int, below: int, steps: int = _MAX_STEPS) -> None:
        """Lay out `above` and `below` pixels around `top`; what becomes visible above does not move what is below."""
        for _ in range(_MAX_PASSES + steps):
            if steps and self.read_nearby(above, below):
                steps -= 1
                continue
            top = self.top
            bottom = top + below if below else top - self._anchor.offset
            if not self._layout_between(max(0, top - above), bottom) and self.top == top:
                break

    def _layout_between(self, top: int, bottom: int) -> bool:
        changed, count = False, self.count
        if not count:
            return changed
        index = self.row_at(top)
        while index < count and (y := self.row_top(index)) < bottom:
            before = self._heights[index]
            stack = self.row(index).stack
            changed |= stack.layout_between(top - y, bottom - y)
            self._heights[index] = stack.height
            changed |= before != stack.height
            index += 1
        return changed

    def anchor_at(self, y: int) -> ScrollAnchor:
        """Return the anchor at y."""
        if not self.count:
            return ScrollAnchor()
        index = min(self.row_at(y), self.count - 1)
        return anchor_in_row(index, self.row(index).stack, y - self.row_top(index))

    def scroll_by(self, pixels: int) -> int:
        """Scroll over laid out content; return by how many pixels the picture really moved."""
        if pixels < 0:
            if self.following:
                self.stop_following()
            self._settle_around(-pixels, 0)
        start = self.top
        self._anchor = self.anchor_at(max(0, min(self.bottom, start + pixels)))
        self.following = False
        self.settle()
        return self.top - start

    def stop_following(self) -> None:
        """Stop following the end, and stay exactly here."""
        self._anchor = self.anchor_at(self.top)
        self.following = False

    def scroll_to(self, y: int) -> None:
        """Scroll to y, estimated or exact."""
        self.following = False
        self._anchor = self.anchor_at(max(0, min(self.bottom, y)))
        self.settle()

    def read_nearby(self, above: int, below: int) -> bool:
        """Parse one step within `above` and `below` pixels around `top`; return whether there was any."""
        for _ in range(_MAX_PASSES):
            top = self.top
            rows = list(self.between(max(0, top - above), top + below))
            # Rows that were just made do not have their estimated heights.
            if self.top == top:
                return any(row.stack.read_between(top - above - y, top + below - y) for _, row, y in rows)
        return False

    def nearby_rows(self) -> list[int]:
        """Return the rows that are made: those in the viewport, then those one screen above and below."""
        if not self.count:
            return []
        top = self.top
        first, last = self.row_at(top - self.view), min(self.row_at(top + 2 * self.view), self.count - 1)
        visible = range(self.row_at(top), self.row_at(top + self.view) + 1)
        existing = (index for index in range(first, last + 1) if self.existing_row(index))
        return sorted(existing, key=lambda index: index not in visible)

    def has_lazy_sections(self) -> bool:
        """Return whether anything near the viewport is not parsed yet, or not laid out since."""
        stacks = (self.row(index).stack for index in self.nearby_rows())
        return not self.is_view_laid_out or any(stack.last_lazy_section() is not None for stack in stacks)

    def has_lazy_sections_in_view(self) -> bool:
        """Return whether anything visible is not parsed yet, or not laid out since."""
        top = self.top
        return not self.is_view_laid_out or any(
            row.stack.has_lazy_section_between(top - y, top + self.view - y)
            for _, row, y in self.between(top, top + self.view)
        )


def index_after(index: int, changes: Sequence[Change]) -> int | None:
    """Return the index of a row after these changes; None when it was removed."""
    for change in changes:
        match change:
            case Added(added) if added <= index:
                index += 1
            case Prepended(count):
                index += count
            case Removed(first, count) if first <= index:
                if index < first + count:
                    return None
                index -= count
            case _:
                pass
    return index


def control_after(control: tuple[int, str], change: Change) -> tuple[int, str]:
    """Return a control, a row and its key, after this change; (-1, "") when it was removed."""
    row = index_after(control[0], [change]) if control[0] >= 0 else None
    return (-1, "") if row is None else (row, control[1])
