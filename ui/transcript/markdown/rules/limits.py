"""Rules of the library with a bound, so that what was read of a long text is final."""

from bisect import bisect_right

from markdown_it.parser_block import ParserBlock
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.lheading import lheading
from markdown_it.rules_block.reference import reference

from ui.transcript.markdown.pieces import PIECE


class DepthLimitedParser(ParserBlock):
    """What is nested too deep is one paragraph of its words. The library's own parser would leave it out."""

    def tokenize(self, state: StateBlock, startLine: int, endLine: int) -> None:  # noqa: N803  the library's names
        """The blocks between two lines, which stand in the same container."""
        if state.level < state.md.options.maxNesting:
            super().tokenize(state, startLine, endLine)
            return
        line = startLine
        while line < endLine and (state.isEmpty(line) or state.sCount[line] >= state.blkIndent):
            line += 1
        lines = (each.strip() for each in state.getLines(startLine, line, state.blkIndent, False).split("\n"))
        content = "\n".join(each for each in lines if each)
        state.line = line
        if content:
            state.push("paragraph_open", "p", 1).map = [startLine, line]
            token = state.push("inline", "", 0)
            token.content, token.map, token.children = content, [startLine, line], []
            state.push("paragraph_close", "p", -1)


def bounded_heading(state: StateBlock, startLine: int, endLine: int, silent: bool) -> bool:  # noqa: N803, FBT001
    """A heading by the line below it, unless it is longer than a piece; `env["goes_on"]`: the first line is not it."""
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
    """The definition of a link on one line, or on lines that are no longer than half a piece together."""
    start = state.bMarks[startLine] + state.tShift[startLine]
    if not state.src.startswith("[", start):
        return False
    last = state.lineMax
    # The library reads on to the end of the paragraph for the end of a title.
    state.lineMax = min(last, max(startLine + 1, bisect_right(state.eMarks, start + PIECE // 2)))
    is_one = reference(state, startLine, endLine, silent)
    state.lineMax = last
    return is_one
