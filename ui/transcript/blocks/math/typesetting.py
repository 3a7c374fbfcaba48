"""Typeset LaTeX as SVG in the worker thread. The typesetter is imported late, limited in time, and checked."""

import re
import sys
import time
import warnings
from dataclasses import dataclass
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, Protocol, cast

from ui.transcript.blocks.math.gil_yield import yield_gil
from ui.transcript.blocks.math.latex import FormulaError, prepare_latex

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

EM = 16.0
"""One em in SVG pixels."""

COLOR = "#010203"
"""The placeholder for the text colour in the SVG."""

_MARGIN = 1.0
MARGIN = _MARGIN / EM
"""Em around every formula, for glyphs that extend beyond their boxes."""
# Seconds of processor time of this thread for one formula.
_TIMEOUT = 1.5

# The number of characters that are typeset without a deadline, in about a second.
_LITTLE = 1200

# Characters parsed in less than a millisecond.
_SHORT = 60

_ROWS = frozenset({"mrow", "mtd", "msqrt", "mstyle", "mpadded", "mphantom", "menclose", "merror"})
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


@dataclass(frozen=True, slots=True)
class TypesetFormula:
    """A formula as SVG, with its measures in em from the left end of its baseline, margins included."""

    svg: str
    width: float
    ascent: float
    descent: float


class _Box(Protocol):
    xmin: float
    xmax: float
    ymin: float
    ymax: float


class _TimeoutError(BaseException):
    """No subclass of Exception, because the typesetter catches those."""


def typeset(latex: str, *, display: bool) -> TypesetFormula | FormulaError:
    """Return the formula, or why it cannot be typeset. Never raises. Takes tens of milliseconds, at most 2 seconds."""
    try:
        load()
        tree = _mathml(prepare_latex(latex), display=display)
        return _draw(tree) if _effort(tree) <= _LITTLE else _draw_in_time(tree)
    except FormulaError as error:
        return error
    except _TimeoutError:
        return FormulaError("slow")
    # The typesetter raises any kind of exception for LaTeX that it does not understand.
    except Exception as error:  # noqa: BLE001
        return FormulaError(_CAUSE_BY_ERROR.get(type(error).__name__, "other"))


def load() -> None:
    """Import the typesetter, which takes a third of a second."""
    if "ziamath" not in sys.modules:
        with warnings.catch_warnings():
            # Its way to find the font is deprecated in Python 3.11, but not in 3.13.
            warnings.simplefilter("ignore", DeprecationWarning)
            with yield_gil.during_imports():
                _import()
    from ziamath.config import config

    # Qt clips glyphs drawn by reference, as SVG 2 allows.
    config.svg2 = False


def _import() -> None:
    """Import the library without its preparations for formulas in XML text: here they are trees."""
    import ziafont.font
    from ziafont.fontread import FontReader

    class Reader(FontReader):
        """Yields the lock while reading eighteen thousand kerning pairs."""

        def readvaluerecord(self, fmt: int) -> dict[str, int]:
            """Read the kerning of a pair."""
            yield_gil()
            return super().readvaluerecord(fmt)

    library: Any = ziafont.font
    library.FontReader = Reader
    escapes = ModuleType("ziamath.escapes")
    vars(escapes)["unescape"] = str
    sys.modules[escapes.__name__] = escapes
    import ziamath  # noqa: F401  # pyright: ignore[reportUnusedImport]


def _mathml(latex: str, *, display: bool) -> "Element":
    from xml.etree.ElementTree import fromstring

    from ziamath.tex import tex2mml

    if len(latex) < _SHORT:
        mathml = tex2mml(latex, inline=not display)
    else:
        with yield_gil.during_calls():
            mathml = tex2mml(latex, inline=not display)
    if unknown := _UNKNOWN.search(mathml):
        raise FormulaError("unknown", unknown[1])
    return fromstring(mathml)  # noqa: S314  made here, and without a document type


def _effort(element: "Element") -> int:
    """Estimate the number of characters visited: the typesetter visits the content of every row twice."""
    inside = sum(map(_effort, element)) or 1
    return inside * 2 if element.tag.rpartition("}")[2] in _ROWS else inside


def _draw_in_time(tree: "Element") -> TypesetFormula:
    """Draw with a deadline. A thread cannot be ended from outside, so it checks a clock at calls, which is slow."""
    before, end, calls, late = sys.gettrace(), time.thread_time() + _TIMEOUT, 0, False

    def check_clock(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls, late
        del event, argument
        calls += 1
        if not calls & 0x1F:
            yield_gil()
        # Reading a thread's clock is slow: once for about a millisecond of work is enough.
        late = late or (not calls & 0x1FF and time.thread_time() > end)
        # Raised in a generator that is being closed, the exception would be lost and tracing would end.
        if late and str(frame.f_globals.get("__name__")).startswith("ziamath.nodes"):
            raise _TimeoutError

    sys.settrace(check_clock)
    try:
        return _draw(tree)
    finally:
        sys.settrace(before)


def _draw(tree: "Element") -> TypesetFormula:
    from xml.etree.ElementTree import tostring

    from ziamath.zmath import Math

    from ui.transcript.blocks.math.ziamath_patch import FONT_NAME, SvgElement, prepare_font

    prepare_font("".join(tree.itertext()))
    tree.set("mathcolor", COLOR)
    formula = Math(tree, size=EM, font=FONT_NAME, margin=_MARGIN)
    box = cast("_Box", formula.node.bbox)  # pyright: ignore[reportUnknownMemberType]  # the library has no types there
    width, ascent, descent = box.xmax - box.xmin, box.ymax, -box.ymin
    height = ascent + descent
    if not (width > 0 and height > 0):
        # The library gives an accent without a base a height far below zero.
        raise FormulaError("empty")
    if max(width, abs(ascent) + abs(descent)) > _MAX_WIDTH * EM or width * height > _MAX_AREA * EM * EM:
        raise FormulaError("large")
    svg = SvgElement("svg", xmlns="http://www.w3.org/2000/svg")
    cast("Any", formula.node).draw(0, 0, svg)
    edges = (box.xmin - _MARGIN, -box.ymax - _MARGIN, width + 2 * _MARGIN, ascent + descent + 2 * _MARGIN)
    svg.set("viewBox", " ".join(f"{edge:.4f}" for edge in edges))
    for element in svg.iter():
        yield_gil()
        if element.tag not in _ALLOWED_ELEMENTS:
            raise FormulaError("other", element.tag)
        for paint in ("fill", "stroke"):
            # Lines over and under a formula have no colour of their own in the library.
            if element.get(paint) in _BLACK:
                element.set(paint, COLOR)
    yield_gil()
    return TypesetFormula(
        tostring(svg, encoding="unicode"),
        (width + 2 * _MARGIN) / EM,
        (ascent + _MARGIN) / EM,
        (descent + _MARGIN) / EM,
    )
