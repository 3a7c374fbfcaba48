"""The rows of a transcript and how high they are: guessed where nobody has looked, exact near the screen."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial

from desktop_agent.conversation.transcript import Transcript
from ui.transcript.geometry import Heights
from ui.transcript.rows.body.replacing import BlockReplacement
from ui.transcript.rows.chooser import make_row
from ui.transcript.rows.row import Row
from ui.transcript.rows.stage import RenderContext

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
            self._rows[index].forget_outside(0, 0)
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
            self._heights[index] = found.height
            found.replaced = partial(self._blocks_replaced, found)
        self._rows.move_to_end(index)
        return found

    def _blocks_replaced(self, row: Row, replacement: BlockReplacement) -> None:
        index = next((at for at, each in self._rows.items() if each is row), None)
        if index is not None:
            self._heights[index] = row.height
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
            changed |= row.layout_between(top - y, bottom - y)
            self._heights[index] = row.height
            changed |= before != row.height
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
        self._heights[index] = row.height
        return y

    def remeasure_row(self, index: int) -> None:
        """A row changed by itself."""
        self._heights[index] = self.row(index).height

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
                    self._rows.pop(index).forget_outside(0, 0)
        for index, row in self._rows.items():
            if not row.has_layouts:
                continue
            y = self.row_top(index)
            if row.height > 3 * self.view or not top - far < y + row.height / 2 < top + self.view + far:
                row.forget_outside(top - far - y, top + self.view + far - y)


def _cancel_renders(render_context: RenderContext) -> None:
    """No row that was shown until now waits for anything."""
    if render_context.formulas:
        render_context.formulas.cancel_all()
