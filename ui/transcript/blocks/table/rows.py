"""Some rows of a table, laid out and painted."""

from bisect import bisect_right

from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QLinearGradient, QPainterPath

from ui.transcript.blocks.block import Block, PaintContext
from ui.transcript.blocks.flow import TextLayout
from ui.transcript.blocks.math.formulas import MathCallbacks
from ui.transcript.blocks.math.inline_formulas import InlineFormulas
from ui.transcript.blocks.table.cells import TableCells
from ui.transcript.blocks.table.columns import TableColumns
from ui.transcript.look import RenderStyle
from ui.transcript.markdown.leaves import Leaf
from ui.transcript.markdown.parser import References

_CORNER = 10
_FADE = 28


class TableRows(Block):
    """The first piece of a table has its head. Rows that grow lay out their own cells alone while the columns stay."""

    def __init__(
        self, leaf: Leaf, references: References, columns: TableColumns | None = None, math: MathCallbacks | None = None
    ) -> None:
        self.columns = columns or TableColumns(len(leaf.aligns))
        self.number = self.columns.add(self)
        self.cells = TableCells(leaf, references, InlineFormulas(math, self._reset))
        self.tops: list[int] = [0]
        self.widths: list[int] = []
        self.width = 0
        self.laid_out_style: RenderStyle | None = None

    @property
    def leaf(self) -> Leaf:
        """The rows as they were written."""
        return self.cells.leaf

    def set_leaf(self, leaf: Leaf) -> None:
        """The same rows with more text in them, or more rows."""
        same = self.cells.set_leaf(leaf)
        self.dirty_from = self.dirty_top(same)
        del self.tops[same + 1 :]
        self.is_laid_out, self.layout_count = False, 0

    def dirty_top(self, row: int | None = None) -> int:
        """From where a table that goes on with this row is painted anew: its rounded corners become straight lines."""
        last = len(self.tops) - 1
        return max(0, self.tops[last if row is None else min(row, last)] - _CORNER)

    def refresh_references(self) -> bool:
        """A definition arrived: read again, if a cell could use one."""
        if not any("]" in cell for row in self.leaf.cells for cell in row):
            return False
        self._reset()
        return True

    def _reset(self) -> None:
        self.cells.reset()
        self.forget()
        self.layout_count = 0

    def forget(self) -> None:
        """Keep the text alone."""
        self.cells.forget()
        self.tops, self.widths = [0], []
        self.is_laid_out, self.dirty_from = False, 0

    def invalidate_widths(self) -> None:
        """Measure again."""
        self.cells.invalidate_widths()

    def measure(self, style: RenderStyle) -> None:
        """Say how wide the cells want to be."""
        self.columns.set_style(style)
        if not self.cells.is_measured:
            needs = self.cells.wanted_widths(style)
            self.columns.set_wanted_widths(self.number, list(map(max, *needs, needs[0])))

    def estimate(self, width: int, style: RenderStyle) -> int:
        """From how wide the cells want to be; as if no cell wrapped, while this is the whole table."""
        count = len(self.leaf.cells)
        lines = count
        if self.number:
            self.columns.measure(style)
            self.measure(style)
            widths = self.columns.widths(width - 1, style)
            lines = sum(self.cells.estimate_line_count(row, widths, style) for row in range(count))
        return lines * style.line + count * style.px(12) + 2

    def layout(self, width: int, style: RenderStyle) -> int:
        """Measure the new rows, and lay out what the columns' widths changed."""
        self.measure(style)
        widths = self.columns.widths(width - 1, style)
        if (width, widths) != (self.width, self.widths):
            self.cells.forget()
            self.tops, self.dirty_from = [0], 0
        self.width, self.widths, self.laid_out_style = width, widths, style
        for row in range(len(self.tops) - 1, len(self.leaf.cells)):
            self.tops.append(self.tops[-1] + self.cells.height(row, widths, style) + style.px(12))
        self.is_laid_out = True
        return self._height

    @property
    def _height(self) -> int:
        return self.tops[-1] + (2 if self.columns.is_last(self.number) else 0)

    def paint(self, context: PaintContext) -> None:
        """Frame, head, rows inside the clip, the selected part of the text."""
        painter, style = context.painter, context.style
        # Pieces have straight sides where they touch.
        top = 0.5 if self.cells.has_head else -2.0 * _CORNER
        bottom = self._height - (0.5 if self.columns.is_last(self.number) else -2.0 * _CORNER)
        frame = QRectF(0.5, top, min(self.columns.lefts[-1], self.width - 1), bottom - top)
        painter.save()
        painter.setClipRect(QRect(0, 0, self.width, self._height), Qt.ClipOperation.IntersectClip)
        painter.save()
        path = QPainterPath()
        path.addRoundedRect(frame, 8, 8)
        painter.setClipPath(path, Qt.ClipOperation.IntersectClip)
        painter.translate(-self.columns.scrolled, 0)
        for row in range(max(0, bisect_right(self.tops, context.clip.top()) - 1), len(self.tops) - 1):
            if self.tops[row] > context.clip.bottom():
                break
            self._paint_row(context, row)
        painter.restore()
        self._paint_fades(context)
        painter.setPen(style.color("border"))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(frame, 8, 8)
        painter.restore()

    def _paint_fades(self, context: PaintContext) -> None:
        """Columns that go on behind an edge fade away there."""
        room, scrolled, wide = self.width - 1, self.columns.scrolled, context.style.px(_FADE)
        clear = QColor(context.style.color("window"))
        clear.setAlpha(0)
        edges = ((0, wide, scrolled > 0), (room, room - wide, scrolled < self.columns.max_scroll(room)))
        for edge, inner, goes_on in edges:
            if goes_on:
                fade = QLinearGradient(edge, 0, inner, 0)
                fade.setStops([(0, context.style.color("window")), (1, clear)])
                context.painter.fillRect(QRect(min(edge, inner), 0, wide, self._height), fade)

    def _paint_row(self, context: PaintContext, row: int) -> None:
        painter, style, lefts = context.painter, context.style, self.columns.lefts
        top, tall = self.tops[row], self.tops[row + 1] - self.tops[row]
        if self.cells.is_head(row):
            painter.fillRect(QRect(0, top, lefts[-1], tall), style.color("surface"))
        elif row or not self.cells.has_head:
            painter.fillRect(QRect(0, top, lefts[-1], 1), style.color("border"))
        first = self.column_at(self.columns.scrolled)
        offset, part = self.cells.offset_of(row, first) if context.selection else 0, None
        for column in range(first, len(self.widths)):
            if lefts[column] > self.columns.scrolled + self.width:
                break
            if context.selection:
                part, offset = self.cells.selected_part(row, column, offset, context.selection)
            at = QPointF(lefts[column] + style.px(10), top + style.px(6))
            self.text_layout(row, column, style).draw(painter, style, at, "text", part)

    def text_layout(self, row: int, column: int, style: RenderStyle) -> TextLayout:
        """A cell, laid out."""
        return self.cells.text_layout(row, column, self.widths[column] - 2 * style.px(10), style)

    def column_at(self, x: int) -> int:
        """The column at an x of the whole table."""
        return max(0, min(bisect_right(self.columns.lefts, x) - 1, len(self.widths) - 1))
