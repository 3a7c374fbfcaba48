"""Faster nodes and a fallback font for ziamath. Imported only with the typesetter."""

import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast
from xml.etree.ElementTree import Element

import ziamath.nodes.mnode
import ziamath.zmath
from PySide6.QtGui import QFont, QFontMetricsF, QPainterPath
from ziafont.fonttypes import BBox
from ziafont.glyph import SimpleGlyph
from ziafont.svgpath import Cubic, Lineto, Moveto, Point
from ziamath import operators
from ziamath.config import config
from ziamath.mathfont import MathFont
from ziamath.nodes.mrow import Mrow
from ziamath.styles import MathStyle, MathVariant, parse_style, parse_variant

from ui.transcript.blocks.math.gil_yield import yield_gil
from ui.transcript.blocks.math.latex import FormulaError

_NAMES = frozenset({"mathvariant", "displaystyle", "mathcolor", "mathbackground", "mathsize", "scriptlevel", "style"})

_ROW_HEIGHT_METHOD = "_get_height_nostretch"


class SvgElement(Element):
    """Collects the SVG elements of a formula."""

    def findall(self, path: str, namespaces: dict[str, str] | None = None) -> list[Element]:
        """Return nothing: each glyph looks here for an earlier one to draw by reference, which is never done."""
        del path, namespaces
        yield_gil()
        return []


def patch_nodes() -> None:
    """Patch the typesetter, which copies the style of each parent node deeply, and lays out every row twice."""
    node: Any = ziamath.nodes.mnode
    if node.parse_style is parse_style:
        node.parse_style = child_style
        _heights.append(getattr(Mrow, _ROW_HEIGHT_METHOD))
        setattr(Mrow, _ROW_HEIGHT_METHOD, _row_height)


_heights: list[Callable[..., tuple[float, float]]] = []


def _row_height(row: Mrow, line: list[Element], **options: object) -> tuple[float, float]:
    """Return the lowest and highest point of a row without stretchy operators, which only those need."""
    return _heights[0](row, line, **options) if any(map(_has_stretchy_sign, line)) else (0.0, 0.0)


def _has_stretchy_sign(element: Element) -> bool:
    """Return whether it may contain an operator that grows with its row; identifiers may turn out to be operators."""
    for child in element.iter():
        if child.tag in {"mo", "mi"} and ("stretchy" in child.attrib or _may_stretch((child.text or "").strip())):
            return True
    return False


@lru_cache(maxsize=1000)
def _may_stretch(sign: str) -> bool:
    forms: list[dict[str, str]] = [operators.get_params(sign, form) for form in ("prefix", "infix", "postfix", "none")]
    return any(form.get("stretchy", "false") != "false" for form in forms)


def child_style(element: Element, above: MathStyle | None = None) -> MathStyle:
    """Return the style of a child node, as an object of its own."""
    own = element.attrib
    if above is None or "style" in own:
        return parse_style(element, above)
    variant = above.mathvariant
    if own.keys().isdisjoint(_NAMES) and not config.math.variant:
        return MathStyle(
            MathVariant(variant.style, variant.italic, variant.bold, variant.normal),
            above.displaystyle,
            above.mathcolor,
            above.mathbackground,
            above.mathsize,
            above.scriptlevel,
        )
    shown = own.get("displaystyle", above.displaystyle)
    return MathStyle(
        parse_variant(own.get("mathvariant", config.math.variant), variant),
        shown in {"true", True},
        own.get("mathcolor", above.mathcolor),
        own.get("mathbackground", above.mathbackground),
        own.get("mathsize", above.mathsize),
        int(cast("str", own.get("scriptlevel", above.scriptlevel))),
    )


FONT_NAME = "with the system's letters"
"""The name of the font for the typesetter."""

_UNITS = 1000
_ELEMENT = QPainterPath.ElementType


class _FallbackGlyph(SimpleGlyph):
    """The outline of a letter in a system font."""

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
        """Return the advance in font units."""
        del nextchr
        return self._advance


def _outline_operators(outline: QPainterPath, scale: float) -> list[Any]:
    """Return the outline as path operators, whose y axis points up."""
    operators: list[Any] = []
    points = [outline.elementAt(index) for index in range(outline.elementCount())]
    places = [Point(point.x * scale, -point.y * scale) for point in points]  # pyright: ignore[reportOperatorIssue]
    for index, point in enumerate(points):
        if point.isMoveTo():
            operators.append(Moveto(places[index]))
        elif point.isLineTo():
            operators.append(Lineto(places[index]))
        elif point.isCurveTo():
            operators.append(Cubic(*places[index : index + 3]))
    return operators


class _FallbackFont(MathFont):
    fallback_glyphs: dict[str, _FallbackGlyph]

    def findglyph(self, char: str, variant: Any) -> SimpleGlyph:
        """Return the glyph of a letter, from the system font if the font has none. Called for every node."""
        yield_gil()
        glyph = super().findglyph(char, variant)
        if glyph.index or not char.isprintable():
            return glyph
        if char not in self.fallback_glyphs:
            self.fallback_glyphs[char] = _FallbackGlyph(char, self)
        return self.fallback_glyphs[char]


def prepare_font(text: str) -> None:
    """Load the font for this text. Raises FormulaError for letters that need joining or run from right to left."""
    for char in text:
        if char > "\u02ff" and (unicodedata.bidirectional(char) in {"R", "AL"} or "\u0900" <= char <= "\u0dff"):
            raise FormulaError("letter", char)
    fonts = ziamath.zmath.loadedfonts
    if FONT_NAME not in fonts:
        fonts[FONT_NAME] = _with_fallback(cast("Any", fonts["default"]))
        patch_nodes()


def _with_fallback(font: Any) -> _FallbackFont:
    """Adapt the font read at the import of the typesetter: reading it again would take as long as the import."""
    font.__class__ = _FallbackFont
    fallback = cast("_FallbackFont", font)
    fallback.fallback_glyphs = {}
    return fallback
