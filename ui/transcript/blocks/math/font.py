"""The font of formulas: the typesetter's own, and the system's for letters that it lacks, such as Chinese ones."""

import unicodedata
from typing import Any, cast

import ziamath.zmath
from PySide6.QtGui import QFont, QFontMetricsF, QPainterPath
from ziafont.fonttypes import BBox
from ziafont.glyph import SimpleGlyph
from ziafont.svgpath import Cubic, Lineto, Moveto, Point
from ziamath.mathfont import MathFont

from ui.transcript.blocks.math.breath import yield_gil
from ui.transcript.blocks.math.latex import FormulaError
from ui.transcript.blocks.math.nodes import patch_nodes

FONT_NAME = "with the system's letters"
"""Under which the typesetter knows it."""

_UNITS = 1000
_ELEMENT = QPainterPath.ElementType


class _FallbackGlyph(SimpleGlyph):
    """The outline of a letter in the system's font."""

    def __init__(self, char: str, font: MathFont) -> None:
        letter = QFont()
        letter.setPixelSize(_UNITS)
        scale = float(cast("Any", font).info.layout.unitsperem) / _UNITS
        outline = QPainterPath()
        outline.addText(0, 0, letter, char)
        box = outline.boundingRect()
        edges = (box.left(), box.right(), -box.bottom(), -box.top())
        super().__init__(-1, _outline_operators(outline, scale), BBox(*(edge * scale for edge in edges)), font)
        self._advance: int = round(QFontMetricsF(letter).horizontalAdvance(char) * scale)

    def advance(self, nextchr: SimpleGlyph | None = None) -> int:
        """In units of the font."""
        del nextchr
        return self._advance


def _outline_operators(outline: QPainterPath, scale: float) -> list[Any]:
    """The typesetter's y grows upward."""
    found: list[Any] = []
    points = [outline.elementAt(index) for index in range(outline.elementCount())]
    places = [Point(each.x * scale, -each.y * scale) for each in points]  # pyright: ignore[reportOperatorIssue]
    for index, each in enumerate(points):
        if each.isMoveTo():
            found.append(Moveto(places[index]))
        elif each.isLineTo():
            found.append(Lineto(places[index]))
        elif each.isCurveTo():
            found.append(Cubic(*places[index : index + 3]))
    return found


class _FallbackFont(MathFont):
    fallback_glyphs: dict[str, _FallbackGlyph]

    def findglyph(self, char: str, variant: Any) -> SimpleGlyph:
        """The glyph of a letter, borrowed where the font has none. Every node of a formula asks for one."""
        yield_gil()
        glyph = super().findglyph(char, variant)
        if glyph.index or not char.isprintable():
            return glyph
        if char not in self.fallback_glyphs:
            self.fallback_glyphs[char] = _FallbackGlyph(char, self)
        return self.fallback_glyphs[char]


def prepare_font(text: str) -> None:
    """Have the font ready for this text. Raises Problem for letters that would have to be joined or turned round."""
    for char in text:
        if char > "\u02ff" and (unicodedata.bidirectional(char) in {"R", "AL"} or "\u0900" <= char <= "\u0dff"):
            raise FormulaError("letter", char)
    fonts = ziamath.zmath.loadedfonts
    if FONT_NAME not in fonts:
        fonts[FONT_NAME] = _with_fallback(cast("Any", fonts["default"]))
        patch_nodes()


def _with_fallback(font: Any) -> _FallbackFont:
    """The font that the typesetter has read when it was imported: to read it again would take as long as the import."""
    font.__class__ = _FallbackFont
    made = cast("_FallbackFont", font)
    made.fallback_glyphs = {}
    return made
