"""What accessible children need of the view: its rows, also those nobody has seen, its caret, and how to get there."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QRect

from ui.transcript.blocks.math.math_block import MathBlock
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.text_block import TextBlock
from ui.transcript.rows.chooser import row_for
from ui.transcript.rows.row import Row, Selection
from ui.transcript.surface.screen import Screen
from ui.transcript.surface.selection import Place

_REMEMBERED = 48
"""Rows that were made for reading alone."""


@dataclass(frozen=True, slots=True)
class Doing:
    """What assistive technology can do in the view."""

    caret: Callable[[], Place | None]
    put_caret: Callable[[Place], None]
    show: Callable[[int, Selection], None]
    open_link: Callable[[str, int], None]


class Reach:
    """Rows far from the screen are made for reading, a few at a time, and never laid out but for their buttons."""

    def __init__(self, screen: Screen, doing: Doing) -> None:
        self.screen = screen
        self.doing = doing
        self._read: OrderedDict[str, Row] = OrderedDict()

    def row(self, index: int) -> Row | None:
        """The row of an item, on the screen or not."""
        rows = self.screen.rows
        if not 0 <= index < self.count:
            return None
        if known := rows.known(index):
            return known
        item = rows.transcript[index]
        found = self._read.get(item.id)
        if found is None:
            found = row_for(item, rows.stage, rows.width)
            for at, block in enumerate(found.blocks):
                if not isinstance(block, TextBlock | TableBlock | MathBlock):
                    found.settle_block(at)
            # What still grows is made anew each time.
            if not found.is_open:
                self._read[item.id] = found
        if item.id in self._read:
            self._read.move_to_end(item.id)
        if len(self._read) > _REMEMBERED:
            self._read.popitem(last=False)
        return found

    @property
    def count(self) -> int:
        """How many rows there are."""
        return min(len(self.screen.rows), len(self.screen.rows.transcript))

    def is_shown(self, index: int) -> bool:
        """Whether a row is one of those on the screen or near it, so that places in it are known."""
        return self.screen.rows.known(index) is not None

    def forget(self) -> None:
        """Other rows, or another look."""
        self._read.clear()

    def forget_item(self, item_id: str) -> None:
        """An item changed."""
        self._read.pop(item_id, None)

    def row_box(self, index: int) -> QRect:
        """Where a row is in the viewport, exact or guessed; no row is made for that."""
        rows = self.screen.rows
        if not 0 <= index < self.count:
            return QRect()
        top, bottom = rows.row_top(index), rows.row_top(index + 1)
        return QRect(self.screen.column, top - rows.top, rows.width, bottom - top)

    def block_box(self, index: int, block: int) -> QRect:
        """Where a block is in the viewport; its row, where that is all that is known."""
        box, row = self.row_box(index), self.screen.rows.known(index)
        if row and block < len(row.blocks):
            return row.block_box(block).translated(box.topLeft())
        return box

    def to_global(self, box: QRect) -> QRect:
        """From the viewport to the screen."""
        return box.translated(self.screen.viewport.mapToGlobal(QPoint(0, 0)))
