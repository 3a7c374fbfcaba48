"""Tables as one token each: a token for every cell costs more than all else that is read."""

from markdown_it.common.utils import mdTrim
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.table import MAX_AUTOCOMPLETED_CELLS, escapedSplit
from markdown_it.rules_block.table import table as library_table

FIRST_BAR = 2000
"""Characters of a head line before its first bar; a line with more of them never becomes a head."""


def table(state: StateBlock, startLine: int, endLine: int, silent: bool) -> bool:  # noqa: N803, FBT001
    """The library's rule; `meta` has the cells, head first, the aligns, and how many cells each row lacked so far.

    `env["missing"]` are the cells that were missing in earlier rows of a table whose head is the first line.
    """
    start = state.bMarks[startLine] + state.tShift[startLine]
    if startLine == 0 and state.env.get("goes_on"):
        return False
    if startLine + 2 > endLine or state.src.find("|", start, min(start + FIRST_BAR, state.eMarks[startLine])) < 0:
        return False
    if not library_table(state, startLine, endLine, True):
        return False
    if silent:
        return True
    aligns = [_align(part) for part in mdTrim(_line(state, startLine + 1)).strip("|").split("|")]
    cells = [_cells(_line(state, startLine), len(aligns))]
    missing = [state.env.get("missing", 0) if startLine == 0 else 0]
    token = state.push("table", "table", 0)
    line = startLine + 2
    parent, state.parentType = state.parentType, "table"
    while line < endLine and not _ends(state, line, endLine):
        text = mdTrim(_line(state, line))
        lacking = missing[-1] + len(aligns) - len(_split(text))
        if not text or lacking > MAX_AUTOCOMPLETED_CELLS:
            break
        cells.append(_cells(text, len(aligns)))
        missing.append(lacking)
        line += 1
    state.parentType = parent
    token.map, token.meta = [startLine, line], {"cells": cells, "aligns": aligns, "missing": missing}
    state.line = line
    return True


def _ends(state: StateBlock, line: int, last: int) -> bool:
    if state.sCount[line] < state.blkIndent or state.is_code_block(line):
        return True
    return any(rule(state, line, last, True) for rule in state.md.block.ruler.getRules("blockquote"))


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def _align(part: str) -> str:
    part = mdTrim(part)
    if part.endswith(":"):
        return "center" if part.startswith(":") else "right"
    return "left"


def _split(text: str) -> list[str]:
    parts = escapedSplit(text) if "\\" in text else text.split("|")
    if parts and not parts[0]:
        del parts[0]
    if parts and not parts[-1]:
        del parts[-1]
    return parts


def _cells(text: str, columns: int) -> tuple[str, ...]:
    parts = [mdTrim(part) for part in _split(mdTrim(text))[:columns]]
    return (*parts, *[""] * (columns - len(parts)))
