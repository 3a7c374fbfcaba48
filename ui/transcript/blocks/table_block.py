"""A table: columns as wide as they need, cells that wrap when the column is too narrow for all of them."""

from bisect import bisect_right

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainterPath

from ui.transcript.blocks.block import Block, Brush, Span
from ui.transcript.blocks.flow import Flow
from ui.transcript.look import Look
from ui.transcript.markdown.inline import Line, inline, units
from ui.transcript.markdown.leaves import Leaf
from ui.transcript.markdown.parser import References
from ui.transcript.markdown.pieces import PIECE

_ALIGN = {"center": Qt.AlignmentFlag.AlignHCenter, "right": Qt.AlignmentFlag.AlignRight}
_CORNER = 10
_MEASURED = 400
"""Characters of a cell that say how wide its column wants to be."""
_LEAST = 64
"""Pixels at 100 %: a column is never narrower; a table whose columns do not fit then moves sideways."""


class TableBlock(Block):
    """Copied as tab-separated text. A row that grows lays out its own cells alone while the columns stay."""

    def __init__(self, leaf: Leaf, references: References) -> None:
        self._leaf = leaf
        self._references = references
        self._lines: list[list[Line]] = []
        self._widths: list[int] = []
        self._flows: list[list[Flow] | None] = []
        self._needs: list[list[float]] = []
        self._look: Look | None = None
        self._tops: list[int] = [0]
        self._width = 0
        self._natural: list[float] = []
        self._scrolled = 0

    def become(self, leaf: Leaf) -> None:
        """The same table with more text in it."""
        same = 0
        for old, new in zip(self._leaf.cells, leaf.cells, strict=False):
            if old != new:
                break
            same += 1
        self._leaf = leaf
        del self._lines[same:]
        del self._flows[same:]
        del self._needs[same:]
        # The rounded corners below the last row become straight lines beside a row.
        self.dirty_from = max(0, self._tops[min(same, len(self._tops) - 1)] - _CORNER)
        self.laid = False

    def redefine(self) -> bool:
        """A link definition arrived: read again."""
        self._lines = []
        self.forget()
        return True

    def _read(self) -> list[list[Line]]:
        columns = len(self._leaf.aligns)
        for row in self._leaf.cells[len(self._lines) :]:
            cells = [*row, *[""] * (columns - len(row))][:columns]
            self._lines.append([inline(cell, self._references) for cell in cells])
        return self._lines

    def estimate(self, width: int, look: Look) -> int:
        """As if no cell wrapped."""
        del width
        return len(self._leaf.cells) * (look.line + look.px(12)) + 2

    def forget(self) -> None:
        """Keep the text alone."""
        self._flows, self._needs, self._natural, self._widths = [], [], [], []
        self.laid, self.dirty_from = False, 0

    def lay(self, width: int, look: Look) -> int:
        """Measure the new rows, and lay out what the columns' widths changed."""
        lines = self._read()
        widths = self._columns(lines, width - 1, look)
        if (width, widths) != (self._width, self._widths):
            self._flows, self.dirty_from = [], 0
        self._width, self._widths, self._look = width, widths, look
        pad = look.px(10)
        self._tops = self._tops[: len(self._flows) + 1]
        for index in range(len(self._flows), len(lines)):
            plain = index and _is_one_line(lines[index], self._needs[index], [wide - 2 * pad for wide in widths])
            flows = None if plain else self._make_flows(index, look)
            self._flows.append(flows)
            tall = max((flow.height for flow in flows or ()), default=look.line)
            self._tops.append(self._tops[-1] + tall + look.px(12))
        self.laid = True
        return self._tops[-1] + 2

    def _make_flows(self, row: int, look: Look) -> list[Flow]:
        font, pad = look.strong if row == 0 else look.body, look.px(10)
        return [
            Flow(_shown(line), font, look, wide - 2 * pad, look.line, align=self._align(column))
            for column, (line, wide) in enumerate(zip(self._lines[row], self._widths, strict=True))
        ]

    def _row(self, index: int) -> list[Flow]:
        """The cells of a row that is seen or pointed at."""
        flows = self._flows[index]
        if flows is None and self._look:
            flows = self._flows[index] = self._make_flows(index, self._look)
        return flows or []

    def _align(self, column: int) -> Qt.AlignmentFlag:
        return _ALIGN.get(self._leaf.aligns[column], Qt.AlignmentFlag.AlignLeft)

    def _columns(self, lines: list[list[Line]], room: int, look: Look) -> list[int]:
        """As wide as wanted if that fits; else what is left is shared among the wide ones."""
        pad = 2 * look.px(10)
        strong, body = QFontMetricsF(look.strong), QFontMetricsF(look.body)
        self._natural = self._natural or [0.0] * len(self._leaf.aligns)
        del self._needs[len(self._flows) :]
        for index in range(len(self._flows), len(lines)):
            needs: list[float] = []
            metrics = strong if index == 0 else body
            for column, line in enumerate(lines[index]):
                # Spans may be bold or code, which is wider than the body font.
                factor = 1.12 if line.spans else 1.0
                needed = metrics.horizontalAdvance(line.text[:_MEASURED]) * factor + 2
                needs.append(needed)
                self._natural[column] = max(self._natural[column], needed)
            self._needs.append(needs)
        wanted = [int(natural) + pad for natural in self._natural]
        if sum(wanted) <= room:
            return wanted
        return _shared(wanted, room, look.px(_LEAST) + pad)

    def paint(self, brush: Brush) -> None:
        """Frame, head, rows inside the clip, the selected part of the text."""
        painter, look = brush.painter, brush.look
        wide, tall = sum(self._widths), self._tops[-1]
        frame = QRectF(0.5, 0.5, min(wide, self._width - 1), tall + 1)
        painter.save()
        path = QPainterPath()
        path.addRoundedRect(frame, 8, 8)
        painter.setClipPath(path, Qt.ClipOperation.IntersectClip)
        painter.translate(-self._scrolled, 0)
        first = max(0, bisect_right(self._tops, brush.clip.top()) - 1)
        offset = self._offset_of(first)
        for row in range(first, len(self._flows)):
            if self._tops[row] > brush.clip.bottom():
                break
            offset = self._paint_row(brush, row, offset, wide)
        painter.restore()
        painter.setPen(look.color("border"))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(frame, 8, 8)

    def _paint_row(self, brush: Brush, row: int, offset: int, wide: int) -> int:
        painter, look = brush.painter, brush.look
        top, tall = self._tops[row], self._tops[row + 1] - self._tops[row]
        if row == 0:
            painter.fillRect(QRect(0, top, wide, tall), look.color("surface"))
        else:
            painter.fillRect(QRect(0, top, wide, 1), look.color("border"))
        pad, x = look.px(10), 0
        for line, flow, column_width in zip(self._lines[row], self._row(row), self._widths, strict=True):
            length = units(line.text)
            selection = _within(brush.selection, offset, length)
            flow.draw(painter, look, QPointF(x + pad, top + look.px(6)), "text", selection)
            offset += length + 1
            x += column_width
        return offset

    def plain(self) -> str:
        """Tabs between cells, one row on each line."""
        return "\n".join("\t".join(line.text for line in row) for row in self._read())

    def _offset_of(self, row: int) -> int:
        return sum(units(line.text) + 1 for each in self._lines[:row] for line in each)

    def _cell_at(self, point: QPoint) -> tuple[int, int, QPoint]:
        row = max(0, min(bisect_right(self._tops, point.y()) - 1, len(self._flows) - 1))
        x, column = point.x() + self._scrolled, 0
        while column < len(self._widths) - 1 and x >= self._widths[column]:
            x -= self._widths[column]
            column += 1
        # Padding inside a cell is 10 by 6 at 100 %; the nearest place does not need it exactly.
        return row, column, QPoint(x - 10, point.y() - self._tops[row] - 6)

    def offset_at(self, point: QPoint) -> int:
        """The nearest place in the cell under the point."""
        if not self._flows:
            return 0
        row, column, inside = self._cell_at(point)
        before = sum(units(line.text) + 1 for line in self._lines[row][:column])
        return self._offset_of(row) + before + self._row(row)[column].offset_at(inside.x(), max(0, inside.y()))

    def paragraph_at(self, offset: int) -> Span:
        """The cell."""
        at = 0
        for row in self._lines:
            for line in row:
                end = at + units(line.text)
                if offset <= end:
                    return at, end
                at = end + 1
        return at, at

    def link_at(self, point: QPoint) -> str:
        """The target under a point."""
        if not self._flows or not 0 <= point.y() < self._tops[-1]:
            return ""
        row, column, inside = self._cell_at(point)
        return self._row(row)[column].link_at(inside.x(), inside.y())

    def scroll_sideways(self, pixels: int) -> bool:
        """Only when its columns do not fit."""
        most = max(0, sum(self._widths) - self._width + 1)
        wanted = max(0, min(self._scrolled + pixels, most))
        moved, self._scrolled = wanted != self._scrolled, wanted
        return moved


def _is_one_line(cells: list[Line], needs: list[float], rooms: list[int]) -> bool:
    """Whether a row's height is known without laying it out, which then waits until the row is seen."""
    return all(
        len(line.text) < _MEASURED
        and line.text.isascii()
        and line.text.isprintable()
        and not line.spans
        and needed <= room + 1
        for line, needed, room in zip(cells, needs, rooms, strict=True)
    )


def _shown(line: Line) -> Line:
    """What is seen of a cell: the beginning, when it is longer than anybody puts into a table."""
    return line if len(line.text) <= PIECE else Line(f"{line.text[:PIECE]}…")


def _shared(wanted: list[int], room: int, least: int) -> list[int]:
    """Narrow columns keep what they want; the others share the rest in proportion, down to a least width."""
    widths = [0] * len(wanted)
    open_columns = set(range(len(wanted)))
    rest = room
    while open_columns:
        fair = rest / len(open_columns)
        fitting = {column for column in open_columns if wanted[column] <= fair}
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


def _within(selection: Span | None, offset: int, length: int) -> Span | None:
    if not selection:
        return None
    start, end = max(0, selection[0] - offset), min(length, selection[1] - offset)
    return (start, end) if end > start else None
