"""From the parser's tokens to leaves."""

import re
from dataclasses import replace
from typing import Any, cast

from markdown_it.common.utils import unescapeAll
from markdown_it.token import Token

from ui.transcript.markdown.leaves import CarriedBlock, Container, Leaf, LeafKind, ListItem, TopLevelBlock, TopLevelKind
from ui.transcript.markdown.pieces import split_long_text as in_pieces
from ui.transcript.markdown.stops import SplitPoints

_TASK = re.compile(r"\[([ xX])\][ \t]+(?=\S)")
_BLANK = re.compile(r"[ \t>]*")
_BULLETS = "•◦▪"
_TOP_LEVEL_KINDS: dict[str, TopLevelKind] = {
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "table": "table",
    "paragraph_open": "paragraph",
    "fence": "fence",
    "math_block": "math",
    "blockquote_open": "container",
    "footnote_reference_open": "container",
}


def top_level_blocks(tokens: list[Token], text: str, carried: CarriedBlock | None = None) -> list[TopLevelBlock]:
    """The top-level blocks; what is carried belongs to the first of them."""
    pieces: list[TopLevelBlock] = []
    lines = text.split("\n")
    start = 0
    while start < len(tokens):
        end = _closing_index(tokens, start)
        if tokens[start].type == "definition":
            start = end
            continue
        pieces.append(_TokenWalker(lines, None if pieces else carried).piece(tokens[start:end]))
        start = end
    return pieces


def _closing_index(tokens: list[Token], start: int) -> int:
    """One past the token that closes the one at `start`."""
    depth = 0
    for index in range(start, len(tokens)):
        depth += tokens[index].nesting
        if not depth:
            return index + 1
    return len(tokens)


class _TokenWalker:
    """Flattens the tokens of one top-level block."""

    def __init__(self, lines: list[str], carried: CarriedBlock | None) -> None:
        self._lines = lines
        self._carried = carried
        self._out: list[Leaf] = []
        self._inside: list[Container] = []
        # For each list around: the number of its next item, None where items have none.
        self._numbers: list[int | None] = []
        self._items: list[ListItem] = []
        # For each footnote around: its label, and its first leaf.
        self._notes: list[tuple[str, int]] = []
        self._opened = self._end = 0

    def piece(self, tokens: list[Token]) -> TopLevelBlock:
        """The block as a whole."""
        opener = tokens[0]
        first, last = cast("list[int]", opener.map)
        kind: TopLevelKind = _TOP_LEVEL_KINDS.get(opener.type, "other")
        ordinal = int(opener.attrs.get("start", 1)) if opener.type == "ordered_list_open" else 0
        self._end = first
        stops = SplitPoints()
        for index, token in enumerate(tokens):
            if kind == "container":
                stops.add_token(token, len(self._out), self._blank_before, self._numbers[-1] if self._numbers else None)
            self._take(token, tokens[index - 1])
        return TopLevelBlock(
            kind,
            tuple(self._out),
            first,
            last,
            last if kind == "math" else first + (2 if kind == "table" else 1),
            tuple(self._items),
            opener.markup,
            ordinal,
            tuple(opener.meta.get("missing", ())),
            stops.all(),
            is_open=bool(opener.meta.get("open")),
        )

    def _take(self, token: Token, before: Token) -> None:
        match token.type:
            case "inline":
                self._inline(token, before)
            case "fence" | "code_block":
                self._add(token, "code", token.content.removesuffix("\n"), info=unescapeAll(token.info.strip()))
            case "math_block":
                self._add(token, "math", token.content)
            case "hr":
                self._add(token, "rule")
            case "table":
                self._add(token, "table", cells=tuple(token.meta["cells"]), aligns=tuple(token.meta["aligns"]))
            case _:
                self._nest(token)

    def _nest(self, token: Token) -> None:
        match token.type:
            case "blockquote_open":
                self._inside.append(Container("quote"))
            case "footnote_reference_open":
                self._inside.append(Container("footnote", token.meta["label"]))
                self._notes.append((token.meta["label"], len(self._out)))
                self._opened = cast("list[int]", token.map)[0]
            case "bullet_list_open" | "ordered_list_open":
                self._numbers.append(self._first_number(token))
            case "bullet_list_close" | "ordered_list_close":
                self._numbers.pop()
            case "list_item_open":
                self._open_item(token)
            case "list_item_close" | "footnote_reference_close":
                if self._inside[-1].marker:
                    self._add(token, "paragraph")
                if self._inside.pop().kind == "footnote":
                    self._close_note()
            case "blockquote_close":
                self._inside.pop()
            case _:
                pass

    def _close_note(self) -> None:
        label, first = self._notes.pop()
        for index in range(len(self._out) - 1, first - 1, -1):
            leaf = self._out[index]
            if leaf.kind in {"paragraph", "heading"} and not leaf.back:
                self._out[index] = replace(leaf, back=label)
                return

    def _first_number(self, token: Token) -> int | None:
        if token.type == "bullet_list_open":
            return None
        if self._carried and self._carried.ordinal and not self._out:
            return self._carried.ordinal - 1
        return int(token.attrs.get("start", 1))

    def _open_item(self, token: Token) -> None:
        line = cast("list[int]", token.map)[0]
        if len(self._numbers) == 1 and not self._inside:
            self._items.append(ListItem(line, len(self._out), self._blank_before(line)))
        number = self._numbers[-1]
        if number is None:
            marker = _BULLETS[(self._numbers.count(None) - 1) % len(_BULLETS)]
        else:
            marker = f"{number}{token.markup}"
            self._numbers[-1] = number + 1
        self._inside.append(Container("item", marker))
        self._opened = line

    def _inline(self, token: Token, opener: Token) -> None:
        text = token.content
        if opener.type == "heading_open":
            self._add_text(opener, "heading", text, level=int(opener.tag[1]))
            return
        if self._inside and self._inside[-1].kind == "item" and self._inside[-1].marker:
            task = _TASK.match(text)
            if task:
                self._inside[-1] = Container("item", "☐" if task[1] == " " else "☑")
                text = text[task.end() :]
        if self._carried and self._carried.kind == "paragraph":
            self._add_text(opener, "paragraph", text[len(self._carried.opening) :], separator=self._carried.separator)
        else:
            self._add_text(opener, "paragraph", text)

    def _add_text(
        self, token: Token, kind: LeafKind, text: str, *, level: int = 0, separator: str | None = None
    ) -> None:
        for index, (between, piece) in enumerate(in_pieces(text)):
            self._add(token, kind, piece, level=level, separator=between if index else separator)

    def _blank_before(self, line: int) -> bool:
        return any(_BLANK.fullmatch(each) for each in self._lines[self._end : line])

    def _add(self, token: Token, kind: LeafKind, text: str = "", **more: Any) -> None:
        """A leaf; the token has its lines, or is the end of an item that has no leaf."""
        first, last = token.map or (self._opened, self._opened + 1)
        tight = bool(self._out and self._numbers) and not self._blank_before(first)
        starts = not self._out and not (self._carried and self._carried.kind == "paragraph")
        self._out.append(Leaf(kind, text, containers=tuple(self._inside), tight=tight, starts=starts, **more))
        self._inside = [Container(each.kind) for each in self._inside]
        self._end = last
