"""Prepare LaTeX for the typesetter: rewrite what it misreads, chemistry too, refuse what would keep it busy, and say
why.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QCoreApplication

from ui.style.text import show_hidden

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
    r"""The inside of `\ce{…}` as LaTeX."""
    parts: list[str] = []
    # What was read last says what a number or a sign after it means.
    before = " "
    for found in _PART.finditer(text.strip()):
        kind, words = found.lastgroup or "", found[0]
        if found["arrow"]:
            parts.append(_arrow_to_latex(found))
        elif kind in {"raised", "lowered"}:
            inside = words[1:].removeprefix("{").removesuffix("}")
            parts.append(rf"{words[0]}{{\mathrm {{{inside}}}}}")
        elif kind == "number":
            parts.append(f"_{{{words}}}" if before.isalpha() or before in ")]}" else rf"{words}\,")
        elif kind == "charge" and not before.isspace():
            parts.append(f"^{{{words}}}")
        else:
            parts.append(_part_to_latex(kind, words))
        before = words[-1]
    return "".join(parts)


def _part_to_latex(kind: str, words: str) -> str:
    match kind:
        case "letters":
            return rf"\mathrm {{{words}}}"
        case "plus":
            return " + "
        case "space":
            return r"\ "
        case "dot":
            return r" \cdot "
        case "command":
            return f"{words} "
        case _:
            return _BONDS.get(words, words)


def _arrow_to_latex(found: re.Match[str]) -> str:
    arrow = _ARROWS[found["arrow"]]
    over, under = (chemistry_to_latex(words) if words else "" for words in (found["over"], found["under"]))
    arrow = rf"\overset{{{over}}}{{{arrow}}}" if over else arrow
    return rf"\;\underset{{{under}}}{{{arrow}}}\;" if under else rf"\;{arrow}\;"


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


def formula_error_sentence(problem: FormulaError) -> str:
    """A sentence for the person."""
    words = {
        "long": QCoreApplication.translate("Transcript", "This formula is too long to be drawn."),
        "deep": QCoreApplication.translate("Transcript", "This formula is nested too deeply to be drawn."),
        "slow": QCoreApplication.translate("Transcript", "This formula takes too long to be drawn."),
        "large": QCoreApplication.translate("Transcript", "This formula is too large to be drawn."),
        "wide": QCoreApplication.translate("Transcript", "This formula is too wide for its line."),
        "empty": QCoreApplication.translate("Transcript", "There is nothing to be drawn in this formula."),
        "unknown": QCoreApplication.translate("Transcript", "This formula cannot be drawn: {0} is not known."),
        "letter": QCoreApplication.translate("Transcript", "This formula cannot be drawn: it has the letter {0}."),
        "twice": QCoreApplication.translate(
            "Transcript", "This formula cannot be drawn: two superscripts or two subscripts follow each other."
        ),
        "unclosed": QCoreApplication.translate(
            "Transcript", "This formula cannot be drawn: something in it is opened and not closed, or the reverse."
        ),
        "missing": QCoreApplication.translate(
            "Transcript", "This formula cannot be drawn: something in it is missing."
        ),
        "other": QCoreApplication.translate("Transcript", "This formula cannot be drawn."),
    }[problem.cause]
    return words.format(show_hidden(problem.detail))
