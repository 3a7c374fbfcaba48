"""What stands in a line of text instead of a character, and the source of a formula as such."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter

from ui.transcript.look import RenderStyle
from ui.transcript.markdown.inline import Line

DrawObject = Callable[[QPainter, QPointF], None]


@dataclass(frozen=True, slots=True)
class InlineObject:
    """Its measures in pixels; `draw` is given the left end of its baseline."""

    width: float
    ascent: float
    descent: float
    draw: DrawObject | None = None


InlineObjects = Mapping[int, InlineObject]
"""By the offset of their OBJECT in the text of the line."""


def formula_sources(line: Line, font: QFont, style: RenderStyle, width: float) -> InlineObjects:
    """The formulas of a line as their sources."""
    return {each.start: formula_source_object(each.source, font, style, width) for each in line.formulas()}


def formula_source_object(
    latex: str, font: QFont, style: RenderStyle, width: float, *, is_wrong: bool = False
) -> InlineObject:
    """The source in a box, shortened in its middle to what fits into a line."""
    mono = QFont(style.mono)
    mono.setPointSizeF(font.pointSizeF() * 0.92)
    metrics = QFontMetricsF(mono)
    words = metrics.elidedText(" ".join(latex.split()), Qt.TextElideMode.ElideMiddle, max(40.0, width - 8))
    wide, ascent, descent = metrics.horizontalAdvance(words) + 6, metrics.ascent(), metrics.descent()
    color = style.color("danger" if is_wrong else "text")
    box = QRectF(0, -ascent, wide, ascent + descent)
    return InlineObject(wide, ascent, descent, _DrawSource(words, mono, color, code_chip_color(style), box))


def code_chip_color(style: RenderStyle) -> QColor:
    """What stands behind code in a line."""
    color = QColor(style.color("text"))
    color.setAlphaF(0.075)
    return color


def selection_overlay_color(style: RenderStyle) -> QColor:
    """What lies over a selected picture."""
    color = QColor(style.color("selection"))
    color.setAlphaF(0.5)
    return color


@dataclass(frozen=True, slots=True)
class _DrawSource:
    words: str
    font: QFont
    color: QColor
    back: QColor
    box: QRectF

    def __call__(self, painter: QPainter, at: QPointF) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self.back)
        painter.drawRoundedRect(self.box.translated(at), 3, 3)
        painter.setPen(self.color)
        painter.setFont(self.font)
        painter.drawText(at + QPointF(3, 0), self.words)
