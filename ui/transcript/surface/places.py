"""Where places of the text stand on the screen, and how the screen comes to them."""

from collections.abc import Iterator

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter

from ui.transcript.blocks.buttons import paint_focus_ring
from ui.transcript.rows.row import Row, RowSelection, selected_range
from ui.transcript.surface.screen import RowViewport
from ui.transcript.surface.scroller import Scroller
from ui.transcript.surface.stops import link_selection

_MAX_ROUNDS = 4
"""Heights on the way are guessed until they are seen: after this many looks the place stands still."""


def text_boxes(row: Row, selection: RowSelection) -> Iterator[QRectF]:
    """What a part of a row covers, in its coordinates; blocks that are not laid out are left out."""
    for index in range(selection[0][0], min(selection[1][0] + 1, len(row.blocks))):
        span = selected_range(selection, index)
        block = row.blocks[index]
        if span and block.is_laid_out:
            where = QRectF(row.block_box(index))
            whole = QRectF(0, 0, where.width(), where.height())
            for box in block.boxes(*span) or [whole]:
                yield box.translated(where.topLeft())


def text_box(viewport: RowViewport, index: int, selection: RowSelection) -> QRectF | None:
    """The first box of a part of a row, in the viewport; the row's upper edge where the block is not there."""
    rows = viewport.rows
    row = rows.row(index)
    block = selection[0][0]
    if block < len(row.blocks) and not row.blocks[block].is_laid_out:
        row.settle_block(block)
    box = next(text_boxes(row, selection), QRectF(0, 0, row.width, rows.render_context.style.line))
    corner = viewport.row_box(index).topLeft()
    return box.translated(corner)


def scroll_to_text(
    viewport: RowViewport, scroller: Scroller, index: int, selection: RowSelection, *, calmly: bool = False
) -> None:
    """Scroll until a part of a row is seen: a third below the upper edge, or `calmly` just inside the nearer edge."""
    for _ in range(_MAX_ROUNDS):
        _scroll_horizontally_to(viewport, index, selection)
        box = text_box(viewport, index, selection)
        scroller.row_arrived(index)
        box = text_box(viewport, index, selection)
        if box is None:
            return
        line, view = viewport.rows.render_context.style.line, viewport.rows.view
        edge = min(line, view // 4) if calmly else min(2 * line, view // 4)
        if edge <= box.top() and box.bottom() <= view - edge:
            return
        wanted = view / 3
        if calmly:
            wanted = edge if box.top() < edge else max(edge, view - edge - box.height())
        before = viewport.rows.top
        scroller.scroll_by(round(box.top() - wanted))
        if viewport.rows.top == before:
            return


def _scroll_horizontally_to(viewport: RowViewport, index: int, selection: RowSelection) -> None:
    """Inside of a block that is wider than its column."""
    row, block = viewport.rows.row(index), selection[0][0]
    if block >= len(row.blocks) or not row.blocks[block].is_laid_out:
        return
    span, width = selected_range(selection, block), row.block_box(block).width()
    box = next(iter(row.blocks[block].boxes(*span)), None) if span else None
    pad = viewport.rows.render_context.style.px(28)
    if box is None:
        return
    if box.right() > width - pad:
        moved = row.blocks[block].scroll_horizontally(round(box.right() - width + 2 * pad))
    elif box.left() < 0:
        moved = row.blocks[block].scroll_horizontally(round(box.left() - 2 * pad))
    else:
        return
    if moved:
        viewport.repaint_row(index)


def paint_link_focus(painter: QPainter, viewport: RowViewport) -> None:
    """The ring around a link that has the keyboard; buttons draw their own."""
    index, key = viewport.focused
    row = viewport.rows.existing_row(index) if key else None
    position = link_selection(row, key) if row else None
    if row and position:
        corner = viewport.row_box(index).topLeft()
        for box in text_boxes(row, position):
            paint_focus_ring(
                painter,
                viewport.rows.render_context.style,
                box.translated(corner).toAlignedRect().adjusted(-4, -2, 4, 2),
            )


def current_row(viewport: RowViewport) -> int:
    """The row that has the keyboard, or the last one that is seen; -1 where there is none."""
    rows = viewport.rows
    if 0 <= viewport.focused[0] < len(rows):
        return viewport.focused[0]
    return min(rows.row_at(rows.top + viewport.viewport.height() - 1), len(rows) - 1)
