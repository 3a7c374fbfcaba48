"""The font of formulas: the typesetter's own, and the system's for letters that it lacks, such as Chinese ones."""

import unicodedata
from typing import Any, cast

import ziamath.zmath
from PySide6.QtGui import QFont, QFontMetricsF, QPainterPath
from ziafont.fonttypes import BBox
from ziafont.glyph import SimpleGlyph
from ziafont.svgpath import Cubic, Lineto, Moveto, Point
from ziamath.mathfont import MathFont

from ui.transcript.blocks.math.breath import breathe
from ui.transcript.blocks.math.latex import Problem
from ui.transcript.blocks.math.nodes import use_nodes

FONT = "with the system's letters"
"""Under which the typesetter knows it."""

_UNITS = 1000
_ELEMENT = QPainterPath.ElementType


class _Borrowed(SimpleGlyph):
    """The outline of a letter in the system's font."""

    def __init__(self, char: str, font: MathFont) -> None:
        letter = QFont()
        letter.setPixelSize(_UNITS)
        scale = float(cast("Any", font).info.layout.unitsperem) / _UNITS
        outline = QPainterPath()
        outline.addText(0, 0, letter, char)
        box = outline.boundingRect()
        edges = (box.left(), box.right(), -box.bottom(), -box.top())
        super().__init__(-1, _operators(outline, scale), BBox(*(edge * scale for edge in edges)), font)
        self._advance: int = round(QFontMetricsF(letter).horizontalAdvance(char) * scale)

    def advance(self, nextchr: SimpleGlyph | None = None) -> int:
        """In units of the font."""
        del nextchr
        return self._advance


def _operators(outline: QPainterPath, scale: float) -> list[Any]:
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


class _Font(MathFont):
    borrowed: dict[str, _Borrowed]

    def findglyph(self, char: str, variant: Any) -> SimpleGlyph:
        """The glyph of a letter, borrowed where the font has none. Every node of a formula asks for one."""
        breathe()
        glyph = super().findglyph(char, variant)
        if glyph.index or not char.isprintable():
            return glyph
        if char not in self.borrowed:
            self.borrowed[char] = _Borrowed(char, self)
        return self.borrowed[char]


def use_font(text: str) -> None:
    """Have the font ready for this text. Raises Problem for letters that would have to be joined or turned round."""
    for char in text:
        if char > "\u02ff" and (unicodedata.bidirectional(char) in {"R", "AL"} or "\u0900" <= char <= "\u0dff"):
            raise Problem("letter", char)
    fonts = ziamath.zmath.loadedfonts
    if FONT not in fonts:
        fonts[FONT] = _with_borrowed(cast("Any", fonts["default"]))
        use_nodes()


def _with_borrowed(font: Any) -> _Font:
    """The font that the typesetter has read when it was imported: to read it again would take as long as the import."""
    font.__class__ = _Font
    made = cast("_Font", font)
    made.borrowed = {}
    return made
