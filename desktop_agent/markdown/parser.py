"""The parser of Markdown, for the window and for exports: docs/markdown.md describes what it reads.

Its own rules for markdown-it are math, footnotes, tables and link targets, and bounded versions of the library's.
"""

import re
from bisect import bisect_right
from functools import lru_cache
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.common.normalize_url import normalizeLink, validateLink
from markdown_it.common.utils import mdTrim
from markdown_it.parser_block import ParserBlock
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.lheading import lheading
from markdown_it.rules_block.reference import reference
from markdown_it.rules_block.table import MAX_AUTOCOMPLETED_CELLS, escapedSplit
from markdown_it.rules_inline import StateInline
from mdit_py_plugins.footnote.index import footnote_def

from desktop_agent.markdown.long_text import PIECE

_ENVIRONMENTS = (
    "align", "aligned", "alignat", "alignedat", "array", "bmatrix", "Bmatrix", "cases", "displaymath", "eqnarray",
    "equation", "flalign", "gather", "gathered", "math", "matrix", "multline", "pmatrix", "smallmatrix", "split",
    "vmatrix", "Vmatrix",
)  # fmt: skip
MATH_OPENING = re.compile(rf"\$\$|\\\[|\\begin\{{({'|'.join(_ENVIRONMENTS)})(\*?)\}}")
_END_MARKS = {"$$": re.compile(r"(?<!\\)(?:\\\\)*(\$\$)"), "\\[": re.compile(r"(?<!\\)(?:\\\\)*(\\\])")}


class _FormulaEnd(NamedTuple):
    """The line after the formula, and whether the text ends before the formula does."""

    line: int
    is_open: bool = False


def end_mark(opening: str) -> re.Pattern[str]:
    """Return the pattern that ends a formula with this opening delimiter, as group 1."""
    return _END_MARKS.get(opening) or re.compile(f"({re.escape(opening.replace('begin', 'end', 1))})")


def display_math(state: StateBlock, startLine: int, endLine: int, silent: bool) -> bool:  # noqa: N803, FBT001
    """Parse a `math_block` token; `meta` says whether its end is still missing, which `env["open"]` allows."""
    start = state.bMarks[startLine] + state.tShift[startLine]
    if state.src[start : start + 1] not in {"$", "\\"} or state.is_code_block(startLine):
        return False
    opened = MATH_OPENING.match(state.src, start, state.eMarks[startLine])
    if not opened:
        return False
    end = _find_formula_end(state, startLine, endLine, opened)
    if not end:
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
    """Return the formula without its delimiters; an environment is part of it."""
    text = text.strip()
    if opening in _END_MARKS:
        text = text[len(opening) :] if is_open else text[len(opening) : -2]
    return text.strip()


def _find_formula_end(state: StateBlock, first: int, last: int, opened: re.Match[str]) -> _FormulaEnd | None:
    mark, offset, line = end_mark(opened[0]), opened.end(), first
    # A text may open thousands of formulas and close none: record where no end was found.
    searched_lines: dict[str, tuple[int, int]] = state.env.setdefault("endless_math", {})
    searched = searched_lines.get(opened[0], (0, 0))
    if searched[0] <= line < searched[1]:
        return None
    # Lines with less indent are also read, to find the end of a paragraph. The indent of the container is then unknown:
    # the formula ends at a line with even less indent, so that later text never changes what is closed.
    indent = min(state.blkIndent, state.sCount[line])
    while True:
        match = mark.search(state.src, offset, state.eMarks[line])
        if match:
            return None if state.src[match.end() : state.eMarks[line]].strip() else _FormulaEnd(line + 1)
        line += 1
        if line >= last or state.isEmpty(line) or state.sCount[line] < indent:
            break
        offset = state.bMarks[line] + state.tShift[line]
    is_end_of_all = line >= len(state.bMarks) - 1
    if is_end_of_all and state.env.get("open"):
        return _FormulaEnd(line, is_open=True)
    if is_end_of_all or (line < last and state.isEmpty(line)):
        searched_lines[opened[0]] = (first, line)
    return None


FOOTNOTES_KEY = "footnotes"
"""The key for footnote labels among the link definitions; labels of links are in upper case."""

MAX_LABEL_LENGTH = 1003
"""The maximum number of characters from the bracket of a footnote definition to its colon."""

