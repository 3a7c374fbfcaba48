"""A table block: columns as wide as they need, with rows laid out and painted when they come near the screen."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QLinearGradient, QPainterPath

from ui.transcript.blocks.block import WHOLE_TEXT, Block, PaintContext, TextRange
from ui.transcript.blocks.math.formulas import MathCallbacks
from ui.transcript.blocks.math.math_block import InlineFormulas
from ui.transcript.blocks.table_cells import TableCellLayouts, TableCells
from ui.transcript.blocks.text_layout import TextLayout
from ui.transcript.markdown.elements import Leaf
from ui.transcript.markdown.inline import Line
from ui.transcript.markdown.misleading_links import link_tooltip
from ui.transcript.markdown.parser import References
from ui.transcript.markdown.serializer import line_to_html, line_to_markdown, table_html, table_markdown, table_rule
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.style import RenderStyle

# Pixels at 100 %. Columns shrink to the first width if the table then fits; in a table that scrolls sideways anyway
# they shrink only to the second.
_MIN_WIDTH, _MAX_MIN_WIDTH = 64, 240


class TableColumns:
    """The columns of a table, as wide as the widest cell wants if all fit. `scrolled` is in pixels."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.scrolled = 0
        self.pieces: list[TableBlock] = []
        self._needs: list[list[float]] = []
        self._needs_before: list[list[float]] = [[0.0] * count]
        self._natural = [0.0] * count
        self._distributed: tuple[int, list[int]] | None = None
        self.lefts: list[int] = []
        """The left edge of each column, and the right edge of the last one."""
        self._style: RenderStyle | None = None

    def set_style(self, style: RenderStyle) -> None:
        """Set the style; another style drops all measured widths."""
        if self._style not in (None, style):
            for piece in self.pieces:
                piece.forget_widths()
            self._needs = [[0.0] * self.count for _ in self.pieces]
            self._needs_before = [[0.0] * self.count for _ in range(len(self.pieces) + 1)]
            self._natural, self._distributed = self._needs_before[-1], None
        self._style = style

    def add(self, piece: "TableBlock") -> int:
        """Append a piece and return its number."""
        if self.pieces:
            # It is no longer the last one, so it loses its lower edge.
            self.pieces[-1].is_laid_out = False
        self.pieces.append(piece)
        self._needs.append([0.0] * self.count)
        self._needs_before.append(self._needs_before[-1])
        return len(self.pieces) - 1

    def truncate(self, count: int) -> None:
        """Keep only the first pieces."""
        if count >= len(self.pieces):
            return
        del self.pieces[count:], self._needs[count:], self._needs_before[count + 1 :]
        if self.pieces:
            self.pieces[-1].is_laid_out = False
        self._widen()

    def is_last(self, number: int) -> bool:
        """Return whether the table ends with this piece."""
        return number == len(self.pieces) - 1

    def set_wanted_widths(self, number: int, needs: list[float]) -> None:
        """Set the wanted widths of a piece; if they change the columns, all pieces are laid out again."""
        if needs == self._needs[number]:
            return
        self._needs[number] = needs
        for index in range(number, len(self._needs)):
            self._needs_before[index + 1] = list(map(max, self._needs_before[index], self._needs[index]))
        self._widen()

    def _widen(self) -> None:
        if self._natural == self._needs_before[-1]:
            return
        self._natural, self._distributed = self._needs_before[-1], None
        for piece in self.pieces:
            piece.forget()

    def widths(self, room: int, style: RenderStyle) -> list[int]:
        """Return the widths of the columns in the available width."""
        if self._distributed is None or self._distributed[0] != room:
            pad = 2 * style.px(10)
            wanted = [int(natural) + pad for natural in self._natural]
            widths = distribute_width(wanted, room, style.px(_MIN_WIDTH) + pad, style.px(_MAX_MIN_WIDTH))
            self._distributed = room, widths
            self.lefts = list(accumulate(widths, initial=0))
            self.scrolled = min(self.scrolled, self.max_scroll(room))
        return self._distributed[1]

    def max_scroll(self, room: int) -> int:
        """Return how far the table can be scrolled."""
        return max(0, self.lefts[-1] - room) if self.lefts else 0

    def scroll(self, pixels: int, room: int) -> bool:
        """Scroll sideways; return whether anything moved."""
        scrolled = max(0, min(self.scrolled + pixels, self.max_scroll(room)))
        moved, self.scrolled = scrolled != self.scrolled, scrolled
        return moved


