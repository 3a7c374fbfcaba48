"""The cells of some rows of a table: read when they come near the screen, laid out when that is needed."""

import re
from collections.abc import Sequence
from math import ceil

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFont

from ui.transcript.blocks.flow import TextLayout
from ui.transcript.blocks.inline_object import InlineObjects
from ui.transcript.blocks.math.inline_formulas import InlineFormulas
from ui.transcript.blocks.table.cell_texts import TableCellTexts
from ui.transcript.blocks.table.measuring import MEASURED_LENGTH, cell_ruler
from ui.transcript.look import RenderStyle
from ui.transcript.markdown.inline import OBJECT, Line
from ui.transcript.markdown.leaves import Leaf
from ui.transcript.markdown.parser import References
from ui.transcript.markdown.pieces import PIECE

_ALIGN = {"center": Qt.AlignmentFlag.AlignHCenter, "right": Qt.AlignmentFlag.AlignRight}
_MARKUP = re.compile(r"[\\`*_~\[\]!<&$]|://")
_VISIBLE_COLUMNS = 64
"""Columns of a table that are read and laid out to know how wide and how high they are, if it has no more of them."""

_VISIBLE_COLUMNS_OF_MANY = 20
"""Of a table with more columns; the others count as wide and as high as they probably are."""


class TableCells(TableCellTexts):
    """By row and column."""

    def __init__(self, leaf: Leaf, references: References, formulas: InlineFormulas) -> None:
        super().__init__(leaf, references)
        self._formulas = formulas
        self._needs: list[list[float]] = []
        self._flows: dict[tuple[int, int], TextLayout] = {}

    def set_leaf(self, leaf: Leaf) -> int:
        """The same rows with more text in them, or more rows; answers the first row that differs."""
        same = super().set_leaf(leaf)
        del self._needs[same:]
        self._flows = {position: text_layout for position, text_layout in self._flows.items() if position[0] < same}
        return same

    def reset(self) -> None:
        """Read and measure again."""
        super().reset()
        self._needs, self._flows = [], {}

    def invalidate_widths(self) -> None:
        """Measure again what was read."""
        self._needs = []

    def forget(self) -> None:
        """The layouts, and the formulas that were still to come."""
        self._flows = {}
        self._formulas.forget()

    @property
    def is_measured(self) -> bool:
        """Whether it is known how wide all cells want to be."""
        return len(self._needs) == len(self.leaf.cells)

    def wanted_widths(self, style: RenderStyle) -> list[list[float]]:
        """How wide the cells want to be: exactly for the first rows of a table, about for those nobody may see."""
        for row in range(len(self._needs), len(self.leaf.cells)):
            measured, exact = cell_ruler(self._font(row, style)), self._measured_columns if self.has_head else 0
            lines = [self.line(row, column) for column in range(exact)]
            needs = [measured.measure(line, self._objects(line, row, style, 1 << 20)) for line in lines]
            self._needs.append([*needs, *map(measured.estimate, self.cell_sources(row)[exact:])])
        return self._needs

    @property
    def _measured_columns(self) -> int:
        """Columns that are looked at closely."""
        count = len(self.leaf.aligns)
        return count if count <= _VISIBLE_COLUMNS else _VISIBLE_COLUMNS_OF_MANY

    def _font(self, row: int, style: RenderStyle) -> QFont:
        return style.strong if self.is_head(row) else style.body

    def _objects(self, line: Line, row: int, style: RenderStyle, width: float) -> InlineObjects | None:
        return self._formulas.objects(line, self._font(row, style), style, width) if OBJECT in line.text else None

    def estimate_line_count(self, row: int, widths: Sequence[int], style: RenderStyle) -> int:
        """How many lines a row probably has."""
        pad = 2 * style.px(10)
        return max(ceil(need / (wide - pad)) or 1 for need, wide in zip(self._needs[row], widths, strict=True))

    def height(self, row: int, widths: Sequence[int], style: RenderStyle) -> int:
        """Of a row without its margins."""
        tall, laid_out, most, pad = style.line, 0, self._measured_columns, 2 * style.px(10)
        for column, (cell, need) in enumerate(zip(self.cell_sources(row), self._needs[row], strict=True)):
            room = widths[column] - pad
            if need <= room + 1 and _is_plain(cell):
                continue
            if laid_out < most:
                tall = max(tall, self.text_layout(row, column, room, style).height)
                laid_out += 1
            else:
                tall = max(tall, style.line * (1 + ceil(1.2 * need / room)))
        return tall

    def text_layout(self, row: int, column: int, room: int, style: RenderStyle) -> TextLayout:
        """A cell that is seen, pointed at, or higher than a line."""
        found = self._flows.get((row, column))
        if found is None:
            line = _displayed_line(self.line(row, column))
            align = _ALIGN.get(self.leaf.aligns[column], Qt.AlignmentFlag.AlignLeft)
            objects = self._objects(line, row, style, room)
            found = TextLayout(line, self._font(row, style), style, room, style.line, align=align, objects=objects)
            self._flows[row, column] = found
        return found

    def tooltip_at(self, text_layout: TextLayout, point: QPoint) -> str:
        """Of a formula in a cell."""
        return self._formulas.tooltip_at(text_layout, point)


def _is_plain(cell: str) -> bool:
    """Whether a cell that fits is as high as a line for sure."""
    return cell.isascii() and len(cell) < MEASURED_LENGTH and cell.isprintable() and not _MARKUP.search(cell)


def _displayed_line(line: Line) -> Line:
    """What is seen of a cell: the beginning, when it is longer than anybody puts into a table."""
    return line if len(line.text) <= PIECE else Line(f"{line.text[:PIECE].replace(OBJECT, '…')}…")