_FOOTNOTE_DEFINITION = re.compile(r"\[\^[^\] ]{1,999}\]:")
_FOOTNOTE_REFERENCE = re.compile(r"\[\^([^\]\s]{1,999})\]")


def footnote_definition(state: StateBlock, startLine: int, endLine: int, silent: bool) -> bool:  # noqa: N803, FBT001
    """Apply the library's rule, with labels as long as those of links at most."""
    start = state.bMarks[startLine] + state.tShift[startLine]
    if not _FOOTNOTE_DEFINITION.match(state.src, start, state.eMarks[startLine]):
        return False
    return footnote_def(state, startLine, endLine, silent)


def footnote_reference(state: StateInline, silent: bool) -> bool:  # noqa: FBT001
    """Parse a `footnote_ref` token with its label in `meta`."""
    match = _FOOTNOTE_REFERENCE.match(state.src, state.pos) if state.src[state.pos] == "[" else None
    if not match or match[1] not in state.env.get("references", {}).get(FOOTNOTES_KEY, ()):
        return False
    if not silent:
        state.push("footnote_ref", "", 0).meta = {"label": match[1]}
    state.pos = match.end()
    return True


_DOUBLE_DOLLARS = re.compile(r"\$\$([^$\\]*(?:\\.[^$\\]*)*)\$\$", re.DOTALL)
_SINGLE_DOLLARS = re.compile(r"(?<![A-Za-z0-9$])\$(?![\s$])([^$\\]*(?:\\.[^$\\]*)*)\$(?![0-9A-Z_{])", re.DOTALL)
_CLOSING_BRACKETS = {"\\(": re.compile(r"(?<!\\)(?:\\\\)*(\\\))"), "\\[": re.compile(r"(?<!\\)(?:\\\\)*(\\\])")}
_HAS_WORD = re.compile(r"\w")


