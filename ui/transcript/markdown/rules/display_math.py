"""Formulas that stand for themselves: $$…$$, \\[…\\] and \\begin{align}…\\end{align}, over one or more lines.

As in LaTeX there is no blank line inside. Nothing but spaces stands after the end, else all of it is text.
"""

import re
from typing import NamedTuple

from markdown_it.rules_block import StateBlock

_ENVIRONMENTS = (
    "align", "aligned", "alignat", "alignedat", "array", "bmatrix", "Bmatrix", "cases", "displaymath", "eqnarray",
    "equation", "flalign", "gather", "gathered", "math", "matrix", "multline", "pmatrix", "smallmatrix", "split",
    "vmatrix", "Vmatrix",
)  # fmt: skip
MATH_OPENING = re.compile(rf"\$\$|\\\[|\\begin\{{({'|'.join(_ENVIRONMENTS)})(\*?)\}}")
_END_MARKS = {"$$": re.compile(r"(?<!\\)(?:\\\\)*(\$\$)"), "\\[": re.compile(r"(?<!\\)(?:\\\\)*(\\\])")}


class _MathEnd(NamedTuple):
    """The line after the last one, and whether the text ends before the formula does."""

    line: int
    is_open: bool = False


def end_mark(opening: str) -> re.Pattern[str]:
    """What ends the formula that this opens, as group 1."""
    return _END_MARKS.get(opening) or re.compile(f"({re.escape(opening.replace('begin', 'end', 1))})")


def display_math(state: StateBlock, startLine: int, endLine: int, silent: bool) -> bool:  # noqa: N803, FBT001
    """A token `math_block`; `meta` says whether its end is still to come, which `env["open"]` allows for."""
    start = state.bMarks[startLine] + state.tShift[startLine]
    if state.src[start : start + 1] not in {"$", "\\"} or state.is_code_block(startLine):
        return False
    opened = MATH_OPENING.match(state.src, start, state.eMarks[startLine])
    end = _find_math_end(state, startLine, endLine, opened) if opened else None
    if not opened or not end:
        return False
    text = state.getLines(startLine, end.line, state.sCount[startLine], False)
    latex = math_source(text, opened[0], is_open=end.is_open)
    if not latex and not end.is_open:
        return False
    if not silent:
        token = state.push("math_block", "math", 0)
        token.content, token.markup = latex, opened[0]
        token.map, token.meta = [startLine, end.line], {"open": end.is_open}
        state.line = end.line
    return True


def math_source(text: str, opening: str, *, is_open: bool) -> str:
    """The formula without its delimiters; an environment belongs to it."""
    text = text.strip()
    if opening in _END_MARKS:
        text = text[len(opening) :] if is_open else text[len(opening) : -2]
    return text.strip()


def _find_math_end(state: StateBlock, first: int, last: int, opened: re.Match[str]) -> _MathEnd | None:
    mark, at, line = end_mark(opened[0]), opened.end(), first
    # A text may open thousands of formulas and end none: where no end was found is known.
    fruitless: dict[str, tuple[int, int]] = state.env.setdefault("endless_math", {})
    known = fruitless.get(opened[0], (0, 0))
    if known[0] <= line < known[1]:
        return None
    # A line that stands further out is looked at for the end of a paragraph. What is around it is not known then: it
    # ends where something stands further out still, so that what comes later never changes what is closed.
    indent = min(state.blkIndent, state.sCount[line])
    while True:
        found = mark.search(state.src, at, state.eMarks[line])
        if found:
            return None if state.src[found.end() : state.eMarks[line]].strip() else _MathEnd(line + 1)
        line += 1
        if line >= last or state.isEmpty(line) or state.sCount[line] < indent:
            break
        at = state.bMarks[line] + state.tShift[line]
    is_end_of_all = line >= len(state.bMarks) - 1
    if is_end_of_all and state.env.get("open"):
        return _MathEnd(line, is_open=True)
    if is_end_of_all or (line < last and state.isEmpty(line)):
        fruitless[opened[0]] = (first, line)
    return None
