"""Typeset LaTeX as SVG, in the worker process. Nothing else may import this: it loads the library and changes it."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Protocol, cast
from unicodedata import bidirectional
from xml.etree.ElementTree import Element, fromstring, tostring

from ziafont.fonttypes import BBox
from ziafont.glyph import SimpleGlyph
from ziafont.svgpath import Cubic, Lineto, Moveto, Point
from ziamath import operators
from ziamath.config import config
from ziamath.mathfont import MathFont
from ziamath.nodes.mrow import Mrow
from ziamath.tex import tex2mml
from ziamath.zmath import Math, loadedfonts

from desktop_agent.markdown.latex import (
    COLOR,
    MARGIN,
    FormulaError,
    LetterOutline,
    MissingLetters,
    TypesetAnswer,
    TypesetFormula,
    prepare_latex,
)

# One em, and the margin, in SVG pixels.
_EM = 16.0
_MARGIN = MARGIN * _EM

# Em, and square em.
_MAX_WIDTH, _MAX_AREA = 800.0, 8000.0

_ALLOWED_ELEMENTS = frozenset({"svg", "g", "path", "rect", "line", "polyline", "polygon", "circle", "ellipse", "title"})
_BLACK = frozenset({"black", "#000", "#000000"})
_UNKNOWN = re.compile(r"<m[a-z]+[^<>]*>\s*(\\[A-Za-z]+)")
_CAUSE_BY_ERROR: dict[str, Any] = {
    "DoubleSubscriptsError": "twice",
    "DoubleSuperscriptsError": "twice",
    "ExtraLeftOrMissingRightError": "unclosed",
    "MissingEndError": "unclosed",
    "NoAvailableTokensError": "missing",
    "NumeratorNotFoundError": "missing",
    "DenominatorNotFoundError": "missing",
    "MissingSuperScriptOrSubscriptError": "missing",
    "AssertionError": "missing",
    "IndexError": "missing",
    "RecursionError": "deep",
}


class _Box(Protocol):
    xmin: float
    xmax: float
    ymin: float
    ymax: float


# The library offers no other way. It lays out every row twice, so the time doubles with each level: ten nested
# fractions take 1.9 s, and 2 ms with this. If the name does not exist, nothing is replaced.
_ROW_HEIGHT_METHOD = "_get_height_nostretch"
_library_row_height: Callable[..., tuple[float, float]] | None = getattr(Mrow, _ROW_HEIGHT_METHOD, None)


def _row_height(row: Mrow, line: list[Element], **options: object) -> tuple[float, float]:
    """Return the lowest and highest point of a row without stretchy operators; only these need them."""
    if _library_row_height is None or not any(map(_has_stretchy_sign, line)):
        return 0.0, 0.0
    return _library_row_height(row, line, **options)


if _library_row_height:
    setattr(Mrow, _ROW_HEIGHT_METHOD, _row_height)


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


_OPERATORS: dict[str, Any] = {"M": Moveto, "L": Lineto, "C": Cubic}


class _BorrowedGlyph(SimpleGlyph):
    def __init__(self, outline: LetterOutline, font: MathFont) -> None:
        units = float(cast("Any", font).info.layout.unitsperem)
        commands = [
            _OPERATORS[kind](*(Point(x * units, y * units) for x, y in points)) for kind, points in outline.commands
        ]
        super().__init__(-1, commands, BBox(*(edge * units for edge in outline.box)), font)
        self._advance: int = round(outline.advance * units)

    def advance(self, nextchr: SimpleGlyph | None = None) -> int:
        del nextchr
        return self._advance


class _LetterFinder:
    """Finds glyphs in the font of formulas, or among borrowed letters, and records the letters that neither has."""

    def __init__(self) -> None:
        self._font: MathFont = cast("Any", loadedfonts["default"])
        self._find: Callable[[str, Any], SimpleGlyph] = self._font.findglyph
        self._borrowed: dict[str, _BorrowedGlyph] = {}
        self.missing: set[str] = set()
        setattr(self._font, "findglyph", self._find_glyph)  # noqa: B010  the type checker knows it as a method

    def borrow(self, letters: Mapping[str, LetterOutline]) -> None:
        """Use these letters from now on, and no others."""
        self._borrowed = {char: _BorrowedGlyph(outline, self._font) for char, outline in letters.items()}
        self.missing.clear()

    def _find_glyph(self, char: str, variant: Any) -> SimpleGlyph:
        glyph = self._find(char, variant)
        if glyph.index or not char.isprintable():
            return glyph
        if char not in self._borrowed:
            self.missing.add(char)
            return glyph
        return self._borrowed[char]


# Qt clips glyphs drawn by reference, as SVG 2 allows.
config.svg2 = False
_letters = _LetterFinder()


def typeset(latex: str, display: bool, letters: Mapping[str, Any]) -> TypesetAnswer:  # noqa: FBT001  JSON has no names
    """Return the formula, or why it cannot be typeset; `letters` are fields of LetterOutline. Raises MemoryError.

    Takes tens of milliseconds, or for ever.
    """
    _letters.borrow({char: LetterOutline(**outline) for char, outline in letters.items()})
    try:
        formula = _draw(_mathml(prepare_latex(latex), display=display))
    except FormulaError as error:
        return error
    except MemoryError:
        raise
    # The typesetter raises any kind of exception for LaTeX that it does not understand.
    except Exception as error:  # noqa: BLE001
        return FormulaError(_CAUSE_BY_ERROR.get(type(error).__name__, "other"))
    return MissingLetters("".join(sorted(_letters.missing))) if _letters.missing else formula


def _mathml(latex: str, *, display: bool) -> Element:
    mathml = tex2mml(latex, inline=not display)
    if unknown := _UNKNOWN.search(mathml):
        raise FormulaError("unknown", unknown[1])
    return fromstring(mathml)  # noqa: S314  made here, and without a document type


def _draw(tree: Element) -> TypesetFormula:
    _check_letters("".join(tree.itertext()))
    tree.set("mathcolor", COLOR)
    formula = Math(tree, size=_EM, margin=_MARGIN)
    box = cast("_Box", formula.node.bbox)  # pyright: ignore[reportUnknownMemberType]  # the library has no types there
    width, ascent, descent = box.xmax - box.xmin, box.ymax, -box.ymin
    height = ascent + descent
    if not (width > 0 and height > 0):
        # In the library an accent without a base has a height far below zero.
        raise FormulaError("empty")
    if max(width, abs(ascent) + abs(descent)) > _MAX_WIDTH * _EM or width * height > _MAX_AREA * _EM * _EM:
        raise FormulaError("large")
    svg = Element("svg", xmlns="http://www.w3.org/2000/svg")
    cast("Any", formula.node).draw(0, 0, svg)
    edges = (box.xmin - _MARGIN, -box.ymax - _MARGIN, width + 2 * _MARGIN, ascent + descent + 2 * _MARGIN)
    svg.set("viewBox", " ".join(f"{edge:.4f}" for edge in edges))
    for element in svg.iter():
        if element.tag not in _ALLOWED_ELEMENTS:
            raise FormulaError("other", element.tag)
        for paint in ("fill", "stroke"):
            # Lines over and under a formula have no colour of their own in the library.
            if element.get(paint) in _BLACK:
                element.set(paint, COLOR)
    return TypesetFormula(
        tostring(svg, encoding="unicode"),
        (width + 2 * _MARGIN) / _EM,
        (ascent + _MARGIN) / _EM,
        (descent + _MARGIN) / _EM,
    )


def _check_letters(text: str) -> None:
    """Raise FormulaError for letters that need joining or run from right to left."""
    for char in text:
        if char > "\u02ff" and (bidirectional(char) in {"R", "AL"} or "\u0900" <= char <= "\u0dff"):
            raise FormulaError("letter", char)