def distribute_width(wanted: Sequence[int], room: int, least: int, most: int) -> list[int]:
    """Return column widths: narrow columns keep what they want, the others share the rest in proportion.

    If some would become unreadably narrow, the table is wider than the room, and only the widest columns give way.
    """
    if sum(min(least, width) for width in wanted) > room:
        return [min(width, max(least, most)) for width in wanted]
    widths = [0] * len(wanted)
    open_columns = set(range(len(wanted)))
    rest = room
    while open_columns:
        share = rest / len(open_columns)
        fitting = {column for column in open_columns if wanted[column] <= share}
        if not fitting:
            break
        for column in fitting:
            widths[column] = wanted[column]
            rest -= wanted[column]
        open_columns -= fitting
    whole = sum(wanted[column] for column in open_columns) or 1
    for column in open_columns:
        widths[column] = max(min(least, wanted[column]), int(rest * wanted[column] / whole))
    return widths


_CORNER = 10
_FADE = 28


class TableBlock(Block):
    """Rows of a table, copied as tab-separated text. A long table is several of these; the first has the head.

    Growing rows lay out only their own cells while the columns keep their widths.
    """

    def __init__(
        self, leaf: Leaf, references: References, columns: TableColumns | None = None, math: MathCallbacks | None = None
    ) -> None:
        self.columns = columns or TableColumns(len(leaf.aligns))
        self.number = self.columns.add(self)
        self.cells = TableCells(leaf, references)
        self._formulas = InlineFormulas(math, self._reset)
        self._layouts = TableCellLayouts(self.cells, self._formulas)
        self.tops: list[int] = [0]
        self.widths: list[int] = []
        self.width = 0
        self.laid_out_style: RenderStyle | None = None

    @property
    def leaf(self) -> Leaf:
        return self.cells.leaf

    def set_leaf(self, leaf: Leaf) -> None:
        """Replace the rows by the same ones with more text, or with more rows below."""
        unchanged = self.cells.set_leaf(leaf)
        self._layouts.truncate(unchanged)
        # The rounded corners above the first new row disappear.
        self.dirty_from = max(0, self.tops[min(unchanged, len(self.tops) - 1)] - _CORNER)
        del self.tops[unchanged + 1 :]
        self.is_laid_out = False

    def refresh_references(self) -> bool:
        """Parse again after a link definition arrived, if a cell could use one."""
        if not any("]" in cell for row in self.leaf.cells for cell in row):
            return False
        self._reset()
        return True

    def _reset(self) -> None:
        self.cells.reset()
        self.forget_widths()

    def forget(self) -> None:
        self._layouts.forget()
        self.tops, self.widths = [0], []
        self.is_laid_out, self.dirty_from = False, 0

    def forget_widths(self) -> None:
        """Drop the layout and the measured widths."""
        self._layouts.truncate(0)
        self.forget()

    def measure(self, style: RenderStyle) -> None:
        """Report the wanted widths of the cells."""
        self.columns.set_style(style)
        if not self._layouts.is_measured:
            needs = self._layouts.wanted_widths(style)
            self.columns.set_wanted_widths(self.number, list(map(max, *needs, needs[0])))

    def estimate(self, width: int, style: RenderStyle) -> int:
        """Estimate the height from the wanted widths, or in the first piece as if no cell wrapped."""
        count = len(self.leaf.cells)
        lines = count
        if self.number:
            # The piece with the head may be far outside the viewport.
            self.columns.pieces[0].measure(style)
            self.measure(style)
            widths = self.columns.widths(width - 1, style)
            lines = sum(self._layouts.estimate_line_count(row, widths, style) for row in range(count))
        return lines * style.line + count * style.px(12) + 2

    def layout(self, width: int, style: RenderStyle) -> int:
        """Measure new rows, and lay out what the column widths changed."""
        self.measure(style)
        widths = self.columns.widths(width - 1, style)
        if (width, widths) != (self.width, self.widths):
            self._layouts.forget()
            self.tops, self.dirty_from = [0], 0
        self.width, self.widths, self.laid_out_style = width, widths, style
        for row in range(len(self.tops) - 1, len(self.leaf.cells)):
            self.tops.append(self.tops[-1] + self._layouts.height(row, widths, style) + style.px(12))
        self.is_laid_out = True
        return self._height

    @property
    def _height(self) -> int:
        return self.tops[-1] + (2 if self.columns.is_last(self.number) else 0)

    def paint(self, context: PaintContext) -> None:
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
        style.paint_box(painter, frame, 8, border="border")
        painter.restore()

    def _paint_fades(self, context: PaintContext) -> None:
        room, scrolled, fade_width = self.width - 1, self.columns.scrolled, context.style.px(_FADE)
        clear = context.style.faded("window", 0)
        edges = ((0, fade_width, scrolled > 0), (room, room - fade_width, scrolled < self.columns.max_scroll(room)))
        for edge, inner, continues in edges:
            if continues:
                fade = QLinearGradient(edge, 0, inner, 0)
                fade.setStops([(0, context.style.color("window")), (1, clear)])
                context.painter.fillRect(QRect(min(edge, inner), 0, fade_width, self._height), fade)

    def _paint_row(self, context: PaintContext, row: int) -> None:
        painter, style, lefts = context.painter, context.style, self.columns.lefts
        top, height = self.tops[row], self.tops[row + 1] - self.tops[row]
        if self.cells.is_head(row):
            painter.fillRect(QRect(0, top, lefts[-1], height), style.color("surface"))
        elif row or not self.cells.has_head:
            painter.fillRect(QRect(0, top, lefts[-1], 1), style.color("border"))
        first = self.column_at(self.columns.scrolled)
        offset, part = self.cells.offset_of(row, first) if context.selection else 0, None
        for column in range(first, len(self.widths)):
            if lefts[column] > self.columns.scrolled + self.width:
                break
            if context.selection:
                part = self.cells.selected_part(row, column, offset, context.selection)
                offset += self.cells.size_of(row, column) + 1
            origin = QPointF(lefts[column] + style.px(10), top + style.px(6))
            self.text_layout(row, column, style).draw(painter, style, origin, "text", part)

    def text_layout(self, row: int, column: int, style: RenderStyle) -> TextLayout:
        """Return the layout of a cell."""
        return self._layouts.text_layout(row, column, self.widths[column] - 2 * style.px(10), style)

    def column_at(self, x: int) -> int:
        """Return the column at an x in the whole table."""
        return max(0, min(bisect_right(self.columns.lefts, x) - 1, len(self.widths) - 1))

    def plain(self) -> str:
        return self.cells.plain()

    def markdown(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """Return the selected rows below the head, or the selected part of a single cell."""
        parts = list(self.cells.rows_between(start, end))
        if line := self._single_cell_part(parts, start, end):
            return line_to_markdown(line)
        if parts and self.cells.is_head(parts[0][0]):
            del parts[0]
        sources = [["" if part is not line else cell for part, line, cell in self._cell_parts(*row)] for row in parts]
        rows = table_markdown(sources, [lines for _, lines in parts])
        return "\n".join(filter(None, (self.markdown_prefix(), rows)))

    def _single_cell_part(self, parts: list[tuple[int, list[Line]]], start: int, end: int) -> Line | None:
        filled = [line for _, lines in parts for line in lines if line.text]
        is_part = start > 0 or end < utf16_length(self.plain())
        return filled[0] if len(filled) == 1 and is_part else None

    def cell_texts(self) -> list[list[str]]:
        """Return the cells without markup, row by row."""
        return [[line.plain() for line in lines] for lines in self.cells.lines()]

    def _cell_parts(self, row: int, parts: list[Line]) -> Iterator[tuple[Line, Line, str]]:
        """Yield the selected part, the whole line and the source of each cell of a row."""
        lines = [self.cells.line(row, column) for column in range(len(parts))]
        return zip(parts, lines, self.cells.cell_sources(row), strict=True)

    def markdown_prefix(self) -> str:
        """Return the head and its rule, without which the rows are no table."""
        if not self.cells.has_head:
            return ""
        head = table_markdown([self.cells.cell_sources(0)], [self.cells.lines()[0]])
        return f"{head}\n{table_rule(self.leaf.aligns)}"

    def html(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """Return the selected rows, or the selected part of a single cell."""
        parts = list(self.cells.rows_between(start, end))
        if line := self._single_cell_part(parts, start, end):
            return f"<p>{line_to_html(line)}</p>"
        has_head = bool(parts) and self.cells.is_head(parts[0][0])
        return table_html(self.leaf.aligns, [cells for _, cells in parts], has_head=has_head)

    def offset_at(self, point: QPoint) -> int:
        if not self.laid_out_style or not self.widths:
            return 0
        row, column, cell_point = self._cell_at(point, self.laid_out_style)
        position = self.text_layout(row, column, self.laid_out_style).offset_at(cell_point.x(), max(0, cell_point.y()))
        return self.cells.offset_of(row, column) + self.cells.line(row, column).to_plain(position)

    def _cell_at(self, point: QPoint, style: RenderStyle) -> tuple[int, int, QPoint]:
        row = max(0, min(bisect_right(self.tops, point.y()) - 1, len(self.tops) - 2))
        x = point.x() + self.columns.scrolled
        column = self.column_at(x)
        y = point.y() - self.tops[row] - style.px(6)
        return row, column, QPoint(x - self.columns.lefts[column] - style.px(10), y)

    def boxes(self, start: int, end: int) -> list[QRectF]:
        """Return what a part of the text covers; cells outside the viewport count as a whole, without layout."""
        style = self.laid_out_style
        rects: list[QRectF] = []
        if not style or not self.widths:
            return rects
        for row, column, part in self.cells.selected(start, end):
            cell = self._box(row, column)
            if cell.right() < 0 or cell.left() > self.width:
                rects.append(cell)
                continue
            text_layout, corner = self.text_layout(row, column, style), self._corner(row, column, style)
            rects += [box.translated(corner) for box in text_layout.boxes(part[0], part[1] - part[0])]
        return rects

    def _box(self, row: int, column: int) -> QRectF:
        left, right = (x - self.columns.scrolled for x in self.columns.lefts[column : column + 2])
        return QRectF(left, self.tops[row], right - left, self.tops[row + 1] - self.tops[row])

    def caret_rect_at(self, offset: int) -> QRectF | None:
        style, cell = self.laid_out_style, self.cells.cell_at(offset)
        if not style or not self.widths or not cell:
            return None
        row, column, start = cell
        position = self.cells.line(row, column).from_plain(offset - start)
        return self.text_layout(row, column, style).caret_rect_at(position).translated(self._corner(row, column, style))

    def _corner(self, row: int, column: int, style: RenderStyle) -> QPointF:
        left = self.columns.lefts[column] - self.columns.scrolled
        return QPointF(left + style.px(10), self.tops[row] + style.px(6))

    def paragraph_at(self, offset: int) -> TextRange:
        return self.cells.span_at(offset)

    def _layout_at(self, point: QPoint) -> tuple[TextLayout, QPoint] | None:
        if not self.laid_out_style or not self.widths or not 0 <= point.y() < self.tops[-1]:
            return None
        row, column, cell_point = self._cell_at(point, self.laid_out_style)
        return self.text_layout(row, column, self.laid_out_style), cell_point

    def link_at(self, point: QPoint) -> str:
        hit = self._layout_at(point)
        return hit[0].link_at(hit[1].x(), hit[1].y()) if hit else ""

    def tooltip_at(self, point: QPoint) -> str:
        """Return the real target of a link, or the source of a formula and why it is not drawn."""
        link, hit = self.link_at(point), self._layout_at(point)
        if link:
            return link_tooltip(link)
        return self._formulas.tooltip_at(*hit) if hit else ""

    def scroll_horizontally(self, pixels: int) -> bool:
        return bool(self.widths) and self.columns.scroll(pixels, self.width - 1)
