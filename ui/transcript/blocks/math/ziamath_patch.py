"""Faster nodes and a fallback font for ziamath. Imported with the typesetter only."""

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
    """A formula is drawn into it, letter by letter."""

    def findall(self, path: str, namespaces: dict[str, str] | None = None) -> list[Element]:
        """Each letter looks here whether it was drawn before. None is drawn by reference."""
        del path, namespaces
        yield_gil()
        return []


def patch_nodes() -> None:
    """From now on. The typesetter's own copy the style of the node above in depth, and make every row twice."""
    node: Any = ziamath.nodes.mnode
    if node.parse_style is parse_style:
        node.parse_style = child_style
        _heights.append(getattr(Mrow, _ROW_HEIGHT_METHOD))
        setattr(Mrow, _ROW_HEIGHT_METHOD, _row_height)


_heights: list[Callable[..., tuple[float, float]]] = []


def _row_height(row: Mrow, line: list[Element], **told: object) -> tuple[float, float]:
    """Lowest and highest point of a row without what stretches. Only what stretches asks for it."""
    return _heights[0](row, line, **told) if any(map(_has_stretchy_sign, line)) else (0.0, 0.0)


def _has_stretchy_sign(element: Element) -> bool:
    """Whether it may have a sign in it that grows with its row; names may turn out to be signs."""
    for each in element.iter():
        if each.tag in {"mo", "mi"} and ("stretchy" in each.attrib or _may_stretch((each.text or "").strip())):
            return True
    return False


@lru_cache(maxsize=1000)
def _may_stretch(sign: str) -> bool:
    forms: list[dict[str, str]] = [operators.get_params(sign, form) for form in ("prefix", "infix", "postfix", "none")]
    return any(form.get("stretchy", "false") != "false" for form in forms)


def child_style(element: Element, above: MathStyle | None = None) -> MathStyle:
    """The style of a node below another one; the answer is the caller's own."""
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
