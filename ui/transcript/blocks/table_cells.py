"""The cells of a table: their text, their wanted widths, and their layouts."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from math import ceil

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QFontMetricsF

from desktop_agent.markdown.long_text import PIECE
from ui.transcript.blocks.block import TextRange
from ui.transcript.blocks.math.math_block import InlineFormulas
from ui.transcript.blocks.text_layout import InlineObjects, TextLayout
from ui.transcript.markdown.elements import Leaf
from ui.transcript.markdown.inline import OBJECT, Line, SpanStyle, parse_inline
from ui.transcript.markdown.parser import References
from ui.transcript.markdown.serializer import slice_line
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.style import RenderStyle


class TableCells:
    """The texts of the cells by row and column, parsed on demand.

    Offsets are those of the plain text: tabs between cells, one row on each line.
    """

    def __init__(self, leaf: Leaf, references: References) -> None:
        self.leaf = leaf
        self._references = references
        self._lines: dict[tuple[int, int], Line] = {}
        # The offsets of the cells in the text of their row, and the length of the row with its line end.
        self._starts: dict[int, list[int]] = {}

    def set_leaf(self, leaf: Leaf) -> int:
        """Replace the rows by the same ones with more text, or more rows below; return the first row that differs."""
        unchanged = 0
        for old, new in zip(self.leaf.cells, leaf.cells, strict=False):
            if old != new:
                break
            unchanged += 1
        self.leaf = leaf
        self._lines = {position: line for position, line in self._lines.items() if position[0] < unchanged}
        self._starts = {row: starts for row, starts in self._starts.items() if row < unchanged}
        return unchanged

    def reset(self) -> None:
        """Parse again."""
        self._lines, self._starts = {}, {}

    @property
    def has_head(self) -> bool:
        return self.leaf.separator is None

    def is_head(self, row: int) -> bool:
        """Return whether this row is the head."""
        return row == 0 and self.has_head

    def lines(self) -> list[list[Line]]:
        """Return all cells, parsed."""
        columns = range(len(self.leaf.aligns))
        return [[self.line(row, column) for column in columns] for row in range(len(self.leaf.cells))]

    def line(self, row: int, column: int) -> Line:
        """Return the parsed text of a cell."""
        line = self._lines.get((row, column))
        if line is None:
            line = self._lines[row, column] = parse_inline(self.cell_sources(row)[column], self._references)
        return line

    def cell_sources(self, row: int) -> Sequence[str]:
        """Return the source of the cells of a row."""
        cells, count = self.leaf.cells[row], len(self.leaf.aligns)
        return cells if len(cells) == count else [*cells, *[""] * (count - len(cells))][:count]

    def plain(self) -> str:
        """Return the text of all cells."""
        return "\n".join("\t".join(line.plain() for line in row) for row in self.lines())

    def _starts_of(self, row: int) -> list[int]:
        starts = self._starts.get(row)
        if starts is None:
            sizes = (_text_length(self.line(row, column)) + 1 for column in range(len(self.leaf.aligns)))
            starts = self._starts[row] = list(accumulate(sizes, initial=0))
        return starts

    def _rows(self) -> Iterator[tuple[int, int, list[int]]]:
        """Yield the number and the offset of each row, and the offsets of its cells in it."""
        offset = 0
        for row in range(len(self.leaf.cells)):
            starts = self._starts_of(row)
            yield row, offset, starts
            offset += starts[-1]

    def offset_of(self, row: int, column: int = 0) -> int:
        """Return the offset of a cell."""
        return sum(self._starts_of(previous)[-1] for previous in range(row)) + self._starts_of(row)[column]

    def cell_at(self, offset: int) -> tuple[int, int, int] | None:
        """Return row and column of the cell at an offset, and where it begins; None after the last one."""
        for row, row_offset, starts in self._rows():
            if offset < row_offset + starts[-1]:
                column = bisect_right(starts, offset - row_offset) - 1
                return row, column, row_offset + starts[column]
        return None

    def span_at(self, offset: int) -> TextRange:
        """Return the range of the cell at an offset."""
        cell = self.cell_at(offset)
        if cell is None:
            end = self.offset_of(len(self.leaf.cells) - 1, len(self.leaf.aligns))
            return end, end
        row, column, start = cell
        return start, start + _text_length(self.line(row, column))

    def rows_between(self, start: int, end: int) -> Iterator[tuple[int, list[Line]]]:
        """Yield the rows between two offsets; cells outside of the range are empty."""
        for row, offset, starts in self._rows():
            if offset < end and offset + starts[-1] > start:
                columns = enumerate(starts[:-1])
                yield row, [self._line_between(row, column, offset + first, (start, end)) for column, first in columns]

    def _line_between(self, row: int, column: int, offset: int, selection: TextRange) -> Line:
        line = self.line(row, column)
        if selection[0] <= offset and offset + self.size_of(row, column) <= selection[1]:
            return line
        part = self.selected_part(row, column, offset, selection)
        return slice_line(line, *part) if part else Line("")

    def selected(self, start: int, end: int) -> Iterator[tuple[int, int, TextRange]]:
        """Yield row and column of the cells in a selection, and the selected part in offsets of their lines."""
        for row, offset, starts in self._rows():
            if offset >= end:
                return
            first = max(0, bisect_right(starts, start - offset) - 1)
            for column in range(first, min(bisect_right(starts, end - offset), len(starts) - 1)):
                part = self.selected_part(row, column, offset + starts[column], (start, end))
                if part:
                    yield row, column, part

    def selected_part(self, row: int, column: int, offset: int, selection: TextRange) -> TextRange | None:
        """Return the selected part of the cell at `offset`, in offsets of its line."""
        line = self.line(row, column)
        start, end = max(0, selection[0] - offset), min(self.size_of(row, column), selection[1] - offset)
        return (line.from_plain(start), line.from_plain(end)) if end > start else None

    def size_of(self, row: int, column: int) -> int:
        """Return the length of a cell."""
        starts = self._starts_of(row)
        return starts[column + 1] - starts[column] - 1


def _text_length(line: Line) -> int:
    return utf16_length(line.plain())


MEASURED_LENGTH = 400
"""The number of characters of a cell that decide its wanted width."""

# Bold text is wider than the body font.
_STYLED = 1.12
_UNKERNED = 1.02
_CODE = re.compile(r"(`+)(.+?)\1")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:[ \t][^()]*)?\)")
_MARKS = re.compile(r"[*`]+|~~|\\(?=[|*`_\\])")
_MAY_BE_STYLED = re.compile(r"[*`~\[\\]")


class CellRuler:
    """Measures cells in one font, and code in another. An estimate takes a fraction of the time: it parses nothing."""

    def __init__(self, font: QFont, mono: QFont) -> None:
        self._metrics = QFontMetricsF(font)
        self._advances, self._mono_advances = _Advances(self._metrics), _Advances(QFontMetricsF(mono))

    def measure(self, line: Line, objects: InlineObjects | None = None) -> float:
        """Return the width that a parsed cell needs, in pixels."""
        text, code = line.text[:MEASURED_LENGTH], ""
        for span in reversed(line.spans):
            if span.style & SpanStyle.CODE:
                end = span.start + span.length
                text, code = text[: span.start] + text[end:], text[span.start : end] + code
        width = sum(inline_object.width for inline_object in objects.values()) if objects else 0.0
        if OBJECT in text:
            text = text.replace(OBJECT, "")
        width += self._metrics.horizontalAdvance(text) * (_STYLED if line.spans else 1.0)
        return width + self._measure_code(code) + 2

    def estimate(self, cell: str) -> float:
        """Estimate the same from the Markdown of a cell, rather too much than too little."""
        factor, code = _UNKERNED, ""
        cell = cell[: 2 * MEASURED_LENGTH]
        if _MAY_BE_STYLED.search(cell):
            factor = _STYLED
            code = "".join(span[2] for span in _CODE.finditer(cell))[:MEASURED_LENGTH]
            cell = _MARKS.sub("", _LINK.sub(_words_of, _CODE.sub("", cell)))
        width = sum(map(self._advances.__getitem__, cell[:MEASURED_LENGTH])) * factor
        return width + self._measure_code(code) + 2

    def _measure_code(self, code: str) -> float:
        # A layout may round the advance of each letter up.
        return sum(ceil(self._mono_advances[char]) for char in code)


def _words_of(link: re.Match[str]) -> str:
    # A template string would be looked up by an import for each cell, and imports are slow beside Qt.
    return link[1]


@lru_cache(maxsize=16)
def _cell_ruler(style: RenderStyle, *, is_head: bool) -> CellRuler:
    return CellRuler(style.strong if is_head else style.body, style.mono)


class _Advances(dict[str, float]):
    def __init__(self, metrics: QFontMetricsF) -> None:
        super().__init__()
        self._metrics = metrics

    def __missing__(self, char: str) -> float:
        width = self[char] = self._metrics.horizontalAdvance(char)
        return width


_ALIGN = {"center": Qt.AlignmentFlag.AlignHCenter, "right": Qt.AlignmentFlag.AlignRight}
_MARKUP = re.compile(r"[\\`*_~\[\]!<&$]|://")
# The number of columns that are parsed and laid out to measure a table, unless it has more.
_VISIBLE_COLUMNS = 64
# The same for a table with more columns; the others are only estimated.
_VISIBLE_COLUMNS_OF_MANY = 20


class TableCellLayouts:
    """The widths and the layouts of the cells by row and column."""

    def __init__(self, cells: TableCells, formulas: InlineFormulas) -> None:
        self._cells = cells
        self._formulas = formulas
        self._needs: list[list[float]] = []
        self._layouts: dict[tuple[int, int], TextLayout] = {}

    def truncate(self, count: int) -> None:
        """Keep the widths and layouts of the first rows only."""
        del self._needs[count:]
        self._layouts = {position: layout for position, layout in self._layouts.items() if position[0] < count}

    def forget(self) -> None:
        """Drop the layouts, and formulas that are still rendering."""
        self._layouts = {}
        self._formulas.forget()

    @property
    def is_measured(self) -> bool:
        return len(self._needs) == len(self._cells.leaf.cells)

    def wanted_widths(self, style: RenderStyle) -> list[list[float]]:
        """Return the wanted widths of the cells: exact for the first rows of a table, estimated for the others."""
        for row in range(len(self._needs), len(self._cells.leaf.cells)):
            ruler = _cell_ruler(style, is_head=self._cells.is_head(row))
            exact = self._measured_columns if self._cells.has_head else 0
            lines = [self._cells.line(row, column) for column in range(exact)]
            needs = [ruler.measure(line, self._objects(line, row, style, 1 << 20)) for line in lines]
            self._needs.append([*needs, *map(ruler.estimate, self._cells.cell_sources(row)[exact:])])
        return self._needs

    @property
    def _measured_columns(self) -> int:
        count = len(self._cells.leaf.aligns)
        return count if count <= _VISIBLE_COLUMNS else _VISIBLE_COLUMNS_OF_MANY

    def _font(self, row: int, style: RenderStyle) -> QFont:
        return style.strong if self._cells.is_head(row) else style.body

    def _objects(self, line: Line, row: int, style: RenderStyle, width: float) -> InlineObjects | None:
        return self._formulas.objects(line, self._font(row, style), style, width) if OBJECT in line.text else None

    def estimate_line_count(self, row: int, widths: Sequence[int], style: RenderStyle) -> int:
        """Estimate the number of lines of a row."""
        pad = 2 * style.px(10)
        return max(ceil(need / (width - pad)) or 1 for need, width in zip(self._needs[row], widths, strict=True))

    def height(self, row: int, widths: Sequence[int], style: RenderStyle) -> int:
        """Return the height of a row without its margins."""
        height, laid_out, most, pad = style.line, 0, self._measured_columns, 2 * style.px(10)
        for column, (cell, need) in enumerate(zip(self._cells.cell_sources(row), self._needs[row], strict=True)):
            room = widths[column] - pad
            if need <= room + 1 and _is_plain(cell):
                continue
            if laid_out < most:
                height = max(height, self.text_layout(row, column, room, style).height)
                laid_out += 1
            else:
                height = max(height, style.line * (1 + ceil(1.2 * need / room)))
        return height

    def text_layout(self, row: int, column: int, room: int, style: RenderStyle) -> TextLayout:
        """Return the layout of a cell that is visible, pointed at, or higher than one line."""
        layout = self._layouts.get((row, column))
        if layout is None:
            line = _displayed_line(self._cells.line(row, column))
            align = _ALIGN.get(self._cells.leaf.aligns[column], Qt.AlignmentFlag.AlignLeft)
            objects = self._objects(line, row, style, room)
            layout = TextLayout(line, self._font(row, style), style, room, style.line, align=align, objects=objects)
            self._layouts[row, column] = layout
        return layout


def _is_plain(cell: str) -> bool:
    """Return whether a cell that fits is certainly one line high."""
    return cell.isascii() and len(cell) < MEASURED_LENGTH and cell.isprintable() and not _MARKUP.search(cell)


def _displayed_line(line: Line) -> Line:
    return line if len(line.text) <= PIECE else Line(f"{line.text[:PIECE].replace(OBJECT, '…')}…")
