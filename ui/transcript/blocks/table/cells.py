"""The cells of some rows of a table: read when they come near the screen, laid out when that is needed."""

import re
from collections.abc import Sequence
from math import ceil

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFont

from ui.transcript.blocks.flow import Flow
from ui.transcript.blocks.inline_object import Objects
from ui.transcript.blocks.math.inline_formulas import InlineFormulas
from ui.transcript.blocks.table.cell_texts import CellTexts
from ui.transcript.blocks.table.measuring import MEASURED, ruler
from ui.transcript.look import Look
from ui.transcript.markdown.inline import OBJECT, Line
from ui.transcript.markdown.leaves import Leaf
from ui.transcript.markdown.parser import References
from ui.transcript.markdown.pieces import PIECE

_ALIGN = {"center": Qt.AlignmentFlag.AlignHCenter, "right": Qt.AlignmentFlag.AlignRight}
_MARKUP = re.compile(r"[\\`*_~\[\]!<&$]|://")
_SEEN = 64
"""Columns of a table that are read and laid out to know how wide and how high they are, if it has no more of them."""

_SEEN_OF_MANY = 20
"""Of a table with more columns; the others count as wide and as high as they probably are."""


class Cells(CellTexts):
    """By row and column."""

    def __init__(self, leaf: Leaf, references: References, formulas: InlineFormulas) -> None:
        super().__init__(leaf, references)
        self._formulas = formulas
        self._needs: list[list[float]] = []
        self._flows: dict[tuple[int, int], Flow] = {}

    def become(self, leaf: Leaf) -> int:
        """The same rows with more text in them, or more rows; answers the first row that differs."""
        same = super().become(leaf)
        del self._needs[same:]
        self._flows = {place: flow for place, flow in self._flows.items() if place[0] < same}
        return same

    def renew(self) -> None:
        """Read and measure again."""
        super().renew()
        self._needs, self._flows = [], {}

    def unmeasure(self) -> None:
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

    def needs(self, look: Look) -> list[list[float]]:
        """How wide the cells want to be: exactly for the first rows of a table, about for those nobody may see."""
        for row in range(len(self._needs), len(self.leaf.cells)):
            measured, exact = ruler(self._font(row, look)), self._near if self.has_head else 0
            lines = [self.line(row, column) for column in range(exact)]
            needs = [measured.measure(line, self._objects(line, row, look, 1 << 20)) for line in lines]
            self._needs.append([*needs, *map(measured.guess, self.written(row)[exact:])])
        return self._needs

    @property
    def _near(self) -> int:
        """Columns that are looked at closely."""
        count = len(self.leaf.aligns)
        return count if count <= _SEEN else _SEEN_OF_MANY

    def _font(self, row: int, look: Look) -> QFont:
        return look.strong if self.is_head(row) else look.body

    def _objects(self, line: Line, row: int, look: Look, width: float) -> Objects | None:
        return self._formulas.objects(line, self._font(row, look), look, width) if OBJECT in line.text else None

    def guess(self, row: int, widths: Sequence[int], look: Look) -> int:
        """How many lines a row probably has."""
        pad = 2 * look.px(10)
        return max(ceil(need / (wide - pad)) or 1 for need, wide in zip(self._needs[row], widths, strict=True))

    def height(self, row: int, widths: Sequence[int], look: Look) -> int:
        """Of a row without its margins."""
        tall, laid_out, most, pad = look.line, 0, self._near, 2 * look.px(10)
        for column, (cell, need) in enumerate(zip(self.written(row), self._needs[row], strict=True)):
            room = widths[column] - pad
            if need <= room + 1 and _is_plain(cell):
                continue
            if laid_out < most:
                tall = max(tall, self.flow(row, column, room, look).height)
                laid_out += 1
            else:
                tall = max(tall, look.line * (1 + ceil(1.2 * need / room)))
        return tall

    def flow(self, row: int, column: int, room: int, look: Look) -> Flow:
        """A cell that is seen, pointed at, or higher than a line."""
        found = self._flows.get((row, column))
        if found is None:
            line = _shown(self.line(row, column))
            align = _ALIGN.get(self.leaf.aligns[column], Qt.AlignmentFlag.AlignLeft)
            objects = self._objects(line, row, look, room)
            found = Flow(line, self._font(row, look), look, room, look.line, align=align, objects=objects)
            self._flows[row, column] = found
        return found

    def tip_at(self, flow: Flow, point: QPoint) -> str:
        """Of a formula in a cell."""
        return self._formulas.tip_at(flow, point)


def _is_plain(cell: str) -> bool:
    """Whether a cell that fits is as high as a line for sure."""
    return cell.isascii() and len(cell) < MEASURED and cell.isprintable() and not _MARKUP.search(cell)


def _shown(line: Line) -> Line:
    """What is seen of a cell: the beginning, when it is longer than anybody puts into a table."""
    return line if len(line.text) <= PIECE else Line(f"{line.text[:PIECE].replace(OBJECT, '…')}…")