def inline_math(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  the library's signature
    """Parse a `math_inline` or, for display math, `math_inline_double` token; its markup is the opening delimiter."""
    sign = state.src[state.pos]
    if sign == "$":
        formula = _in_dollars(state.src, state.pos)
    elif sign == "\\":
        formula = _in_brackets(state.src, state.pos)
    else:
        return False
    if not formula:
        return False
    markup, latex, end = formula
    if not silent:
        token = state.push("math_inline_double" if markup in {"$$", "\\["} else "math_inline", "math", 0)
        token.content, token.markup = latex, markup
    state.pos = end
    return True


def _in_dollars(text: str, offset: int) -> tuple[str, str, int] | None:
    match = _DOUBLE_DOLLARS.match(text, offset)
    if match and match[1].strip():
        return "$$", match[1].strip(), match.end()
    match = _SINGLE_DOLLARS.match(text, offset)
    if match and not match[1][-1].isspace():
        return "$", match[1], match.end()
    return None


def _in_brackets(text: str, offset: int) -> tuple[str, str, int] | None:
    opening = text[offset : offset + 2]
    closing = _CLOSING_BRACKETS.get(opening)
    # Finding two characters is fast, the pattern with escapes is slow, and a text may open thousands.
    if not closing or text.find("\\" + ")]"[opening == "\\["], offset + 2) < 0:
        return None
    match = closing.search(text, offset + 2)
    if not match:
        return None
    latex = text[offset + 2 : match.start(1)]
    # Escaped brackets around punctuation are escapes, not a formula.
    if opening in latex or not _HAS_WORD.search(latex):
        return None
    return opening, latex.strip(), match.end()


class DepthLimitedParser(ParserBlock):
    """Turns what is nested too deep into one paragraph; the library's parser would drop it."""

    def tokenize(self, state: StateBlock, startLine: int, endLine: int) -> None:  # noqa: N803  the library's names
        """Parse the blocks between two lines of one container."""
        if state.level < state.md.options.maxNesting:
            super().tokenize(state, startLine, endLine)
            return
        line = startLine
        while line < endLine and (state.isEmpty(line) or state.sCount[line] >= state.blkIndent):
            line += 1
        lines = (text.strip() for text in state.getLines(startLine, line, state.blkIndent, False).split("\n"))
        content = "\n".join(filter(None, lines))
        state.line = line
        if content:
            state.push("paragraph_open", "p", 1).map = [startLine, line]
            token = state.push("inline", "", 0)
            token.content, token.map, token.children = content, [startLine, line], []
            state.push("paragraph_close", "p", -1)


def bounded_heading(state: StateBlock, startLine: int, endLine: int, silent: bool) -> bool:  # noqa: N803, FBT001
    """Parse a setext heading no longer than one piece; with `env["goes_on"]` the first line is no heading."""
    if startLine == 0 and state.env.get("goes_on"):
        return False
    count, line = len(state.tokens), state.line
    if not lheading(state, startLine, endLine, silent):
        return False
    if len(state.tokens) == count or len(state.tokens[count + 1].content) <= PIECE:
        return True
    del state.tokens[count:]
    state.line = line
    return False


def bounded_definition(state: StateBlock, startLine: int, endLine: int, silent: bool) -> bool:  # noqa: N803, FBT001
    """Parse a link definition on one line, or on lines that are together no longer than half a piece."""
    start = state.bMarks[startLine] + state.tShift[startLine]
    if not state.src.startswith("[", start):
        return False
    last = state.lineMax
    # The library reads to the end of the paragraph to find the end of a title.
    state.lineMax = min(last, max(startLine + 1, bisect_right(state.eMarks, start + PIECE // 2)))
    is_definition = reference(state, startLine, endLine, silent)
    state.lineMax = last
    return is_definition


# A URL in which the library finds nothing to encode: all its characters are allowed where they are, and its host stays
# the same when it is parsed and joined.
_HOST_LABEL = r"[a-zA-Z0-9_+-]{1,63}"
_ORDINARY_URL = re.compile(
    rf"https?://(?=[^/?#]{{1,240}}(?:[/?#]|\Z)){_HOST_LABEL}(?:\.{_HOST_LABEL})*(?::[0-9]+)?"
    r"(?:[/?#](?:[a-zA-Z0-9;/?:@&=+$,_.!~*'()#-]|%[0-9a-fA-F]{2})*)?\Z"
)


_normalize_unusual = lru_cache(maxsize=1024)(normalizeLink)


def normalize_target(target: str) -> str:
    """Return what the library's `normalizeLink` returns, faster for ordinary URLs."""
    return target if _ORDINARY_URL.match(target) else _normalize_unusual(target)


def is_valid_target(target: str) -> bool:
    """Return what the library's `validateLink` returns, faster for web URLs."""
    return target.startswith(("https://", "http://")) or validateLink(target)


FIRST_BAR = 2000
"""The maximum number of characters before the first bar of a table head."""

_DELIMITER = re.compile(r"(?!-[ \t])[|:-][|:\- \t]+")
_DELIMITER_CELL = re.compile(r":?-+:?")


def table(state: StateBlock, startLine: int, endLine: int, silent: bool) -> bool:  # noqa: N803, FBT001
    """Parse a table; `meta` has the cells (head first), the alignments, and how many cells are missing up to each row.

    `env["missing"]` is the number missing in earlier rows of a table whose head is the first line.
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
    """Return the alignments and the cells of a head, None if these lines are none; cached, as open tables repeat it."""
    if "|" not in line or not _DELIMITER.fullmatch(delimiter):
        return None
    parts = [mdTrim(part) for part in delimiter.split("|")]
    # Only the parts before the first bar and after the last one may be empty.
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


class _Parser(MarkdownIt):
    """The library's parser with faster checks of link targets."""

    def normalizeLink(self, url: str) -> str:
        return normalize_target(url)

    def validateLink(self, url: str) -> bool:
        return is_valid_target(url)


def make_parser(blocks: ParserBlock | None = None) -> MarkdownIt:
    """Create a parser for CommonMark with tables, strikethrough, footnotes and math. HTML stays text."""
    parser = _Parser()
    parser.block = blocks or parser.block
    parser.configure("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.disable(["html_block", "html_inline"])
    rules = parser.block.ruler
    rules.at("table", table, {"alt": ["paragraph", "reference"]})
    rules.at("lheading", bounded_heading)
    rules.at("reference", bounded_definition)
    rules.before("fence", "math", display_math, {"alt": ["paragraph", "reference"]})
    rules.before("reference", "footnote", footnote_definition, {"alt": ["paragraph", "reference", "blockquote"]})
    parser.inline.ruler.before("escape", "math", inline_math)
    parser.inline.ruler.after("image", "footnote_ref", footnote_reference)
    return parser
