r"""Formulas of chemistry, `\ce{…}` as the mhchem package reads them, in words that every typesetter knows.

Source: the manual of mhchem 4, sections 3 to 7: coefficients, charges, states of aggregation, bonds, arrows.
"""

import re

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
