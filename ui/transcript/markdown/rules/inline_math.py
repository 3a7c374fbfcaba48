"""Formulas inside a line: $…$ and \\(…\\), and $$…$$ and \\[…\\] that stand between words.

Money and shell variables are no formulas: a dollar sign opens none before a space or after a letter or a digit of
ASCII, and closes none after a space or before a digit, a capital letter, `_` or `{`.
"""

import re

from markdown_it.rules_inline import StateInline

_DOUBLE_DOLLARS = re.compile(r"\$\$([^$\\]*(?:\\.[^$\\]*)*)\$\$", re.DOTALL)
_SINGLE_DOLLARS = re.compile(r"(?<![A-Za-z0-9$])\$(?![\s$])([^$\\]*(?:\\.[^$\\]*)*)\$(?![0-9A-Z_{])", re.DOTALL)
_CLOSING_BRACKETS = {"\\(": re.compile(r"(?<!\\)(?:\\\\)*(\\\))"), "\\[": re.compile(r"(?<!\\)(?:\\\\)*(\\\])")}
_HAS_WORD = re.compile(r"\w")


def inline_math(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  the library's signature
    """A token `math_inline` or, in display style, `math_inline_double`; its markup is the opening delimiter."""
    sign = state.src[state.pos]
    if sign == "$":
        found = _in_dollars(state.src, state.pos)
    elif sign == "\\":
        found = _in_brackets(state.src, state.pos)
    else:
        return False
    if not found:
        return False
    markup, latex, end = found
    if not silent:
        token = state.push("math_inline_double" if markup in {"$$", "\\["} else "math_inline", "math", 0)
        token.content, token.markup = latex, markup
    state.pos = end
    return True


def _in_dollars(text: str, at: int) -> tuple[str, str, int] | None:
    found = _DOUBLE_DOLLARS.match(text, at)
    if found and found[1].strip():
        return "$$", found[1].strip(), found.end()
    found = _SINGLE_DOLLARS.match(text, at)
    if found and not found[1][-1].isspace():
        return "$", found[1], found.end()
    return None


def _in_brackets(text: str, at: int) -> tuple[str, str, int] | None:
    opening = text[at : at + 2]
    closing = _CLOSING_BRACKETS.get(opening)
    # The search for two characters is fast, the one that knows escapes is not: a text may open thousands.
    if not closing or text.find("\\" + ")]"[opening == "\\["], at + 2) < 0:
        return None
    found = closing.search(text, at + 2)
    if not found:
        return None
    latex = text[at + 2 : found.start(1)]
    # Escaped brackets around signs are escapes, not a formula.
    if opening in latex or not _HAS_WORD.search(latex):
        return None
    return opening, latex.strip(), found.end()
