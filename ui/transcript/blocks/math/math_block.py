"""Formulas as blocks, and as objects in a line of text. Their source is shown until they are rendered."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from weakref import WeakKeyDictionary

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QFont, QFontInfo, QFontMetricsF, QPainter

from desktop_agent.markdown.latex import MAX_LATEX_LENGTH, FormulaError
from ui.style.text import show_hidden
from ui.transcript.blocks.block import WHOLE_TEXT, Block, PaintContext
from ui.transcript.blocks.math.formulas import (
    FormulaRequest,
    MathCallbacks,
    Notify,
    PendingFormula,
    RenderedFormula,
    RenderTicket,
)
from ui.transcript.blocks.text_layout import (
    DrawObject,
    InlineObject,
    InlineObjects,
    TextLayout,
    code_chip_color,
    formula_source_object,
    selection_overlay_color,
)
from ui.transcript.markdown.inline import LINE_BREAK, Line, Span, SpanStyle, slice_utf16
from ui.transcript.markdown.serializer import math_html, math_markdown
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.style import RenderStyle
from ui.transcript.words import tr

# The x-height of the font for formulas, in em.
_X_HEIGHT = 0.467

# How far a formula may be scaled down to fit into the column.
_SMALLEST = 0.55

_em_cache: WeakKeyDictionary[RenderStyle, dict[str, float]] = WeakKeyDictionary()


def formula_em(font: QFont, style: RenderStyle) -> float:
    """Return one em in pixels for a formula in text of this font, whose x-height it matches."""
    known = _em_cache.setdefault(style, {})
    name = font.key()
    if name not in known:
        size = QFontInfo(font).pixelSize()
        known[name] = round(max(size, min(1.25 * size, QFontMetricsF(font).xHeight() / _X_HEIGHT)) * 4) / 4
    return known[name]


def formula_error_sentence(error: FormulaError) -> str:
    """Return the sentence for an error."""
    sentences = {
        "long": tr("This formula is too long to be drawn."),
        "deep": tr("This formula is nested too deeply to be drawn."),
        "slow": tr("This formula takes too long to be drawn."),
        "large": tr("This formula is too large to be drawn."),
        "wide": tr("This formula is too wide for its line."),
        "empty": tr("This formula is empty."),
        "unknown": tr("This formula cannot be drawn: {0} is not known."),
        "letter": tr("This formula cannot be drawn: it contains the character {0}."),
        "twice": tr("This formula cannot be drawn: two superscripts or two subscripts follow each other."),
        "unclosed": tr("This formula cannot be drawn: a bracket or a block is opened but not closed, or the reverse."),
        "missing": tr("This formula cannot be drawn: something in it is missing."),
        "other": tr("This formula cannot be drawn."),
    }[error.cause]
    return sentences.format(show_hidden(error.detail))


class InlineFormulas:
    """The formulas of one text block, which is notified once for each formula that becomes ready."""

    def __init__(self, callbacks: MathCallbacks | None, renew: Callable[[], None]) -> None:
        self._callbacks = callbacks
        self._on_change = renew
        self._pending: dict[FormulaRequest, PendingFormula] = {}
        self._errors: dict[str, FormulaError] = {}

    def forget(self) -> None:
        """Cancel all requests: the block is no longer near the viewport."""
        for formula in self._pending.values():
            formula.ticket.cancel()
        self._pending = {}

    def objects(
        self, line: Line, font: QFont, style: RenderStyle, width: float, color: str = "text"
    ) -> InlineObjects | None:
        """Return the formulas by offset, None for text without formulas."""
        return {formula.start: self._object(formula, font, style, width, color) for formula in line.formulas()} or None

    def tooltip_at(self, text_layout: TextLayout, point: QPoint) -> str:
        """Return the source of the formula at a point, and why it is not rendered."""
        boxes = text_layout.object_boxes()
        for formula in text_layout.line.formulas():
            if formula.start in boxes and boxes[formula.start].contains(QPointF(point)):
                error = self._errors.get(formula.source)
                return "\n".join([formula.source, *([formula_error_sentence(error)] if error else [])])
        return ""

    def _object(self, span: Span, font: QFont, style: RenderStyle, width: float, color: str) -> InlineObject:
        request = FormulaRequest(
            span.source, formula_em(font, style), style.color(color).name(), bool(span.style & SpanStyle.DISPLAY)
        )
        formula, ticket = self._find_formula(request)
        if isinstance(formula, RenderedFormula):
            scale = min(1.0, width / formula.width)
            if scale >= _SMALLEST:
                self._errors.pop(span.source, None)
                formula_width = (formula.width - 2 * formula.margin) * scale
                return InlineObject(
                    formula_width, formula.ascent * scale, formula.descent * scale, _DrawFormula(formula, scale, ticket)
                )
            formula = FormulaError("wide")
        if isinstance(formula, FormulaError):
            self._errors[span.source] = formula
        source = formula_source_object(span.source, font, style, width, is_wrong=isinstance(formula, FormulaError))
        return replace(source, draw=_DrawPendingFormula(source.draw, ticket)) if ticket and source.draw else source

    def _find_formula(
        self, request: FormulaRequest
    ) -> tuple[RenderedFormula | FormulaError | None, RenderTicket | None]:
        """Return what is known of a formula, and the ticket while it is not rendered."""
        pending = self._pending.get(request)
        if pending is None and self._callbacks:
            answer = self._callbacks.get(request, partial(self._on_ready, request))
            if not isinstance(answer, PendingFormula):
                return answer, None
            pending = self._pending[request] = answer
        return (pending.formula, pending.ticket) if pending else (None, None)

    def _on_ready(self, request: FormulaRequest) -> Notify | None:
        if self._pending.pop(request, None) is None or not self._callbacks:
            return None
        self._on_change()
        return self._callbacks.on_changed


@dataclass(frozen=True, slots=True)
class _DrawPendingFormula:
    """Draws the source in place of a formula, and gives the rendering of the formula priority."""

    draw: DrawObject
    ticket: RenderTicket

    def __call__(self, painter: QPainter, origin: QPointF) -> None:
        self.ticket.mark_visible()
        self.draw(painter, origin)


@dataclass(frozen=True, slots=True)
class _DrawFormula:
    formula: RenderedFormula
    scale: float
    ticket: RenderTicket | None

    def __call__(self, painter: QPainter, origin: QPointF) -> None:
        picture = self.formula.picture
        if picture is None:
            if self.ticket:
                self.ticket.mark_visible()
            return
        corner = QPointF(
            origin.x() - self.formula.margin * self.scale, round(origin.y()) - self.formula.ascent * self.scale
        )
        if self.scale == 1:
            painter.drawPixmap(corner, picture)
            return
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        height = (self.formula.ascent + self.formula.descent) * self.scale
        box = QRectF(corner.x(), corner.y(), self.formula.width * self.scale, height)
        painter.drawPixmap(box, picture, QRectF(picture.rect()))


_SCROLL_BAR_HEIGHT = 8
_OPENING, _CLOSING = "$$\n", "\n$$"


class MathBlock(Block):
    """A formula on lines of its own. While `is_open` its source is shown: half a formula cannot be typeset."""

    def __init__(self, text: str, callbacks: MathCallbacks | None = None, *, is_open: bool = False) -> None:
        self.text = text
        self.is_open = is_open
        self._callbacks = callbacks
        self._formula: RenderedFormula | None = None
        self._error: FormulaError | None = None
        self._source: TextLayout | None = None
        self._error_layout: TextLayout | None = None
        self._ticket: RenderTicket | None = None
        self._width = 0
        self._height = 0
        self._pad = self._top = 0
        self._scrolled = 0

    def plain(self) -> str:
        """Return the source between its delimiters."""
        return f"{_OPENING}{self.text}{_CLOSING}"

    def spoken_text(self) -> str:
        return tr("Formula: {0}").format(self.text)

    def markdown(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """Return the formula, or the selected part of its source."""
        plain = self.plain()
        return math_markdown(self.text) if not start and end >= utf16_length(plain) else slice_utf16(plain, start, end)

    def html(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        plain = self.plain()
        return math_html(self.text if not start and end >= utf16_length(plain) else slice_utf16(plain, start, end))

    def append(self, text: str) -> None:
        """Append text."""
        self.text += text
        self.is_laid_out = False

    def finish(self, text: str) -> None:
        """Set the complete formula."""
        self.text, self.is_open, self.is_laid_out = text, False, False

    def estimate(self, width: int, style: RenderStyle) -> int:
        """Estimate the height as if all lines were fractions."""
        del width
        rows = 1 + min(self.text.count("\\\\"), 40)
        return round(rows * style.line * 1.9)

    def layout(self, width: int, style: RenderStyle) -> int:
        """Request the formula, and lay out the source while it is not ready."""
        self._width, self.is_laid_out, self.dirty_from = width, True, 0
        self._formula = self._error = self._source = self._error_layout = None
        formula = None if self.is_open else self._request_formula(style)
        if isinstance(formula, RenderedFormula):
            self._formula, self._pad = formula, style.px(4)
            bar = style.px(_SCROLL_BAR_HEIGHT) if formula.width > width else 0
            self._scrolled = min(self._scrolled, self._max_scroll())
            self._height = round(formula.ascent + formula.descent) + 2 * self._pad + bar
        else:
            self._error = formula
            self._height = self._layout_source(width, style)
        return self._height

    def _request_formula(self, style: RenderStyle) -> RenderedFormula | FormulaError | None:
        self._cancel_request()
        if self._callbacks is None:
            return None
        request = FormulaRequest(self.text, formula_em(style.body, style), style.color("text").name(), display=True)
        answer = self._callbacks.get(request, self._on_ready)
        if not isinstance(answer, PendingFormula):
            return answer
        self._ticket = answer.ticket
        return answer.formula

    def _on_ready(self) -> Notify | None:
        self._ticket, self.is_laid_out = None, False
        return self._callbacks.on_changed if self._callbacks else None

    def _cancel_request(self) -> None:
        if self._ticket:
            self._ticket.cancel()
            self._ticket = None

    def _layout_source(self, width: int, style: RenderStyle) -> int:
        pad, self._top = style.px(10), style.px(7)
        self._pad = pad
        source_text = self.text if len(self.text) <= MAX_LATEX_LENGTH else f"{self.text[:MAX_LATEX_LENGTH]}…"
        line = Line(source_text.replace("\n", LINE_BREAK))
        self._source = TextLayout(line, style.mono, style, width - 2 * pad, style.mono_line)
        height = self._source.height + 2 * self._top
        if self._error:
            sentence = Line(formula_error_sentence(self._error))
            self._error_layout = TextLayout(sentence, style.small, style, width - 2 * pad, style.line_of(style.small))
            height += self._error_layout.height + style.px(3)
        return height

    def forget(self) -> None:
        self._cancel_request()
        self._formula = self._source = self._error_layout = None
        self.is_laid_out = False

    def paint(self, context: PaintContext) -> None:
        """Paint the formula, or the source and why there is no formula."""
        if self._ticket:
            self._ticket.mark_visible()
        if self._formula:
            self._paint_formula(context, self._formula)
        elif self._source:
            self._paint_source(context, self._source)

    def _box_of(self, formula: RenderedFormula) -> QRectF:
        left = max(0.0, (self._width - formula.width) / 2) - self._scrolled
        return QRectF(round(left), self._pad, formula.width, formula.ascent + formula.descent)

    def _paint_formula(self, context: PaintContext, formula: RenderedFormula) -> None:
        painter, style = context.painter, context.style
        box = self._box_of(formula)
        painter.save()
        painter.setClipRect(QRect(0, 0, self._width, self._height), Qt.ClipOperation.IntersectClip)
        if context.selection:
            painter.fillRect(box, selection_overlay_color(style))
        if formula.picture:
            painter.drawPixmap(box.topLeft(), formula.picture)
        painter.restore()
        if self._max_scroll():
            share = self._width / formula.width
            bar = QRectF(self._scrolled * share, self._height - style.px(5), self._width * share, style.px(4))
            style.paint_box(painter, bar, 2, "border")

    def _paint_source(self, context: PaintContext, source: TextLayout) -> None:
        painter, style = context.painter, context.style
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(code_chip_color(style))
        painter.drawRoundedRect(QRectF(0, 0, self._width, self._height), 6, 6)
        selection = context.selection
        if selection:
            selection = (max(0, selection[0] - len(_OPENING)), max(0, selection[1] - len(_OPENING)))
        origin = QPointF(self._pad, self._top)
        source.draw(painter, style, origin, "text", selection, QRectF(context.clip))
        if self._error_layout:
            origin += QPointF(0, source.height + style.px(3))
            self._error_layout.draw(painter, style, origin, "danger")

    def offset_at(self, point: QPoint) -> int:
        """Return the start or the end of a rendered formula, or an offset in the source."""
        if self._source:
            return len(_OPENING) + self._source.offset_at(point.x() - self._pad, point.y() - self._top)
        return 0 if point.x() < self._width / 2 else utf16_length(self.plain())

    def boxes(self, start: int, end: int) -> list[QRectF]:
        """Return the whole rendered formula, or the rectangles of the part of the source."""
        if self._formula:
            return [self._box_of(self._formula) & QRectF(0, 0, self._width, self._height)]
        source = self._source
        if source is None:
            return []
        # The hidden end of a long source counts as its last character; delimiters count as its ends.
        last = utf16_length(source.line.text) - 1
        first = min(max(0, start - len(_OPENING)), last)
        rects = source.boxes(first, max(1, min(end - len(_OPENING), last + 1) - first)) if last >= 0 else []
        return [box.translated(self._pad, self._top) for box in rects]

    def tooltip_at(self, point: QPoint) -> str:
        """Return the source of a rendered formula."""
        del point
        return self.text if self._formula else ""

    def _max_scroll(self) -> int:
        return max(0, int(self._formula.width) + 1 - self._width) if self._formula else 0

    def scroll_horizontally(self, pixels: int) -> bool:
        """Scroll if the formula is wider than its column."""
        scrolled = max(0, min(self._scrolled + pixels, self._max_scroll()))
        moved, self._scrolled = scrolled != self._scrolled, scrolled
        return moved
