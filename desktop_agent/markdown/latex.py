"""Prepare LaTeX for the typesetter, and its answers: a typeset formula, or why there is none.

Chemistry is rewritten, and so is what the typesetter misreads; what would take too long is refused.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

FormulaErrorCause = Literal[
    "long", "deep", "slow", "large", "wide", "empty", "unknown", "letter", "twice", "unclosed", "missing", "other"
]


@dataclass(frozen=True, slots=True)
class FormulaError(Exception):
    """Why a formula cannot be typeset. `detail` is the faulty part, if known."""

    cause: FormulaErrorCause
    detail: str = ""


COLOR = "#010203"
"""The placeholder for the text colour in the SVG."""

MARGIN = 1 / 16
"""Em around every formula, for glyphs that extend beyond their boxes."""


@dataclass(frozen=True, slots=True)
class TypesetFormula:
    """A formula as SVG, with its measures in em from the left end of its baseline, margins included."""

    svg: str
    width: float
    ascent: float
    descent: float


@dataclass(frozen=True, slots=True)
class LetterOutline:
    """A letter in em, its y axis pointing up: drawing commands; left, right, lower and upper edge; the advance."""

    commands: list[tuple[Literal["M", "L", "C"], list[tuple[float, float]]]]
    box: tuple[float, float, float, float]
    advance: float


@dataclass(frozen=True, slots=True)
class MissingLetters:
    """The letters that the font of formulas lacks; with their outlines the formula can be typeset."""

    letters: str


TypesetAnswer = TypesetFormula | FormulaError | MissingLetters

_ARROWS = {
    "<=>": r"\rightleftharpoons",
    "<->": r"\leftrightarrow",
    "->": r"\rightarrow",
    "<-": r"\leftarrow",
    "=>": r"\Rightarrow",
}
_PART = re.compile(
    r"\s*(?P<arrow><=>|<->|->|<-|=>)(?:\[(?P<over>[^\[\]]*)\])?(?:\[(?P<under>[^\[\]]*)\])?\s*"
    r"|(?P<raised>\^(?:\{[^{}]*\}|[0-9.]*[+-]?))|(?P<lowered>_(?:\{[^{}]*\}|[0-9a-zA-Z]))"
    r"|(?P<command>\\[a-zA-Z]+|\\.)|(?P<letters>[A-Za-z]+)|(?P<number>[0-9]+(?:[./][0-9]+)?)"
    r"|(?P<dot>\s*[*]\s*)|(?P<plus>\s\+\s)|(?P<space>\s+)|(?P<charge>[+-]+(?=\s|$|[\])]))|(?P<other>.)",
    re.DOTALL,
)
_BONDS = {"#": r"\equiv ", ".": r"\cdot ", "-": "{-}"}


def chemistry_to_latex(text: str) -> str:
    r"""Return the argument of `\ce{…}` as LaTeX."""
    parts: list[str] = []
    # The last character decides the meaning of a number or sign after it.
    before = " "
    for match in _PART.finditer(text.strip()):
        kind, token = match.lastgroup or "", match[0]
        if match["arrow"]:
            parts.append(_arrow_to_latex(match))
        elif kind in {"raised", "lowered"}:
            inside = token[1:].removeprefix("{").removesuffix("}")
            parts.append(rf"{token[0]}{{\mathrm {{{inside}}}}}")
        elif kind == "number":
            parts.append(f"_{{{token}}}" if before.isalpha() or before in ")]}" else rf"{token}\,")
        elif kind == "charge" and not before.isspace():
            parts.append(f"^{{{token}}}")
        else:
            parts.append(_part_to_latex(kind, token))
        before = token[-1]
    return "".join(parts)


def _part_to_latex(kind: str, token: str) -> str:
    match kind:
        case "letters":
            return rf"\mathrm {{{token}}}"
        case "plus":
            return " + "
        case "space":
            return r"\ "
        case "dot":
            return r" \cdot "
        case "command":
            return f"{token} "
        case _:
            return _BONDS.get(token, token)


def _arrow_to_latex(match: re.Match[str]) -> str:
    arrow = _ARROWS[match["arrow"]]
    over, under = (chemistry_to_latex(label) if label else "" for label in (match["over"], match["under"]))
    arrow = rf"\overset{{{over}}}{{{arrow}}}" if over else arrow
    return rf"\;\underset{{{under}}}{{{arrow}}}\;" if under else rf"\;{arrow}\;"


MAX_LATEX_LENGTH = 4000
"""Characters. The typesetter needs about two milliseconds for each."""

_MAX_DEPTH = 40
_MAX_CELLS = 1200

_OPENS = re.compile(r"\\.|[{}]", re.DOTALL)
_WITHOUT_EFFECT = re.compile(r"\\(?:label\s*\{[^{}]*\}|nonumber\b|notag\b|allowdisplaybreaks\b|displaylimits\b)")
_TAG = re.compile(r"\\tag\*?\s*\{([^{}]*)\}")
_NUMBERED = re.compile(
    r"\\(begin|end)\{(align|gather|equation|multline|eqnarray|alignat|flalign)\*?\}((?<=at\})\{\d+\}|(?<=at\*\})\{\d+\})?"
)
_MATRIX = re.compile(r"\\(?:(begin)|end)\{([pbvBV]matrix)\}")
_RAISED_MATRIX = re.compile(r"\\end\{[pbvBV]matrix\}\s*[\^_]")
# These are typeset as operators, without the space that a function name has before its argument.
_NAMED = re.compile(r"\\(?:det|dim|ker|gcd|deg|Pr|hom|arg|max|min|sup|inf)(?=\s+[A-Za-z]|\s*\\math)")
_CHOOSE = re.compile(r"\\[dt]?binom\s*(?=\{)")
_CHEMISTRY = re.compile(r"\\ce\s*(?=\{)")

WriteArguments = Callable[[list[str]], str]


def prepare_latex(latex: str) -> str:
    """Rewrite a formula for the typesetter. Raises FormulaError for formulas that cannot succeed."""
    _check_bounds(latex)
    latex = _WITHOUT_EFFECT.sub("", latex)
    latex = _TAG.sub(r"\\qquad\\text{(\1)}", latex)
    latex = _NUMBERED.sub(_without_number, latex)
    latex = _NAMED.sub(r"\g<0>\\,", latex)
    if _RAISED_MATRIX.search(latex):
        latex = _MATRIX.sub(lambda match: f"{{{match[0]}" if match[1] else f"{match[0]}}}", latex)
    latex = _rewrite_arguments(latex, _CHEMISTRY, 1, lambda arguments: f"{{{chemistry_to_latex(arguments[0])}}}")
    return _rewrite_arguments(
        latex, _CHOOSE, 2, lambda arguments: rf"{{\left({{{arguments[0]} \atop {arguments[1]}}}\right)}}"
    )


def _check_bounds(latex: str) -> None:
    if not latex.strip():
        raise FormulaError("empty")
    if len(latex) > MAX_LATEX_LENGTH:
        raise FormulaError("long")
    depth = 0
    for match in _OPENS.finditer(latex):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth > _MAX_DEPTH:
            raise FormulaError("deep")
    if latex.count(r"\left") > _MAX_DEPTH or latex.count(r"\begin") > _MAX_DEPTH:
        raise FormulaError("deep")
    if latex.count("&") + latex.count("\\\\") > _MAX_CELLS:
        raise FormulaError("large")


def _without_number(match: re.Match[str]) -> str:
    """Drop equation numbers: they would begin at (1) in every formula, so nobody could refer to one."""
    kind = {"equation": "gather", "eqnarray": "align", "flalign": "align", "alignat": "align"}.get(match[2], match[2])
    return rf"\{match[1]}{{{kind}*}}"


def _rewrite_arguments(latex: str, command: re.Pattern[str], count: int, write: WriteArguments) -> str:
    """Rewrite commands by their arguments in balanced braces. Raises FormulaError for missing or open arguments."""
    while match := command.search(latex):
        arguments: list[str] = []
        offset = match.end()
        while len(arguments) < count and latex[offset : offset + 1] == "{":
            end = closing_brace(latex, offset)
            arguments.append(latex[offset + 1 : end - 1])
            offset = end
            while len(arguments) < count and latex[offset : offset + 1].isspace():
                offset += 1
        if len(arguments) < count:
            raise FormulaError("missing", match[0].strip())
        latex = latex[: match.start()] + write(arguments) + latex[offset:]
    return latex


def closing_brace(latex: str, at: int) -> int:
    """Return the offset after the brace that closes the one at `at`. Raises FormulaError if there is none."""
    depth = 0
    for match in _OPENS.finditer(latex, at):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if not depth:
            return match.end()
    raise FormulaError("unclosed", "{")
