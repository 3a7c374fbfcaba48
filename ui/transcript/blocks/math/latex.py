"""LaTeX made ready for the typesetter: what it misreads is written differently, what would keep it busy is refused."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ui.transcript.blocks.math.chemistry import chemistry_to_latex

FormulaErrorCause = Literal[
    "long", "deep", "slow", "large", "wide", "empty", "unknown", "letter", "twice", "unclosed", "missing", "other"
]

MAX_LATEX_LENGTH = 4000
"""Characters. The typesetter takes about two milliseconds for each."""

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
# These are set as operators, without the space that a name of a function has before its letter.
_NAMED = re.compile(r"\\(?:det|dim|ker|gcd|deg|Pr|hom|arg|max|min|sup|inf)(?=\s+[A-Za-z]|\s*\\math)")
_CHOOSE = re.compile(r"\\[dt]?binom\s*(?=\{)")
_CHEMISTRY = re.compile(r"\\ce\s*(?=\{)")

WriteArguments = Callable[[list[str]], str]


@dataclass(frozen=True, slots=True)
class FormulaError(Exception):
    """Why a formula cannot be drawn. `what` is the part of it that is to blame, where that is known."""

    cause: FormulaErrorCause
    detail: str = ""


def prepare_latex(latex: str) -> str:
    """The same formula in words that the typesetter reads well. Raises Problem when it is not worth trying."""
    _check_bounds(latex)
    latex = _WITHOUT_EFFECT.sub("", latex)
    latex = _TAG.sub(r"\\qquad\\text{(\1)}", latex)
    latex = _NUMBERED.sub(_without_number, latex)
    latex = _NAMED.sub(r"\g<0>\\,", latex)
    if _RAISED_MATRIX.search(latex):
        latex = _MATRIX.sub(lambda found: f"{{{found[0]}" if found[1] else f"{found[0]}}}", latex)
    latex = _rewrite_arguments(latex, _CHEMISTRY, 1, lambda of: f"{{{chemistry_to_latex(of[0])}}}")
    return _rewrite_arguments(latex, _CHOOSE, 2, lambda of: rf"{{\left({{{of[0]} \atop {of[1]}}}\right)}}")


def _check_bounds(latex: str) -> None:
    if not latex.strip():
        raise FormulaError("empty")
    if len(latex) > MAX_LATEX_LENGTH:
        raise FormulaError("long")
    depth = 0
    for found in _OPENS.finditer(latex):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if depth > _MAX_DEPTH:
            raise FormulaError("deep")
    if latex.count(r"\left") > _MAX_DEPTH or latex.count(r"\begin") > _MAX_DEPTH:
        raise FormulaError("deep")
    if latex.count("&") + latex.count("\\\\") > _MAX_CELLS:
        raise FormulaError("large")


def _without_number(found: re.Match[str]) -> str:
    """Numbers would begin at (1) in every formula of a conversation: nobody could refer to one."""
    kind = {"equation": "gather", "eqnarray": "align", "flalign": "align", "alignat": "align"}.get(found[2], found[2])
    return rf"\{found[1]}{{{kind}*}}"


def _rewrite_arguments(latex: str, command: re.Pattern[str], count: int, write: WriteArguments) -> str:
    """Commands with their arguments in balanced braces, written differently; as they are where an argument is open."""
    while found := command.search(latex):
        arguments: list[str] = []
        at = found.end()
        while len(arguments) < count and latex[at : at + 1] == "{":
            end = closing_brace(latex, at)
            arguments.append(latex[at + 1 : end - 1])
            at = end
            while len(arguments) < count and latex[at : at + 1].isspace():
                at += 1
        if len(arguments) < count:
            raise FormulaError("missing", found[0].strip())
        latex = latex[: found.start()] + write(arguments) + latex[at:]
    return latex


def closing_brace(latex: str, at: int) -> int:
    """One past the brace that closes the one at `at`. Raises Problem when there is none."""
    depth = 0
    for found in _OPENS.finditer(latex, at):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if not depth:
            return found.end()
    raise FormulaError("unclosed", "{")
