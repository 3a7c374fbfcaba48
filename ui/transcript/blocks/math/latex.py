"""LaTeX made ready for the typesetter: what it misreads is written differently, what would keep it busy is refused."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ui.transcript.blocks.math.chemistry import reaction

Cause = Literal[
    "long", "deep", "slow", "large", "wide", "empty", "unknown", "letter", "twice", "unclosed", "missing", "other"
]

LONGEST = 4000
"""Characters. The typesetter takes about two milliseconds for each."""

_DEEPEST = 40
_CELLS = 1200

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

Write = Callable[[list[str]], str]


@dataclass(frozen=True, slots=True)
class Problem(Exception):
    """Why a formula cannot be drawn. `what` is the part of it that is to blame, where that is known."""

    cause: Cause
    what: str = ""


def prepared(latex: str) -> str:
    """The same formula in words that the typesetter reads well. Raises Problem when it is not worth trying."""
    _refuse_monsters(latex)
    latex = _WITHOUT_EFFECT.sub("", latex)
    latex = _TAG.sub(r"\\qquad\\text{(\1)}", latex)
    latex = _NUMBERED.sub(_without_number, latex)
    latex = _NAMED.sub(r"\g<0>\\,", latex)
    if _RAISED_MATRIX.search(latex):
        latex = _MATRIX.sub(lambda found: f"{{{found[0]}" if found[1] else f"{found[0]}}}", latex)
    latex = _with_arguments(latex, _CHEMISTRY, 1, lambda of: f"{{{reaction(of[0])}}}")
    return _with_arguments(latex, _CHOOSE, 2, lambda of: rf"{{\left({{{of[0]} \atop {of[1]}}}\right)}}")


def _refuse_monsters(latex: str) -> None:
    if not latex.strip():
        raise Problem("empty")
    if len(latex) > LONGEST:
        raise Problem("long")
    depth = 0
    for found in _OPENS.finditer(latex):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if depth > _DEEPEST:
            raise Problem("deep")
    if latex.count(r"\left") > _DEEPEST or latex.count(r"\begin") > _DEEPEST:
        raise Problem("deep")
    if latex.count("&") + latex.count("\\\\") > _CELLS:
        raise Problem("large")


def _without_number(found: re.Match[str]) -> str:
    """Numbers would begin at (1) in every formula of a conversation: nobody could refer to one."""
    kind = {"equation": "gather", "eqnarray": "align", "flalign": "align", "alignat": "align"}.get(found[2], found[2])
    return rf"\{found[1]}{{{kind}*}}"


def _with_arguments(latex: str, command: re.Pattern[str], count: int, write: Write) -> str:
    """Commands with their arguments in balanced braces, written differently; as they are where an argument is open."""
    while found := command.search(latex):
        arguments: list[str] = []
        at = found.end()
        while len(arguments) < count and latex[at : at + 1] == "{":
            end = closing(latex, at)
            arguments.append(latex[at + 1 : end - 1])
            at = end
            while len(arguments) < count and latex[at : at + 1].isspace():
                at += 1
        if len(arguments) < count:
            raise Problem("missing", found[0].strip())
        latex = latex[: found.start()] + write(arguments) + latex[at:]
    return latex


def closing(latex: str, at: int) -> int:
    """One past the brace that closes the one at `at`. Raises Problem when there is none."""
    depth = 0
    for found in _OPENS.finditer(latex, at):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if not depth:
            return found.end()
    raise Problem("unclosed", "{")
