"""What the typesetter does for every node of a formula, done as it does it, in less time and with pauses."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast
from xml.etree.ElementTree import Element

import ziamath.nodes.mnode
from ziamath import operators
from ziamath.config import config
from ziamath.nodes.mrow import Mrow
from ziamath.styles import MathStyle, MathVariant, parse_style, parse_variant

from ui.transcript.blocks.math.breath import yield_gil

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
