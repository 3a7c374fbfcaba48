"""Where text and messages are in the viewport, scrolling to them, the stops of the Tab key, and what stays in place."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QRectF
from PySide6.QtGui import QPainter

from ui.transcript.blocks.block import Block, Control
from ui.transcript.blocks.buttons import paint_focus_ring
from ui.transcript.blocks.math.math_block import MathBlock
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.text_block import MarkdownTextBlock, RuleBlock, TextBlock
from ui.transcript.markdown.inline import Line, slice_utf16
from ui.transcript.rows.message_actions import carrier_of
from ui.transcript.rows.render_context import RenderContext
from ui.transcript.rows.row import Row, RowSelection, selected_range
from ui.transcript.viewport.scroll_controller import ScrollController
from ui.transcript.viewport.selection import TextPosition
from ui.transcript.viewport.viewport import RowViewport

_MAX_ROUNDS = 4
"""Heights on the way are estimates until they are laid out; after this many rounds the position is settled."""


class ReadingPosition:
    """Keeps the line at the upper edge of the viewport where it is, to the pixel, over a new layout."""

    def __init__(self, viewport: RowViewport) -> None:
        self._viewport = viewport
        self._position = TextPosition()
        self._share = 0.0
        self._y = 0.0
        # The rows and their `top` after the last restore. While they are the same, the saved position stays: each new
        # one would lose a part of a line.
        self._restored: tuple[object, int] | None = None

    def save(self) -> None:
        """Remember the position at the upper edge."""
        viewport, rows = self._viewport, self._viewport.rows
        if not len(rows) or rows.following or self._restored == (rows, rows.top):
            return
        rows.settle()
        self._position = viewport.position_at(QPoint(viewport.column, 0))
        row = rows.row(self._position.row)
        box = row.stack.block_box(self._position.block) if row.blocks else viewport.row_box(self._position.row)
        # A block without lines is restored by its share above the edge.
        above = -box.top() - viewport.row_box(self._position.row).top()
        self._share = max(0.0, min(1.0, above / max(1, box.height())))
        self._y = self._current_y()

    def restore(self) -> None:
        """Scroll the saved position back to where it was."""
        rows = self._viewport.rows
        self._restored = None
        if not len(rows) or rows.following:
            return
        for _ in range(_MAX_ROUNDS):
            rows.row(self._position.row).stack.settle_block(self._position.block)
            rows.remeasure_row(self._position.row)
            before, moved = rows.top, round(self._current_y() - self._y)
            if moved:
                rows.scroll_to(before + moved)
            if rows.top == before:
                break
        self._restored = rows, rows.top

    def restyle(self, render_context: RenderContext, width: int, also: Sequence[int] = ()) -> None:
        """Use another style; keep the rows at the reading position, the selection, the focus, and those in `also`."""
        self._viewport.rows.restyle(render_context, width, self._rows_to_keep(also))

    def _rows_to_keep(self, also: Sequence[int]) -> set[int]:
        rows, selection = self._viewport.rows, self._viewport.selection
        kept = [self._viewport.focused[0], *also]
        if not selection.is_empty:
            kept += [selection.start.row, selection.end.row]
        if not rows.following:
            kept.append(rows.row_at(rows.top))
        return {index for index in kept if 0 <= index < len(rows) and rows.existing_row(index)}

    def _current_y(self) -> float:
        row, block = self._viewport.rows.row(self._position.row), self._position.block
        top = self._viewport.row_box(self._position.row).top()
        if block >= len(row.blocks):
            return top
        box = row.stack.block_box(block)
        caret = row.blocks[block].caret_rect_at(self._position.offset) if row.blocks[block].is_laid_out else None
        return top + box.top() + (caret.top() if caret else self._share * box.height())


class MessagePlace:
    """The place of the message that begins at a row.

    If its beginning is visible, that stays where it is; otherwise its end does, where the pressed buttons are.
    """

    def __init__(self, viewport: RowViewport, index: int) -> None:
        self._viewport = viewport
        self.index = index
        """The row at which the message begins."""
        self._top = viewport.row_box(index).top()
        self._is_top_visible = 0 <= self._top < viewport.rows.view
        carrier = self._carrier()
        self._bottom = viewport.row_box(carrier).bottom()
        focused, key = viewport.focused
        is_focused = focused >= 0 and carrier_of(viewport.rows.transcript, focused) == carrier
        self._focused_name = key.partition("/")[2] if is_focused else None

    def restore(self, scroller: ScrollController) -> None:
        """Scroll the new version to where the one before was, and focus in it what had the focus."""
        rows = self._viewport.rows
        if not 0 <= self.index < rows.count:
            return
        for _ in range(_MAX_ROUNDS):
            box = self._viewport.row_box(self.index if self._is_top_visible else self._carrier())
            moved = box.top() - self._top if self._is_top_visible else box.bottom() - self._bottom
            before = rows.top
            rows.padding += max(0, before + moved - rows.bottom) if self._is_top_visible else 0
            scroller.scroll_by(moved)
            if rows.top == before:
                break
        if self._focused_name is not None:
            self._restore_focus(self._focused_name)

    def _carrier(self) -> int:
        carrier = carrier_of(self._viewport.rows.transcript, self.index)
        return self.index if carrier is None or carrier >= self._viewport.rows.count else carrier

    def _restore_focus(self, name: str) -> None:
        carrier = self._carrier()
        row = self._viewport.rows.row(carrier)
        row.stack.settle_block(len(row.blocks) - 1)
        keys = (f"{block}/{control.name}" for block, control in row.controls() if control.name == name)
        self._viewport.focus((carrier, next(keys, "")))


_LINK_PREFIX = "#link "
"""Begins the name of a link among the keys of controls; its range in the text follows."""

_LINK_SIGNS = ("[", "<", "://", "www.", "@")


@dataclass(frozen=True, slots=True)
class Link:
    """A link in a text: its range in the plain text of its block, its words and its target."""

    start: int
    end: int
    words: str
    target: str

    @property
    def name(self) -> str:
        """The name of the link among the controls of its block."""
        return f"{_LINK_PREFIX}{self.start} {self.end}"


@dataclass(frozen=True, slots=True)
class FocusStop:
    """A link or control that Tab stops at, and its block."""

    block: int
    target: Control | Link

    @property
    def key(self) -> str:
        """The key, as in `RowViewport.focused`."""
        return f"{self.block}/{self.target.name}"


def iter_focus_stops(row: Row, block: int, step: int) -> Iterator[FocusStop]:
    """Yield the focus stops from a block on, or backwards; blocks with buttons are laid out for that."""
    while 0 <= block < len(row.blocks):
        stops = [FocusStop(block, target) for target in _stops_in_block(row, block)]
        yield from stops if step > 0 else reversed(stops)
        block += step


def next_focus_stop(row: Row, key: str, step: int) -> FocusStop | None:
    """Return the stop after or before a key; an empty key is before all stops."""
    if not key:
        return next(iter_focus_stops(row, 0, 1), None) if step > 0 else None
    has_passed = False
    for stop in iter_focus_stops(row, int(key.partition("/")[0]), step):
        if has_passed:
            return stop
        has_passed = stop.key == key
    return None


def find_focus_stop(row: Row, key: str) -> FocusStop | None:
    """Return the stop of a key, if it still exists."""
    block, _, name = key.partition("/")
    targets = _stops_in_block(row, int(block)) if name and int(block) < len(row.blocks) else ()
    return next((FocusStop(int(block), target) for target in targets if target.name == name), None)


def link_selection(row: Row, key: str) -> RowSelection | None:
    """Return the range of a focused link; None for a button."""
    block, _, name = key.partition("/")
    if not name.startswith(_LINK_PREFIX) or int(block) >= len(row.blocks):
        return None
    start, end = map(int, name[len(_LINK_PREFIX) :].split())
    return (int(block), start), (int(block), end)


def _stops_in_block(row: Row, index: int) -> list[Control | Link]:
    row.stack.read(index)
    block = row.blocks[index] if index < len(row.blocks) else None
    if block is None or isinstance(block, RuleBlock | MathBlock):
        return []
    if isinstance(block, TextBlock | TableBlock) and not _may_have_links(block):
        return []
    if not block.is_laid_out:
        row.stack.settle_block(index)
    return [*links_in(block), *block.controls()]


def _may_have_links(block: Block) -> bool:
    if isinstance(block, MarkdownTextBlock) and block.leaf.back:
        return True
    texts = [block.leaf.text] if isinstance(block, MarkdownTextBlock) else []
    if isinstance(block, TableBlock):
        texts = [cell for row in block.leaf.cells for cell in row]
    return any(sign in text for text in texts for sign in _LINK_SIGNS)


def links_in(block: Block) -> Iterator[Link]:
    """Yield all links of a block."""
    if isinstance(block, TextBlock):
        yield from links_of(block.line())
    elif isinstance(block, TableBlock):
        for row, lines in enumerate(block.cells.lines()):
            for column, line in enumerate(lines):
                offset = block.cells.offset_of(row, column) if line.spans else 0
                for link in links_of(line):
                    yield Link(offset + link.start, offset + link.end, link.words, link.target)


def links_of(line: Line) -> Iterator[Link]:
    """Yield the links of a line; parts of one link in several styles are joined."""
    last: tuple[int, int, str] | None = None
    for span in line.spans:
        if not span.href:
            continue
        end = span.start + span.length
        if last and last[1] == span.start and last[2] == span.href:
            last = last[0], end, span.href
            continue
        if last:
            yield _link(line, *last)
        last = span.start, end, span.href
    if last:
        yield _link(line, *last)


def _link(line: Line, start: int, end: int, target: str) -> Link:
    first, last = line.to_plain(start), line.to_plain(end)
    return Link(first, last, slice_utf16(line.plain(), first, last), target)


def text_boxes(row: Row, selection: RowSelection) -> Iterator[QRectF]:
    """Yield the boxes that a selection covers, in row coordinates; blocks that are not laid out are skipped."""
    for index in range(selection[0][0], min(selection[1][0] + 1, len(row.blocks))):
        span = selected_range(selection, index)
        block = row.blocks[index]
        if span and block.is_laid_out:
            block_box = QRectF(row.stack.block_box(index))
            block_area = QRectF(0, 0, block_box.width(), block_box.height())
            for box in block.boxes(*span) or [block_area]:
                yield box.translated(block_box.topLeft())


def text_box(viewport: RowViewport, index: int, selection: RowSelection) -> QRectF:
    """Return the first box of a selection, in the viewport; the top line of the row if its block is gone."""
    rows = viewport.rows
    row = rows.row(index)
    block = selection[0][0]
    if block < len(row.blocks) and not row.blocks[block].is_laid_out:
        row.stack.settle_block(block)
    box = next(text_boxes(row, selection), QRectF(0, 0, row.stack.width, rows.render_context.style.line))
    corner = viewport.row_box(index).topLeft()
    return box.translated(corner)


def scroll_to_text(
    viewport: RowViewport, scroller: ScrollController, index: int, selection: RowSelection, *, calmly: bool = False
) -> None:
    """Scroll until a selection is visible: a third below the upper edge, or `calmly` just inside the nearer edge."""
    for _ in range(_MAX_ROUNDS):
        _scroll_horizontally_to(viewport, index, selection)
        # Called to lay out the block, which may change the height of its row.
        text_box(viewport, index, selection)
        scroller.row_arrived(index)
        box = text_box(viewport, index, selection)
        line, view = viewport.rows.render_context.style.line, viewport.rows.view
        edge = min(line, view // 4) if calmly else min(2 * line, view // 4)
        if edge <= box.top() and box.bottom() <= view - edge:
            return
        target_y = view / 3
        if calmly:
            target_y = edge if box.top() < edge else max(edge, view - edge - box.height())
        before = viewport.rows.top
        scroller.scroll_by(round(box.top() - target_y))
        if viewport.rows.top == before:
            return


def _scroll_horizontally_to(viewport: RowViewport, index: int, selection: RowSelection) -> None:
    row, block = viewport.rows.row(index), selection[0][0]
    if block >= len(row.blocks) or not row.blocks[block].is_laid_out:
        return
    span, width = selected_range(selection, block), row.stack.block_box(block).width()
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
    """Paint the ring around a link that has the keyboard; buttons paint their own."""
    index, key = viewport.focused
    row = viewport.rows.existing_row(index) if key and viewport.has_keyboard else None
    position = link_selection(row, key) if row else None
    if row and position:
        corner = viewport.row_box(index).topLeft()
        for box in text_boxes(row, position):
            ring = box.translated(corner).toAlignedRect().adjusted(-4, -2, 4, 2)
            paint_focus_ring(painter, viewport.rows.render_context.style, ring)


def current_row(viewport: RowViewport) -> int:
    """Return the focused row, or the last visible one; -1 when there is none."""
    rows = viewport.rows
    if 0 <= viewport.focused[0] < len(rows):
        return viewport.focused[0]
    return min(rows.row_at(rows.top + viewport.widget.height() - 1), len(rows) - 1)
