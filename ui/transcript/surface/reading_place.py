"""Where somebody reads, while everything is laid out anew: another font, theme or width."""

from collections.abc import Sequence

from PySide6.QtCore import QPoint

from ui.transcript.rows.row import Row
from ui.transcript.surface.screen import Screen
from ui.transcript.surface.selection import Place

_ROUNDS = 4
"""Heights on the way are guessed until they are seen: after this many looks the place stands still."""


class ReadingPlace:
    """`take` it before, `put_back` after, and `read_again` in between when rows are made anew.

    The line at the upper edge stands where it stood, to the pixel.
    """

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._place = Place()
        self._share = 0.0
        self._y = 0.0
        self._read: set[int] = set()
        # As long as nothing moves, several changes in a row keep one place: else each would lose part of a line.
        self._stands: tuple[object, int] | None = None

    def take(self, *, remade: bool, also: Sequence[int] = ()) -> None:
        """Remember what stands at the upper edge. With `remade` rows are made anew.

        Those that hold it, the selection or the keyboard, and those in `also`, are read to their ends: so their blocks
        keep their numbers.
        """
        screen, rows = self._screen, self._screen.rows
        self._read = self._of_interest(also) if remade else set()
        for index in self._read:
            _read_all(rows.row(index))
        if not len(rows) or rows.following or self._stands == (rows, rows.top):
            return
        rows.settle()
        self._place = screen.place_at(QPoint(screen.column, 0))
        row = rows.row(self._place.row)
        box = row.block_box(self._place.block) if row.blocks else screen.row_box(self._place.row)
        # What has no lines is as much above the edge as it was.
        above = -box.top() - screen.row_box(self._place.row).top()
        self._share = max(0.0, min(1.0, above / max(1, box.height())))
        self._y = self._now()

    def read_again(self) -> None:
        """Rows were made anew: read what was read. Whoever remembers places has the right ones already."""
        rows = self._screen.rows
        for index in self._read:
            row = rows.row(index)
            tell, row.replaced = row.replaced, None
            _read_all(row)
            row.replaced = tell
            rows.measured(index)

    def put_back(self) -> None:
        """Bring it there again."""
        rows = self._screen.rows
        self._stands = None
        if not len(rows) or rows.following:
            return
        for _ in range(_ROUNDS):
            rows.row(self._place.row).settle_block(self._place.block)
            rows.measured(self._place.row)
            before, moved = rows.top, round(self._now() - self._y)
            if moved:
                rows.jump_to(before + moved)
            if rows.top == before:
                break
        self._stands = rows, rows.top

    def _of_interest(self, also: Sequence[int]) -> set[int]:
        rows, selection = self._screen.rows, self._screen.selection
        wanted = [self._screen.focused[0], *also]
        if not selection.is_empty:
            wanted += [selection.start.row, selection.end.row]
        if not rows.following:
            wanted.append(rows.row_at(rows.top))
        return {index for index in wanted if 0 <= index < len(rows) and rows.known(index)}

    def _now(self) -> float:
        """The y of the place in the viewport."""
        row, block = self._screen.rows.row(self._place.row), self._place.block
        top = self._screen.row_box(self._place.row).top()
        if block >= len(row.blocks):
            return top
        box = row.block_box(block)
        inside = row.blocks[block].caret_at(self._place.offset) if row.blocks[block].laid else None
        return top + box.top() + (inside.top() if inside else self._share * box.height())


def _read_all(row: Row) -> None:
    while (last := row.last_unread()) is not None:
        row.read(last)
