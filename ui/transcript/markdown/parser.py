"""The block half of Markdown: top-level pieces with their lines, inline text left as it is."""

import re
from typing import Any, cast

from markdown_it import MarkdownIt
from markdown_it.parser_block import ParserBlock
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

from ui.transcript.markdown.leaves import Inside, Leaf, Piece
from ui.transcript.markdown.pieces import pieces as in_pieces

References = dict[str, Any]
_TASK = re.compile(r"\[([ xX])\][ \t]+(?=\S)")
_BULLETS = "•◦▪"


def make_parser() -> MarkdownIt:
    """CommonMark with tables and strikethrough. HTML is text: nothing of a model's output is ever executed."""
    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


class _BlocksToADepth(ParserBlock):
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


# Only the outline is parsed here; inline text costs most and waits until somebody looks at it.
_OUTLINE = make_parser()
_OUTLINE.block = _BlocksToADepth()
_OUTLINE.configure("commonmark", {"html": False}).enable(["table", "strikethrough"])
_OUTLINE.core.ruler.enableOnly(["normalize", "block"])


def outline(text: str, references: References | None = None) -> tuple[list[Piece], References]:
    """The top-level pieces of a text, and the link definitions known after it."""
    env: dict[str, Any] = {"references": dict(references or {})}
    tokens = _OUTLINE.parse(text, env)
    pieces: list[Piece] = []
    start = 0
    while start < len(tokens):
        end = _end_of(tokens, start)
        first, last = cast("list[int]", tokens[start].map)
        leaves = tuple(_Walk().leaves(tokens[start:end]))
        kind = tokens[start].type
        pieces.append(Piece(leaves, first, last, kind == "table_open", kind == "fence"))
        start = end
    return pieces, cast("References", env["references"])


def _end_of(tokens: list[Token], start: int) -> int:
    """One past the token that closes the one at `start`."""
    depth = 0
    for index in range(start, len(tokens)):
        depth += tokens[index].nesting
        if not depth:
            return index + 1
    return len(tokens)


class _Walk:
    """Flattens the tokens of one top-level block."""

    def __init__(self) -> None:
        self._out: list[Leaf] = []
        self._inside: list[Inside] = []
        self._lists: list[bool] = []
        self._rows: list[list[str]] = []
        self._aligns: list[str] = []
        self._in_table = False

    def leaves(self, tokens: list[Token]) -> list[Leaf]:
        """All leaves in order."""
        for index, token in enumerate(tokens):
            if self._in_table:
                self._table(token)
            elif token.type == "inline":
                self._inline(token, tokens[index - 1])
            elif token.type in {"fence", "code_block"}:
                text = token.content.removesuffix("\n")
                self._add("code", text, info=token.info.strip())
            elif token.type == "hr":
                self._add("rule")
            else:
                self._nest(token)
        return self._out

    def _nest(self, token: Token) -> None:
        match token.type:
            case "blockquote_open":
                self._inside.append(Inside("quote"))
            case "bullet_list_open" | "ordered_list_open":
                self._lists.append(token.type == "bullet_list_open")
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
            case "list_item_open":
                self._inside.append(Inside("item", self._marker(token)))
            case "list_item_close":
                if self._inside[-1].marker:
                    self._add("paragraph", tight=True)
                self._inside.pop()
            case "blockquote_close":
                self._inside.pop()
            case "table_open":
                self._in_table, self._rows, self._aligns = True, [], []
            case _:
                pass

    def _marker(self, token: Token) -> str:
        if self._lists[-1]:
            return _BULLETS[(self._lists.count(True) - 1) % len(_BULLETS)]
        return f"{token.info}{token.markup}"

    def _inline(self, token: Token, opener: Token) -> None:
        text = token.content
        if opener.type == "heading_open":
            self._add_text("heading", text, level=int(opener.tag[1]))
            return
        if self._inside and self._inside[-1].kind == "item" and self._inside[-1].marker:
            task = _TASK.match(text)
            if task:
                self._inside[-1] = Inside("item", "☐" if task[1] == " " else "☑")
                text = text[task.end() :]
        self._add_text("paragraph", text, tight=opener.hidden)

    def _add_text(self, kind: Any, text: str, *, level: int = 0, tight: bool = False) -> None:
        for joint, piece in in_pieces(text):
            self._add(kind, piece, level=level, tight=tight, joint=joint)

    def _table(self, token: Token) -> None:
        match token.type:
            case "tr_open":
                self._rows.append([])
            case "inline":
                self._rows[-1].append(token.content)
            case "th_open":
                style = str(token.attrs.get("style", ""))
                self._aligns.append(style.removeprefix("text-align:") or "left")
            case "table_close":
                self._in_table = False
                self._add("table", cells=tuple(map(tuple, self._rows)), aligns=tuple(self._aligns))
            case _:
                pass

    def _add(
        self,
        kind: Any,
        text: str = "",
        *,
        level: int = 0,
        info: str = "",
        tight: bool = False,
        cells: tuple[tuple[str, ...], ...] = (),
        aligns: tuple[str, ...] = (),
        joint: str | None = None,
    ) -> None:
        starts = not self._out
        self._out.append(Leaf(kind, text, level, info, tuple(self._inside), tight, cells, aligns, starts, joint))
        self._inside = [Inside(each.kind) for each in self._inside]
