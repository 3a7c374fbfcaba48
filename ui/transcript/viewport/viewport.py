"""Between the pixels of the viewport and the rows: painting, hit testing, hover, focus and selection."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QPainter, QRegion
from PySide6.QtWidgets import QWidget

from desktop_agent.conversation.items import Change
from ui.transcript.blocks.block import Block, BlockReplacement, Control
from ui.transcript.blocks.buttons import paint_focus_ring
from ui.transcript.rows.message_actions import carrier_of
from ui.transcript.rows.row import Row
from ui.transcript.viewport.row_list import RowList, control_after
from ui.transcript.viewport.selection import LAST_OFFSET, Selection, TextPosition


@dataclass(frozen=True, slots=True)
class Hit:
    """What is under a point: a row, a block of it, and the point in that block; perhaps a control or a link."""

    row: int
    block_index: int
    block: Block
    point: QPoint
    control: Control | None
    link: str

    @property
    def key(self) -> str:
        """The key of the control, as in `RowViewport.focused`."""
        return f"{self.block_index}/{self.control.name}" if self.control else ""


_PART_MARGIN = 1
"""Pixels."""


def separate_parts(region: QRegion) -> list[QRect]:
    """Return the boxes around the parts of a region, from top to bottom, between which rows stay as they are.

    Each is a little larger than its part: at a scale such as 125 %, only Qt's own clip ends where the part does.
    """
    boxes: Iterable[QRect] = region  # pyright: ignore[reportAssignmentType]  # that it is iterable is missing in the stub
    parts: list[QRect] = []
    for box in boxes:
        larger = box.adjusted(0, -_PART_MARGIN, 0, _PART_MARGIN)
        if parts and larger.top() <= parts[-1].bottom() + 1:
            parts[-1] |= larger
        else:
            parts.append(larger)
    return parts


class RowViewport:
    """The viewport widget and its rows. `hovered` and `focused` are a row and the key of a control in it, or "".

    `caret_row` is the row of the caret. What can be done with a message is visible where one of the three is.
    """

    def __init__(self, widget: QWidget, rows: RowList) -> None:
        self.widget = widget
        self.selection = Selection()
        self.hovered: tuple[int, str] = (-1, "")
        self.focused: tuple[int, str] = (-1, "")
        self.caret_row = -1
        self.on_replaced: list[Callable[[int, BlockReplacement], None]] = []
        """Called with the row and the change when the block numbers of a row change."""
        self.rows = rows

    @property
    def rows(self) -> RowList:
        return self._rows

    @rows.setter
    def rows(self, rows: RowList) -> None:
        self._rows = rows
        rows.on_replaced.append(self._blocks_replaced)

    def _blocks_replaced(self, row: int, replacement: BlockReplacement) -> None:
        if not self.selection.is_empty:
            self.selection.set(*(end.after_replacement(row, replacement) for end in self.selection.ends))
        self.hovered, self.focused = (
            (index, replacement.map_key(key)) if index == row else (index, key)
            for index, key in (self.hovered, self.focused)
        )
        for notify in self.on_replaced:
            notify(row, replacement)

    def apply_change(self, change: Change) -> None:
        """Keep hover, focus and selection on their items when rows are added or removed."""
        self.hovered, self.focused = (control_after(key, change) for key in (self.hovered, self.focused))
        self.selection.apply_change(change)

    @property
    def column(self) -> int:
        return (self.widget.width() - self.rows.width) // 2

    def paint(self, region: QRegion) -> None:
        """Paint the rows in a region of the viewport."""
        painter = QPainter(self.widget)
        # Otherwise every line has the direction of the program, which draws “1.” as “.1” if it runs from the right.
        painter.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        carriers = self._visible_carriers()
        for part in separate_parts(region):
            painter.setClipRect(part)
            self._paint_part(painter, part, carriers)
        painter.end()

    def _paint_part(self, painter: QPainter, dirty: QRect, carriers: set[int | None]) -> None:
        painter.fillRect(dirty, self.rows.render_context.style.color("window"))
        top, left = self.rows.top, self.column
        for index, row, y in self.rows.between(top + dirty.top(), top + dirty.bottom() + 1):
            painter.save()
            painter.translate(left, y - top)
            clip = dirty.translated(-left, top - y)
            if row.footer is not None:
                row.footer.is_shown = index in carriers
            is_quiet = index not in {self.hovered[0], self.focused[0], self.caret_row}
            hovered, focused = self._marks(index)
            row.paint(painter, clip, self.selection.in_row(index), hovered, focused, is_quiet=is_quiet)
            if self.focused[0] == index and not focused and not self.rows.render_context.is_edited(row.item):
                self._paint_focus(painter, row)
            painter.restore()

    def _visible_carriers(self) -> set[int | None]:
        """Return the rows whose commands are visible: of the messages under pointer, focus and caret, and the last."""
        actions, items = self.rows.render_context.message_actions, self.rows.transcript
        last = -1 if actions is None or actions.is_working else len(items) - 1
        return {carrier_of(items, index) for index in {self.hovered[0], self.focused[0], self.caret_row, last}}

    def _marks(self, index: int) -> tuple[str, str]:
        """Return the hovered and the focused control of a row; without the keyboard the whole message has the ring."""
        hovered, focused = (key if row == index else "" for row, key in (self.hovered, self.focused))
        return hovered, focused if self.has_keyboard else ""

    @property
    def has_keyboard(self) -> bool:
        """Whether keys go to the transcript."""
        view = self.widget.parentWidget()
        return view is None or view.hasFocus()

    def _paint_focus(self, painter: QPainter, row: Row) -> None:
        """Paint it quietly while the keyboard is elsewhere: commands are for this message all the same."""
        box = QRect(-8, 1, row.stack.width + 16, row.stack.height - 2)
        paint_focus_ring(painter, self.rows.render_context.style, box, is_quiet=not self.has_keyboard)

    def hit(self, point: QPoint) -> Hit | None:
        """Return what is under a point of the viewport, if it is laid out."""
        index, row, row_point = self._row_at_point(point) if len(self.rows) else (-1, None, point)
        if row is None or not row.blocks or not 0 <= row_point.y() < row.stack.height:
            return None
        number = row.stack.block_at(row_point.y())
        block = row.blocks[number]
        if not block.is_laid_out:
            return None
        block_point = row_point - row.stack.block_box(number).topLeft()
        control = next((control for control in block.controls() if control.box.contains(block_point)), None)
        return Hit(index, number, block, block_point, control, block.link_at(block_point))

    def _row_at_point(self, point: QPoint) -> tuple[int, Row, QPoint]:
        y = self.rows.top + point.y()
        index = self.rows.row_at(y)
        return index, self.rows.row(index), QPoint(point.x() - self.column, y - self.rows.row_top(index))

    def position_at(self, point: QPoint) -> TextPosition:
        """Return the text position nearest to a point."""
        if not len(self.rows):
            return TextPosition()
        index, row, row_point = self._row_at_point(point)
        if not row.blocks:
            return TextPosition(index)
        if row_point.y() >= row.stack.height:
            return TextPosition(index, len(row.blocks) - 1, LAST_OFFSET)
        number = row.stack.block_at(row_point.y())
        block, point = row.blocks[number], row_point - row.stack.block_box(number).topLeft()
        return TextPosition(index, number, block.offset_at(point) if block.is_laid_out else 0)

    def row_box(self, index: int) -> QRect:
        """Return the box of a row in the viewport."""
        row = self.rows.row(index)
        return QRect(self.column, self.rows.row_top(index) - self.rows.top, row.stack.width, row.stack.height)

    def block_box(self, index: int, block: int) -> QRect:
        """Return the box of a block in the viewport."""
        return self.rows.row(index).stack.block_box(block).translated(self.row_box(index).topLeft())

    def repaint_row(self, index: int) -> None:
        """Repaint a row with its focus ring."""
        if 0 <= index < len(self.rows):
            self.widget.update(self.row_box(index).adjusted(-12, 0, 12, 0))

    def repaint_focus(self) -> None:
        """Repaint what has the focus: the view itself where there are no rows."""
        if len(self.rows):
            self.repaint_row(self.focused[0])
        else:
            self.widget.update()

    def repaint_rows(self, first: int, last: int) -> None:
        """Repaint the visible rows of a range."""
        shown = [index for index, _, _ in self.rows.between(self.rows.top, self.rows.top + self.rows.view)]
        for index in shown:
            if first <= index <= last:
                self.repaint_row(index)

    def hover(self, control: tuple[int, str]) -> None:
        """Set the hovered control."""
        if control != self.hovered:
            before, self.hovered = self.hovered, control
            for index, key in (before, control):
                if key or before[0] != control[0]:
                    self.repaint_row(index)
            self._repaint_footers(before[0], control[0])

    def move_caret(self, row: int) -> None:
        """Set the row of the caret, or -1."""
        before, self.caret_row = self.caret_row, row
        if before != row:
            self.repaint_row(before)
            self.repaint_row(row)
        self._repaint_footers(before, row)

    def _repaint_footers(self, before: int, after: int) -> None:
        """Repaint the footers of two rows' messages, where they are not the same."""
        rows = self.rows
        carriers = {carrier_of(rows.transcript, index) for index in (before, after)}
        for index in carriers if len(carriers) > 1 else ():
            row = rows.existing_row(index) if index is not None and index < rows.count else None
            if row is not None and row.footer is not None and index is not None:
                self.widget.update(self.block_box(index, len(row.blocks) - 1).adjusted(-12, 0, 12, 0))

    def focus(self, target: tuple[int, str]) -> None:
        """Set the focused row or control."""
        before, self.focused = self.focused, target
        self.repaint_row(before[0])
        self.repaint_row(target[0])
        self._repaint_footers(before[0], target[0])

    def select(self, start: TextPosition, end: TextPosition) -> None:
        """Select, and repaint what changed."""
        old = self.selection.ordered
        was_empty = self.selection.is_empty
        self.selection.set(start, end)
        new = self.selection.ordered
        positions = new if was_empty else (*old, *new)
        self.repaint_rows(min(position.row for position in positions), max(position.row for position in positions))

    def cursor_for(self, point: QPoint) -> Qt.CursorShape:
        """Return the shape of the pointer at a point."""
        hit = self.hit(point)
        if hit and (hit.control or hit.link):
            return Qt.CursorShape.PointingHandCursor
        over_text = 0 <= point.x() - self.column < self.rows.width
        return Qt.CursorShape.IBeamCursor if over_text else Qt.CursorShape.ArrowCursor
