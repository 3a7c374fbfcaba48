"""Where somebody reads, while everything is laid out anew: another font, theme or width."""

from collections.abc import Iterable, Sequence

from PySide6.QtCore import QPoint

from ui.transcript.rows.answer_row import AnswerRow
from ui.transcript.rows.stage import RenderContext
from ui.transcript.rows.thinking_row import ThinkingRow
from ui.transcript.surface.row_list import RowList
from ui.transcript.surface.screen import RowViewport
from ui.transcript.surface.selection import TextPosition

_MAX_ROUNDS = 4
"""Heights on the way are guessed until they are seen: after this many looks the place stands still."""


class RestyledRowList(RowList):
    """Rows of which some outlast another look, with everything that was read of them."""

    def set_render_context(self, render_context: RenderContext, width: int, kept: Iterable[int]) -> None:
        """The stage has another look: rows are made anew when they are seen, but for answers among the `kept` ones.

        Whoever remembers a place in one of those goes on with it.
        """
        rows = {index: row for index in kept if isinstance(row := self.existing_row(index), AnswerRow | ThinkingRow)}
        for row in rows.values():
            row.restyle(width)
        self.restyle(render_context)
        self._rows.update(rows)
        for index in rows:
            self.remeasure_row(index)


class ReadingPosition:
    """`take` it before, and `put_back` after.

    The line at the upper edge stands where it stood, to the pixel.
    """

    def __init__(self, viewport: RowViewport) -> None:
        self._viewport = viewport
        self._position = TextPosition()
        self._share = 0.0
        self._y = 0.0
        # As long as nothing moves, several changes in a row keep one place: else each would lose part of a line.
        self._is_saved: tuple[object, int] | None = None

    def save(self) -> None:
        """Remember what stands at the upper edge."""
        viewport, rows = self._viewport, self._viewport.rows
        if not len(rows) or rows.following or self._is_saved == (rows, rows.top):
            return
        rows.settle()
        self._position = viewport.place_at(QPoint(viewport.column, 0))
        row = rows.row(self._position.row)
        box = row.block_box(self._position.block) if row.blocks else viewport.row_box(self._position.row)
        # What has no lines is as much above the edge as it was.
        above = -box.top() - viewport.row_box(self._position.row).top()
        self._share = max(0.0, min(1.0, above / max(1, box.height())))
        self._y = self._current_y()

    def restore(self) -> None:
        """Bring it there again."""
        rows = self._viewport.rows
        self._is_saved = None
        if not len(rows) or rows.following:
            return
        for _ in range(_MAX_ROUNDS):
            rows.row(self._position.row).settle_block(self._position.block)
            rows.remeasure_row(self._position.row)
            before, moved = rows.top, round(self._current_y() - self._y)
            if moved:
                rows.jump_to(before + moved)
            if rows.top == before:
                break
        self._is_saved = rows, rows.top

    def restyle(self, render_context: RenderContext, width: int, also: Sequence[int] = ()) -> None:
        """The stage has another look: rows that hold it, the selection or the keyboard, and those in `also`, last."""
        rows, kept = self._viewport.rows, self._rows_to_keep(also)
        if isinstance(rows, RestyledRowList):
            rows.set_render_context(render_context, width, kept)

    def _rows_to_keep(self, also: Sequence[int]) -> set[int]:
        rows, selection = self._viewport.rows, self._viewport.selection
        wanted = [self._viewport.focused[0], *also]
        if not selection.is_empty:
            wanted += [selection.start.row, selection.end.row]
        if not rows.following:
            wanted.append(rows.row_at(rows.top))
        return {index for index in wanted if 0 <= index < len(rows) and rows.existing_row(index)}

    def _current_y(self) -> float:
        """The y of the place in the viewport."""
        row, block = self._viewport.rows.row(self._position.row), self._position.block
        top = self._viewport.row_box(self._position.row).top()
        if block >= len(row.blocks):
            return top
        box = row.block_box(block)
        inside = row.blocks[block].caret_rect_at(self._position.offset) if row.blocks[block].is_laid_out else None
        return top + box.top() + (inside.top() if inside else self._share * box.height())
