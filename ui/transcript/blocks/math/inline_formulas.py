"""The formulas of a line of text, as objects that a Flow gives room to and paints."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from weakref import WeakKeyDictionary

from PySide6.QtCore import QPoint, QPointF, QRectF
from PySide6.QtGui import QFont, QFontInfo, QFontMetricsF, QPainter

from ui.transcript.blocks.flow import Flow
from ui.transcript.blocks.inline_object import Draw, InlineObject, Objects, source_object
from ui.transcript.blocks.math.formulas import Coming, Formula, MathHost, Shape
from ui.transcript.blocks.math.latex import Problem
from ui.transcript.blocks.math.orders import Order, Told
from ui.transcript.blocks.math.reasons import reason
from ui.transcript.look import Look
from ui.transcript.markdown.inline import Line, Span, Style

_X_HEIGHT = 0.467
"""Of the font of formulas, in em."""

_SMALLEST = 0.55
"""How much a formula may be made smaller so that it fits into the column."""

_ems: WeakKeyDictionary[Look, dict[str, float]] = WeakKeyDictionary()


def em_of(font: QFont, look: Look) -> float:
    """Pixels for one em of a formula in text of this font: its small letters are as high as those of the text."""
    known = _ems.setdefault(look, {})
    name = font.key()
    if name not in known:
        size = QFontInfo(font).pixelSize()
        known[name] = round(max(size, min(1.25 * size, QFontMetricsF(font).xHeight() / _X_HEIGHT)) * 4) / 4
    return known[name]


class InlineFormulas:
    """Those of one block. What is asked for and comes later is told to the block, once for each formula."""

    def __init__(self, host: MathHost | None, renew: Callable[[], None]) -> None:
        self._host = host
        self._renew = renew
        self._coming: dict[Shape, Coming] = {}
        self._problems: dict[str, Problem] = {}

    def forget(self) -> None:
        """Wait for none of them any more: the block is not near the screen."""
        for each in self._coming.values():
            each.order.drop()
        self._coming = {}

    def objects(self, line: Line, font: QFont, look: Look, width: float, color: str = "text") -> Objects | None:
        """By their offset; None for text without formulas."""
        return {each.start: self._object(each, font, look, width, color) for each in line.formulas()} or None

    def tip_at(self, flow: Flow, point: QPoint) -> str:
        """The source of the formula under a point, and why it is not drawn."""
        boxes = flow.object_boxes()
        for each in flow.line.formulas():
            if each.start in boxes and boxes[each.start].contains(QPointF(point)):
                problem = self._problems.get(each.source)
                return "\n".join([each.source, *([reason(problem)] if problem else [])])
        return ""

    def _object(self, span: Span, font: QFont, look: Look, width: float, color: str) -> InlineObject:
        shape = Shape(span.source, em_of(font, look), look.color(color).name(), bool(span.style & Style.DISPLAY))
        found, order = self._find(shape)
        if isinstance(found, Formula):
            scale = min(1.0, width / found.width)
            if scale >= _SMALLEST:
                self._problems.pop(span.source, None)
                wide = (found.width - 2 * found.margin) * scale
                return InlineObject(wide, found.ascent * scale, found.descent * scale, _Picture(found, scale, order))
            found = Problem("wide")
        if isinstance(found, Problem):
            self._problems[span.source] = found
        source = source_object(span.source, font, look, width, is_wrong=isinstance(found, Problem))
        return replace(source, draw=_Source(source.draw, order)) if order and source.draw else source

    def _find(self, shape: Shape) -> tuple[Formula | Problem | None, Order | None]:
        """What is known of it, and the order for it while it is not drawn."""
        found = self._coming.get(shape)
        if found is None and self._host:
            answer = self._host.get(shape, partial(self._arrived, shape))
            if not isinstance(answer, Coming):
                return answer, None
            found = self._coming[shape] = answer
        return (found.formula, found.order) if found else (None, None)

    def _arrived(self, shape: Shape) -> Told | None:
        if self._coming.pop(shape, None) is None or not self._host:
            return None
        self._renew()
        return self._host.changed


@dataclass(frozen=True, slots=True)
class _Source:
    """Stands for a formula. Where it is painted, that one is seen soon."""

    draw: Draw
    order: Order

    def __call__(self, painter: QPainter, at: QPointF) -> None:
        self.order.seen()
        self.draw(painter, at)


@dataclass(frozen=True, slots=True)
class _Picture:
    formula: Formula
    scale: float
    order: Order | None

    def __call__(self, painter: QPainter, at: QPointF) -> None:
        picture = self.formula.picture
        if picture is None:
            if self.order:
                self.order.seen()
            return
        corner = QPointF(at.x() - self.formula.margin * self.scale, round(at.y()) - self.formula.ascent * self.scale)
        if self.scale == 1:
            painter.drawPixmap(corner, picture)
            return
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        height = (self.formula.ascent + self.formula.descent) * self.scale
        box = QRectF(corner.x(), corner.y(), self.formula.width * self.scale, height)
        painter.drawPixmap(box, picture, QRectF(picture.rect()))
