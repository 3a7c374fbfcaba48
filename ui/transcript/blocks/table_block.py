"""A table: columns as wide as they need, cells that wrap when the column is too narrow for all of them."""

from bisect import bisect_right
from collections.abc import Iterator

from PySide6.QtCore import QPoint, QPointF, QRectF

from ui.transcript.blocks.block import WHOLE_TEXT, TextRange
from ui.transcript.blocks.flow import TextLayout
from ui.transcript.blocks.table.rows import TableRows
from ui.transcript.copying.leaf_forms import table_html, table_markdown, table_rule
from ui.transcript.look import RenderStyle
from ui.transcript.markdown.inline import Line, link_tooltip, utf16_length
from ui.transcript.markdown.written import line_to_html, line_to_markdown


class TableBlock(TableRows):
    """Copied as tab-separated text. A long table is several of these, below each other."""

    def plain(self) -> str:
        """Tabs between cells, one row on each line."""
        return self.cells.plain()

    def markdown(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """The rows of which something is selected, below the head; inside of one cell, its text alone."""
        parts = list(self.cells.rows_between(start, end))
        if line := self._single_cell_part(parts, start, end):
            return line_to_markdown(line)
        if parts and self.cells.is_head(parts[0][0]):
            del parts[0]
        written = [["" if part is not line else cell for part, line, cell in self._cell_parts(*each)] for each in parts]
        rows = table_markdown(written, [lines for _, lines in parts])
        return "\n".join(each for each in (self.markdown_prefix(), rows) if each)

    def _single_cell_part(self, parts: list[tuple[int, list[Line]]], start: int, end: int) -> Line | None:
        """What is selected, when that is less than the table and inside of one cell."""
        filled = [line for _, lines in parts for line in lines if line.text]
        is_part = start > 0 or end < utf16_length(self.plain())
        return filled[0] if len(filled) == 1 and is_part else None

    def cell_texts(self) -> list[list[str]]:
        """The cells without markup, row by row."""
        return [[line.plain() for line in lines] for lines in self.cells.lines()]

    def _cell_parts(self, row: int, parts: list[Line]) -> Iterator[tuple[Line, Line, str]]:
        """Of each cell of a row: what is selected of it, all of it, and how it was written."""
        lines = [self.cells.line(row, column) for column in range(len(parts))]
        return zip(parts, lines, self.cells.cell_sources(row), strict=True)

    def markdown_prefix(self) -> str:
        """The head and its rule: without them there is no table."""
        if not self.cells.has_head:
            return ""
        head = table_markdown([self.cells.cell_sources(0)], [self.cells.lines()[0]])
        return f"{head}\n{table_rule(self.leaf.aligns)}"

    def html(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """The rows of which something is selected; inside of one cell, its text alone."""
        parts = list(self.cells.rows_between(start, end))
        if line := self._single_cell_part(parts, start, end):
            return f"<p>{line_to_html(line)}</p>"
        has_head = bool(parts) and self.cells.is_head(parts[0][0])
        return table_html(self.leaf.aligns, [each for _, each in parts], has_head=has_head)

    def offset_at(self, point: QPoint) -> int:
        """The nearest place in the cell under the point."""
        if not self.laid_out_style or not self.widths:
            return 0
        row, column, inside = self._cell_at(point, self.laid_out_style)
        position = self.text_layout(row, column, self.laid_out_style).offset_at(inside.x(), max(0, inside.y()))
        return self.cells.offset_of(row, column) + self.cells.line(row, column).to_plain(position)

    def _cell_at(self, point: QPoint, style: RenderStyle) -> tuple[int, int, QPoint]:
        row = max(0, min(bisect_right(self.tops, point.y()) - 1, len(self.tops) - 2))
        x = point.x() + self.columns.scrolled
        column = self.column_at(x)
        y = point.y() - self.tops[row] - style.px(6)
        return row, column, QPoint(x - self.columns.lefts[column] - style.px(10), y)

    def boxes(self, start: int, end: int) -> list[QRectF]:
        """What a part of the text covers, cell by cell; of cells beside the screen all, so that none is laid out."""
        style = self.laid_out_style
        found: list[QRectF] = []
        if not style or not self.widths:
            return found
        for row, column, part in self.cells.selected(start, end):
            cell = self._box(row, column)
            if cell.right() < 0 or cell.left() > self.width:
                found.append(cell)
                continue
            text_layout, corner = self.text_layout(row, column, style), self._corner(row, column, style)
            found += [box.translated(corner) for box in text_layout.boxes(part[0], part[1] - part[0])]
        return found

    def _box(self, row: int, column: int) -> QRectF:
        """All of a cell."""
        left, right = (each - self.columns.scrolled for each in self.columns.lefts[column : column + 2])
        return QRectF(left, self.tops[row], right - left, self.tops[row + 1] - self.tops[row])

    def caret_rect_at(self, offset: int) -> QRectF | None:
        """In its cell."""
        style, found = self.laid_out_style, self.cells.cell_at(offset)
        if not style or not self.widths or not found:
            return None
        row, column, start = found
        position = self.cells.line(row, column).from_plain(offset - start)
        return self.text_layout(row, column, style).caret_rect_at(position).translated(self._corner(row, column, style))

    def _corner(self, row: int, column: int, style: RenderStyle) -> QPointF:
        """Where the text of a cell begins."""
        left = self.columns.lefts[column] - self.columns.scrolled
        return QPointF(left + style.px(10), self.tops[row] + style.px(6))

    def paragraph_at(self, offset: int) -> TextRange:
        """The cell."""
        return self.cells.span_at(offset)

    def _layout_at(self, point: QPoint) -> tuple[TextLayout, QPoint] | None:
        if not self.laid_out_style or not self.widths or not 0 <= point.y() < self.tops[-1]:
            return None
        row, column, inside = self._cell_at(point, self.laid_out_style)
        return self.text_layout(row, column, self.laid_out_style), inside

    def link_at(self, point: QPoint) -> str:
        """The target under a point."""
        seen = self._layout_at(point)
        return seen[0].link_at(seen[1].x(), seen[1].y()) if seen else ""

    def tooltip_at(self, point: QPoint) -> str:
        """Where a link really leads, or the source of a formula and why it is not drawn."""
        link, seen = self.link_at(point), self._layout_at(point)
        if link:
            return link_tooltip(link)
        return self.cells.tooltip_at(*seen) if seen else ""

    def scroll_horizontally(self, pixels: int) -> bool:
        """Only when its columns do not fit."""
        return bool(self.widths) and self.columns.scroll(pixels, self.width - 1)
