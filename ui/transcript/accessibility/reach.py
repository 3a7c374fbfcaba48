"""What accessible children need of the view: its rows, also those nobody has seen, its caret, and how to get there."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QRect

from ui.transcript.blocks.math.math_block import MathBlock
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.text_block import TextBlock
from ui.transcript.rows.chooser import make_row
from ui.transcript.rows.row import Row, RowSelection
from ui.transcript.surface.screen import RowViewport
from ui.transcript.surface.selection import TextPosition

_KEPT_ROWS = 48
"""Rows that were made for reading alone."""


@dataclass(frozen=True, slots=True)
class ViewActions:
    """What assistive technology can do in the view."""

    caret: Callable[[], TextPosition | None]
    set_caret: Callable[[TextPosition], None]
    show: Callable[[int, RowSelection], None]
    open_link: Callable[[str, int], None]


class AccessibilityContext:
    """Rows far from the screen are made for reading, a few at a time, and never laid out but for their buttons."""

    def __init__(self, viewport: RowViewport, actions: ViewActions) -> None:
        self.viewport = viewport
        self.actions = actions
        self._detached_rows: OrderedDict[str, Row] = OrderedDict()

    def row(self, index: int) -> Row | None:
        """The row of an item, on the screen or not."""
        rows = self.viewport.rows
        if not 0 <= index < self.count:
            return None
        if known := rows.existing_row(index):
            return known
        item = rows.transcript[index]
        found = self._detached_rows.get(item.id)
        if found is None:
            found = make_row(item, rows.render_context, rows.width)
            for at, block in enumerate(found.blocks):
                if not isinstance(block, TextBlock | TableBlock | MathBlock):
                    found.settle_block(at)
            # What still grows is made anew each time.
            if not found.is_open:
                self._detached_rows[item.id] = found
        if item.id in self._detached_rows:
            self._detached_rows.move_to_end(item.id)
        if len(self._detached_rows) > _KEPT_ROWS:
            self._detached_rows.popitem(last=False)
        return found

    @property
    def count(self) -> int:
        """How many rows there are."""
        return min(len(self.viewport.rows), len(self.viewport.rows.transcript))

    def is_shown(self, index: int) -> bool:
        """Whether a row is one of those on the screen or near it, so that places in it are known."""
        return self.viewport.rows.existing_row(index) is not None

    def forget(self) -> None:
        """Other rows, or another look."""
        self._detached_rows.clear()

    def forget_item(self, item_id: str) -> None:
        """An item changed."""
        self._detached_rows.pop(item_id, None)

    def row_box(self, index: int) -> QRect:
        """Where a row is in the viewport, exact or guessed; no row is made for that."""
        rows = self.viewport.rows
        if not 0 <= index < self.count:
            return QRect()
        top, bottom = rows.row_top(index), rows.row_top(index + 1)
        return QRect(self.viewport.column, top - rows.top, rows.width, bottom - top)

    def block_box(self, index: int, block: int) -> QRect:
        """Where a block is in the viewport; its row, where that is all that is known."""
        box, row = self.row_box(index), self.viewport.rows.existing_row(index)
        if row and block < len(row.blocks):
            return row.block_box(block).translated(box.topLeft())
        return box

    def to_global(self, box: QRect) -> QRect:
        """From the viewport to the screen."""
        return box.translated(self.viewport.viewport.mapToGlobal(QPoint(0, 0)))
