"""The cells of a table: their text, how wide they want to be, and their layouts."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import ceil

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFont, QFontMetricsF

from ui.transcript.blocks.block import TextRange
from ui.transcript.blocks.math.math_block import InlineFormulas
from ui.transcript.blocks.text_layout import InlineObjects, TextLayout
from ui.transcript.markdown.elements import Leaf
from ui.transcript.markdown.inline import OBJECT, Line, parse_inline
from ui.transcript.markdown.parser import References
from ui.transcript.markdown.serializer import slice_line
from ui.transcript.markdown.text_units import PIECE, utf16_length
from ui.transcript.style import RenderStyle


class TableCellTexts:
    """By row and column, read when they are asked for.

    Places are those of the plain text: tabs between cells, one row on each line.
    """

    def __init__(self, leaf: Leaf, references: References) -> None:
        self.leaf = leaf
        self._references = references
        self._lines: dict[tuple[int, int], Line] = {}
        # Where the cells of a row begin in its text, and where the next row begins.
        self._starts: dict[int, list[int]] = {}

    def set_leaf(self, leaf: Leaf) -> int:
        """The same rows with more text in them, or more rows; answers the first row that differs."""
        same = 0
        for old, new in zip(self.leaf.cells, leaf.cells, strict=False):
            if old != new:
                break
            same += 1
        self.leaf = leaf
        self._lines = {position: line for position, line in self._lines.items() if position[0] < same}
        self._starts = {row: starts for row, starts in self._starts.items() if row < same}
        return same

    def reset(self) -> None:
        """Read again."""
        self._lines, self._starts = {}, {}

    @property
    def has_head(self) -> bool:
        """Whether the first row is the head of the table."""
        return self.leaf.separator is None

    def is_head(self, row: int) -> bool:
        """Whether this row is."""
        return row == 0 and self.has_head

    def lines(self) -> list[list[Line]]:
        """All cells, read."""
        columns = range(len(self.leaf.aligns))
        return [[self.line(row, column) for column in columns] for row in range(len(self.leaf.cells))]

    def line(self, row: int, column: int) -> Line:
        """What was written in a cell, read."""
        found = self._lines.get((row, column))
        if found is None:
            found = self._lines[row, column] = parse_inline(self.cell_sources(row)[column], self._references)
        return found

    def cell_sources(self, row: int) -> Sequence[str]:
        """The cells of a row as they were written."""
        cells, count = self.leaf.cells[row], len(self.leaf.aligns)
        return cells if len(cells) == count else [*cells, *[""] * (count - len(cells))][:count]

    def plain(self) -> str:
        """All of them."""
        return "\n".join("\t".join(line.plain() for line in row) for row in self.lines())

    def _starts_of(self, row: int) -> list[int]:
        found = self._starts.get(row)
        if found is None:
            sizes = (_text_length(self.line(row, column)) + 1 for column in range(len(self.leaf.aligns)))
            found = self._starts[row] = list(accumulate(sizes, initial=0))
        return found

    def _rows(self) -> Iterator[tuple[int, int, list[int]]]:
        """Number and place of each row, and where its cells begin in it."""
        at = 0
        for row in range(len(self.leaf.cells)):
            starts = self._starts_of(row)
            yield row, at, starts
            at += starts[-1]

    def offset_of(self, row: int, column: int = 0) -> int:
        """Where a cell begins."""
        return sum(self._starts_of(each)[-1] for each in range(row)) + self._starts_of(row)[column]

    def cell_at(self, offset: int) -> tuple[int, int, int] | None:
        """Row and column of the cell around a place, and where it begins; None behind the last one."""
        for row, at, starts in self._rows():
            if offset < at + starts[-1]:
                column = bisect_right(starts, offset - at) - 1
                return row, column, at + starts[column]
        return None

    def span_at(self, offset: int) -> TextRange:
        """The cell around a place."""
        found = self.cell_at(offset)
        if found is None:
            end = self.offset_of(len(self.leaf.cells) - 1, len(self.leaf.aligns))
            return end, end
        row, column, start = found
        return start, start + _text_length(self.line(row, column))

    def rows_between(self, start: int, end: int) -> Iterator[tuple[int, list[Line]]]:
        """The rows between two places, with nothing in the cells outside of them."""
        for row, at, starts in self._rows():
            if at < end and at + starts[-1] > start:
                columns = range(len(self.leaf.aligns))
                yield row, [self._line_between(row, column, at + starts[column], (start, end)) for column in columns]

    def _line_between(self, row: int, column: int, offset: int, selection: TextRange) -> Line:
        line = self.line(row, column)
        size = self._size_of(row, column)
        first, last = max(0, selection[0] - offset), min(size, selection[1] - offset)
        if first == 0 and last == size:
            return line
        return slice_line(line, line.from_plain(first), line.from_plain(last)) if first < last else Line("")

    def selected(self, start: int, end: int) -> Iterator[tuple[int, int, TextRange]]:
        """Row and column of the cells of which something is selected, and that part in places of their lines."""
        for row, at, starts in self._rows():
            if at >= end:
                return
            first = max(0, bisect_right(starts, start - at) - 1)
            for column in range(first, min(bisect_right(starts, end - at), len(starts) - 1)):
                part, _ = self.selected_part(row, column, at + starts[column], (start, end))
                if part:
                    yield row, column, part

    def selected_part(self, row: int, column: int, offset: int, selection: TextRange) -> tuple[TextRange | None, int]:
        """What is selected of a cell that begins at an offset, in places of its line; where the next one begins."""
        line = self.line(row, column)
        size = self._size_of(row, column)
        start, end = max(0, selection[0] - offset), min(size, selection[1] - offset)
        part = (line.from_plain(start), line.from_plain(end)) if end > start else None
        return part, offset + size + 1

    def _size_of(self, row: int, column: int) -> int:
        starts = self._starts_of(row)
        return starts[column + 1] - starts[column] - 1


def _text_length(line: Line) -> int:
    return utf16_length(line.plain())


MEASURED_LENGTH = 400
"""Characters of a cell that say how wide it wants to be."""

_STYLED = 1.12
"""Bold text and code are wider than the font of the body."""

_UNKERNED = 1.02
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:[ \t][^()]*)?\)")
_MARKS = re.compile(r"[*`]+|~~|\\(?=[|*`_\\])")
_MAY_BE_STYLED = re.compile(r"[*`~\[\\]")


class CellRuler:
    """Of one font. A guess takes a fraction of the time of measuring, and needs no text to be read."""

    def __init__(self, font: QFont) -> None:
        self._metrics = QFontMetricsF(font)
        self._advances = _Advances(self._metrics)

    def measure(self, line: Line, objects: InlineObjects | None = None) -> float:
        """What a cell that was read needs, in pixels."""
        text = line.text[:MEASURED_LENGTH]
        wide = sum(each.width for each in objects.values()) if objects else 0.0
        if OBJECT in text:
            text = text.replace(OBJECT, "")
        return wide + self._metrics.horizontalAdvance(text) * (_STYLED if line.spans else 1.0) + 2

    def estimate(self, cell: str) -> float:
        """About the same from a cell's Markdown; rather more than less."""
        factor = _UNKERNED
        if _MAY_BE_STYLED.search(cell):
            factor = _STYLED
            cell = _MARKS.sub("", _LINK.sub(_words_of, cell))
        return sum(map(self._advances.__getitem__, cell[:MEASURED_LENGTH])) * factor + 2


def _words_of(link: re.Match[str]) -> str:
    # A template would be looked up by an import for each cell, and imports are slow beside Qt.
    return link[1]


def cell_ruler(font: QFont) -> CellRuler:
    """The same one for the same font."""
    key = font.key()
    if key not in _RULERS:
        if len(_RULERS) >= _MAX_RULERS:
            _RULERS.clear()
        _RULERS[key] = CellRuler(font)
    return _RULERS[key]


class _Advances(dict[str, float]):
    def __init__(self, metrics: QFontMetricsF) -> None:
        super().__init__()
        self._metrics = metrics

    def __missing__(self, char: str) -> float:
        found = self[char] = self._metrics.horizontalAdvance(char)
        return found


_MAX_RULERS = 16
_RULERS: dict[str, CellRuler] = {}


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
