"""A formula that stands alone: in the middle of its column, moved sideways when it is wider, its source until then."""

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, Qt

from ui.transcript.blocks.block import Brush, Span
from ui.transcript.blocks.copied import FormulaBlock
from ui.transcript.blocks.flow import Flow
from ui.transcript.blocks.inline_object import chip_color, veil
from ui.transcript.blocks.math.formulas import Coming, Formula, MathHost, Shape
from ui.transcript.blocks.math.inline_formulas import em_of
from ui.transcript.blocks.math.latex import LONGEST, Problem
from ui.transcript.blocks.math.orders import Order, Told
from ui.transcript.blocks.math.reasons import reason
from ui.transcript.look import Look
from ui.transcript.markdown.inline import LINE_BREAK, Line, units

_BAR = 8


class MathBlock(FormulaBlock):
    """While `is_open` its source is shown: half a formula says nothing."""

    def __init__(self, text: str, host: MathHost | None = None, *, is_open: bool = False) -> None:
        self.text = text
        self.is_open = is_open
        self._host = host
        self._formula: Formula | None = None
        self._problem: Problem | None = None
        self._source: Flow | None = None
        self._reason: Flow | None = None
        self._order: Order | None = None
        self._width = 0
        self._height = 0
        self._pad = self._top = 0
        self._scrolled = 0

    def grow(self, text: str) -> None:
        """More at the end."""
        self.text += text
        self.laid = False

    def close(self, text: str) -> None:
        """The whole formula is known now."""
        self.text, self.is_open, self.laid = text, False, False

    def estimate(self, width: int, look: Look) -> int:
        """As if its lines were fractions."""
        del width
        rows = 1 + min(self.text.count("\\\\"), 40)
        return round(rows * look.line * 1.9)

    def lay(self, width: int, look: Look) -> int:
        """Ask for the picture; lay out the source as long as there is none."""
        self._width, self.laid, self.dirty_from = width, True, 0
        self._formula = self._problem = self._source = self._reason = None
        found = None if self.is_open else self._ask(look)
        if isinstance(found, Formula):
            self._formula, self._pad = found, look.px(4)
            bar = look.px(_BAR) if found.width > width else 0
            self._scrolled = min(self._scrolled, self._most())
            self._height = round(found.ascent + found.descent) + 2 * self._pad + bar
        else:
            self._problem = found
            self._height = self._lay_source(width, look)
        return self._height

    def _ask(self, look: Look) -> Formula | Problem | None:
        self._drop()
        if self._host is None:
            return None
        shape = Shape(self.text, em_of(look.body, look), look.color("text").name(), display=True)
        found = self._host.get(shape, self._arrived)
        if not isinstance(found, Coming):
            return found
        self._order = found.order
        return found.formula

    def _arrived(self) -> Told | None:
        self._order, self.laid = None, False
        return self._host.changed if self._host else None

    def _drop(self) -> None:
        if self._order:
            self._order.drop()
            self._order = None

    def _lay_source(self, width: int, look: Look) -> int:
        pad, self._top = look.px(10), look.px(7)
        self._pad = pad
        shown = self.text if len(self.text) <= LONGEST else f"{self.text[:LONGEST]}…"
        line = Line(shown.replace("\n", LINE_BREAK))
        self._source = Flow(line, look.mono, look, width - 2 * pad, look.mono_line)
        height = self._source.height + 2 * self._top
        if self._problem:
            why = Line(reason(self._problem))
            self._reason = Flow(why, look.small, look, width - 2 * pad, look.line_of(look.small))
            height += self._reason.height + look.px(3)
        return height

    def forget(self) -> None:
        """Keep the text alone."""
        self._drop()
        self._formula = self._source = self._reason = None
        self.laid = False

    def paint(self, brush: Brush) -> None:
        """The picture, or the source and why there is no picture."""
        if self._order:
            self._order.seen()
        if self._formula:
            self._paint_formula(brush, self._formula)
        elif self._source:
            self._paint_source(brush, self._source)

    def _box_of(self, formula: Formula) -> QRectF:
        left = max(0.0, (self._width - formula.width) / 2) - self._scrolled
        return QRectF(round(left), self._pad, formula.width, formula.ascent + formula.descent)

    def _paint_formula(self, brush: Brush, formula: Formula) -> None:
        painter, look = brush.painter, brush.look
        box = self._box_of(formula)
        painter.save()
        painter.setClipRect(QRect(0, 0, self._width, self._height), Qt.ClipOperation.IntersectClip)
        if brush.selection:
            painter.fillRect(box, veil(look))
        if formula.picture:
            painter.drawPixmap(box.topLeft(), formula.picture)
        painter.restore()
        if self._most():
            share = self._width / formula.width
            bar = QRectF(self._scrolled * share, self._height - look.px(5), self._width * share, look.px(4))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(look.color("border"))
            painter.drawRoundedRect(bar, 2, 2)

    def _paint_source(self, brush: Brush, source: Flow) -> None:
        painter, look = brush.painter, brush.look
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(chip_color(look))
        painter.drawRoundedRect(QRectF(0, 0, self._width, self._height), 6, 6)
        selection = brush.selection
        if selection:
            selection = (max(0, selection[0] - len(self.OPENING)), max(0, selection[1] - len(self.OPENING)))
        at = QPointF(self._pad, self._top)
        source.draw(painter, look, at, "text", selection, QRectF(brush.clip))
        if self._reason:
            at += QPointF(0, source.height + look.px(3))
            self._reason.draw(painter, look, at, "danger")

    def offset_at(self, point: QPoint) -> int:
        """Before or after the picture; a place in the source."""
        if self._source:
            return len(self.OPENING) + self._source.offset_at(point.x() - self._pad, point.y() - self._top)
        return 0 if point.x() < self._width / 2 else units(self.plain())

    def boxes(self, start: int, end: int) -> list[QRectF]:
        """A part of what is drawn is all of it; of the source, what it covers there."""
        if self._formula:
            return [self._box_of(self._formula) & QRectF(0, 0, self._width, self._height)]
        source = self._source
        if source is None:
            return []
        # What is not shown of a long source stands behind its last sign, what encloses it beside its ends.
        last = units(source.line.text) - 1
        first = min(max(0, start - len(self.OPENING)), last)
        found = source.boxes(first, max(1, min(end - len(self.OPENING), last + 1) - first)) if last >= 0 else []
        return [box.translated(self._pad, self._top) for box in found]

    def paragraph_at(self, offset: int) -> Span:
        """All of it."""
        del offset
        return 0, units(self.plain())

    def tip_at(self, point: QPoint) -> str:
        """The source of what is drawn."""
        del point
        return self.text if self._formula else ""

    def _most(self) -> int:
        return max(0, int(self._formula.width) + 1 - self._width) if self._formula else 0

    def scroll_sideways(self, pixels: int) -> bool:
        """Only when it is wider than its column."""
        wanted = max(0, min(self._scrolled + pixels, self._most()))
        moved, self._scrolled = wanted != self._scrolled, wanted
        return moved
