"""Tables as one token each: a token for every cell costs more than all else that is read."""

import re
from functools import lru_cache

from markdown_it.common.utils import mdTrim
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.table import MAX_AUTOCOMPLETED_CELLS, escapedSplit

FIRST_BAR = 2000
"""Characters of a head line before its first bar; a line with more of them never becomes a head."""

_DELIMITER = re.compile(r"(?!-[ \t])[|:-][|:\- \t]+")
_DELIMITER_CELL = re.compile(r":?-+:?")


def table(state: StateBlock, startLine: int, endLine: int, silent: bool) -> bool:  # noqa: N803, FBT001
    """The library's rule; `meta` has the cells, head first, the aligns, and how many cells each row lacked so far.

    `env["missing"]` are the cells that were missing in earlier rows of a table whose head is the first line.
    """
    start = state.bMarks[startLine] + state.tShift[startLine]
    if startLine == 0 and state.env.get("goes_on"):
        return False
    if startLine + 2 > endLine or state.src.find("|", start, min(start + FIRST_BAR, state.eMarks[startLine])) < 0:
        return False
    if state.sCount[startLine + 1] < state.blkIndent or any(map(state.is_code_block, (startLine, startLine + 1))):
        return False
    head = _parse_head(_table_line(state, startLine), _table_line(state, startLine + 1))
    if silent or not head:
        return bool(head)
    aligns, names = head
    cells = [names]
    missing = [state.env.get("missing", 0) if startLine == 0 else 0]
    token = state.push("table", "table", 0)
    line = startLine + 2
    parent, state.parentType = state.parentType, "table"
    while line < endLine and not _ends_table(state, line, endLine):
        text = mdTrim(_table_line(state, line))
        parts = _split_cells(text)
        lacking = missing[-1] + len(aligns) - len(parts)
        if not text or lacking > MAX_AUTOCOMPLETED_CELLS:
            break
        cells.append(_fit_columns(parts, len(aligns)))
        missing.append(lacking)
        line += 1
    state.parentType = parent
    token.map, token.meta = [startLine, line], {"cells": cells, "aligns": aligns, "missing": missing}
    state.line = line
    return True


def _ends_table(state: StateBlock, line: int, last: int) -> bool:
    if state.sCount[line] < state.blkIndent or state.is_code_block(line):
        return True
    return any(rule(state, line, last, True) for rule in state.md.block.ruler.getRules("blockquote"))


def _table_line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


@lru_cache(maxsize=8)
def _parse_head(line: str, delimiter: str) -> tuple[list[str], tuple[str, ...]] | None:
    """The aligns and the cells of a head, if these two lines are one; an open table asks for it at every row."""
    if "|" not in line or not _DELIMITER.fullmatch(delimiter):
        return None
    parts = [mdTrim(part) for part in delimiter.split("|")]
    # Only before the first bar and after the last one there may be nothing.
    parts = parts[not parts[0] : len(parts) - (not parts[-1])]
    names = _split_cells(mdTrim(line))
    if not parts or len(names) != len(parts) or not all(map(_DELIMITER_CELL.fullmatch, parts)):
        return None
    return [_alignment(part) for part in parts], _fit_columns(names, len(parts))


def _alignment(part: str) -> str:
    if part.endswith(":"):
        return "center" if part.startswith(":") else "right"
    return "left"


def _split_cells(text: str) -> list[str]:
    parts = escapedSplit(text) if "\\" in text else text.split("|")
    if parts and not parts[0]:
        del parts[0]
    if parts and not parts[-1]:
        del parts[-1]
    return parts


def _fit_columns(parts: list[str], columns: int) -> tuple[str, ...]:
    parts = [mdTrim(part) for part in parts[:columns]]
    return (*parts, *[""] * (columns - len(parts)))
