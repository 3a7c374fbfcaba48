"""The formulas of a line of text, as objects that a Flow gives room to and paints."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from weakref import WeakKeyDictionary

from PySide6.QtCore import QPoint, QPointF, QRectF
from PySide6.QtGui import QFont, QFontInfo, QFontMetricsF, QPainter

from ui.transcript.blocks.flow import TextLayout
from ui.transcript.blocks.inline_object import DrawObject, InlineObject, InlineObjects, formula_source_object
from ui.transcript.blocks.math.formulas import FormulaRequest, MathCallbacks, PendingFormula, RenderedFormula
from ui.transcript.blocks.math.latex import FormulaError
from ui.transcript.blocks.math.orders import Notify, RenderTicket
from ui.transcript.blocks.math.reasons import formula_error_sentence
from ui.transcript.look import RenderStyle
from ui.transcript.markdown.inline import Line, Span, SpanStyle

_X_HEIGHT = 0.467
"""Of the font of formulas, in em."""

_SMALLEST = 0.55
"""How much a formula may be made smaller so that it fits into the column."""

_em_cache: WeakKeyDictionary[RenderStyle, dict[str, float]] = WeakKeyDictionary()


def formula_em(font: QFont, style: RenderStyle) -> float:
    """Pixels for one em of a formula in text of this font: its small letters are as high as those of the text."""
    known = _em_cache.setdefault(style, {})
    name = font.key()
    if name not in known:
        size = QFontInfo(font).pixelSize()
        known[name] = round(max(size, min(1.25 * size, QFontMetricsF(font).xHeight() / _X_HEIGHT)) * 4) / 4
    return known[name]


class InlineFormulas:
    """Those of one block. What is asked for and comes later is told to the block, once for each formula."""

    def __init__(self, callbacks: MathCallbacks | None, renew: Callable[[], None]) -> None:
        self._callbacks = callbacks
        self._on_change = renew
        self._pending: dict[FormulaRequest, PendingFormula] = {}
        self._errors: dict[str, FormulaError] = {}

    def forget(self) -> None:
        """Wait for none of them any more: the block is not near the screen."""
        for each in self._pending.values():
            each.ticket.cancel()
        self._pending = {}

    def objects(
        self, line: Line, font: QFont, style: RenderStyle, width: float, color: str = "text"
    ) -> InlineObjects | None:
        """By their offset; None for text without formulas."""
        return {each.start: self._object(each, font, style, width, color) for each in line.formulas()} or None

    def tooltip_at(self, text_layout: TextLayout, point: QPoint) -> str:
        """The source of the formula under a point, and why it is not drawn."""
        boxes = text_layout.object_boxes()
        for each in text_layout.line.formulas():
            if each.start in boxes and boxes[each.start].contains(QPointF(point)):
                problem = self._errors.get(each.source)
                return "\n".join([each.source, *([formula_error_sentence(problem)] if problem else [])])
        return ""

    def _object(self, span: Span, font: QFont, style: RenderStyle, width: float, color: str) -> InlineObject:
        request = FormulaRequest(
            span.source, formula_em(font, style), style.color(color).name(), bool(span.style & SpanStyle.DISPLAY)
        )
        found, ticket = self._find_formula(request)
        if isinstance(found, RenderedFormula):
            scale = min(1.0, width / found.width)
            if scale >= _SMALLEST:
                self._errors.pop(span.source, None)
                wide = (found.width - 2 * found.margin) * scale
                return InlineObject(
                    wide, found.ascent * scale, found.descent * scale, _DrawFormula(found, scale, ticket)
                )
            found = FormulaError("wide")
        if isinstance(found, FormulaError):
            self._errors[span.source] = found
        source = formula_source_object(span.source, font, style, width, is_wrong=isinstance(found, FormulaError))
        return replace(source, draw=_DrawPendingFormula(source.draw, ticket)) if ticket and source.draw else source

    def _find_formula(
        self, request: FormulaRequest
    ) -> tuple[RenderedFormula | FormulaError | None, RenderTicket | None]:
        """What is known of it, and the order for it while it is not drawn."""
        found = self._pending.get(request)
        if found is None and self._callbacks:
            answer = self._callbacks.get(request, partial(self._on_ready, request))
            if not isinstance(answer, PendingFormula):
                return answer, None
            found = self._pending[request] = answer
        return (found.formula, found.ticket) if found else (None, None)

    def _on_ready(self, request: FormulaRequest) -> Notify | None:
        if self._pending.pop(request, None) is None or not self._callbacks:
            return None
        self._on_change()
        return self._callbacks.on_changed


@dataclass(frozen=True, slots=True)
class _DrawPendingFormula:
    """Stands for a formula. Where it is painted, that one is seen soon."""

    draw: DrawObject
    ticket: RenderTicket

    def __call__(self, painter: QPainter, at: QPointF) -> None:
        self.ticket.mark_visible()
        self.draw(painter, at)


@dataclass(frozen=True, slots=True)
class _DrawFormula:
    formula: RenderedFormula
    scale: float
    ticket: RenderTicket | None

    def __call__(self, painter: QPainter, at: QPointF) -> None:
        picture = self.formula.picture
        if picture is None:
            if self.ticket:
                self.ticket.mark_visible()
            return
        corner = QPointF(at.x() - self.formula.margin * self.scale, round(at.y()) - self.formula.ascent * self.scale)
        if self.scale == 1:
            painter.drawPixmap(corner, picture)
            return
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        height = (self.formula.ascent + self.formula.descent) * self.scale
        box = QRectF(corner.x(), corner.y(), self.formula.width * self.scale, height)
        painter.drawPixmap(box, picture, QRectF(picture.rect()))
