"""Parse the block structure of Markdown with markdown-it. Inline text stays unparsed."""

import re
from collections import ChainMap
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

from markdown_it.common.utils import unescapeAll
from markdown_it.token import Token

from desktop_agent.markdown.long_text import split_long_text
from desktop_agent.markdown.parser import FOOTNOTES_KEY, DepthLimitedParser, make_parser
from ui.transcript.markdown.elements import (
    CarriedBlock,
    Container,
    Leaf,
    LeafKind,
    ListItem,
    SplitPoint,
    TopLevelBlock,
    TopLevelKind,
)

_LISTS = {"bullet_list_open", "ordered_list_open"}
# A rule neither takes in the lines that follow nor belongs to those above.
_RULE = "***"


@dataclass(slots=True)
class _OpenContainer:
    """A quote, a footnote or a list: how its first and its blank lines begin, and where its blocks end.

    `leaf` is the number of leaves above the outermost container, or above the footnote.
    """

    first: str
    blank: str
    leaf: int = 0
    note: str | None = None
    is_list: bool = False
    end: int | None = None
    after_definition: bool = False
    stops: list[SplitPoint] = field(default_factory=list[SplitPoint])

    def opening(self, token: Token, number: int | None, *, after_blank: bool) -> str:
        """Return the text parsed in place of everything above a block or an item."""
        placeholder = _RULE
        if self.is_list:
            # With four columns before its text, no item of the same list can become nested in it.
            placeholder = f"{token.markup}   x" if number is None else f"1{token.markup}  x"
        return f"{self.first}{placeholder}\n" + (f"{self.blank}\n" if after_blank else "")


class SplitPoints:
    """Collects the split points of one top-level block from its tokens, without those inside list items."""

    def __init__(self) -> None:
        self._containers: list[_OpenContainer] = []
        self._open: list[_OpenContainer] = []

    def all(self) -> tuple[SplitPoint, ...]:
        """Return the split points of what may go on after the last token, in text order."""
        return tuple(stop for container in self._open for stop in container.stops)

    def add_token(self, token: Token, leaf: int, after_blank: Callable[[int], bool], number: int | None) -> None:
        """Add the next token. `leaf` leaves precede it; `number` is that of the next item of its list."""
        containers = self._containers
        if token.nesting < 0 and token.level == len(containers) - 1:
            containers.pop()
        elif token.nesting >= 0 and token.level == len(containers) and token.type != "inline":
            if containers:
                self._open = [*containers]
                self._add_split_point(token, leaf, after_blank, number)
            self._open_container(token, leaf)

    def _add_split_point(self, token: Token, leaf: int, after_blank: Callable[[int], bool], number: int | None) -> None:
        container = self._containers[-1]
        first, last = cast("list[int]", token.map)
        is_definition = token.type == "definition"
        # The block below a link definition may still become its title, unless it is another definition.
        start = first if (is_definition and container.after_definition) or container.is_list else container.end
        # The first leaf shows where the container begins.
        is_shown = leaf > container.leaf or (is_definition and leaf == 0 and container.note is None)
        begins_list = container.is_list and container.end is None
        if start is not None and is_shown and not begins_list and not token.meta.get("open"):
            opening = container.opening(token, number, after_blank=after_blank(first)) if leaf else ""
            sure = {"math_block": last, "table": first + 2}.get(token.type, first + 1)
            container.stops.append(SplitPoint(start, sure, leaf, opening, number or 0, container.note))
        container.after_definition = is_definition
        if not is_definition:
            container.end = last

    def _open_container(self, token: Token, leaf: int) -> None:
        """Open a container. Footnotes inside footnotes are skipped: their last text is known only at their ends."""
        above = self._containers[-1] if self._containers else _OpenContainer("", "")
        if token.type == "blockquote_open":
            self._containers.append(_OpenContainer(above.first + "> ", above.blank + ">", above.leaf, above.note))
        elif token.type == "footnote_reference_open" and above.note is None:
            label = cast("str", token.meta["label"])
            self._containers.append(_OpenContainer(f"{above.first}[^{label}]: ", f"{above.blank}    ", leaf, label))
        elif token.type in _LISTS and self._containers:
            self._containers.append(_OpenContainer(above.first, above.blank, above.leaf, above.note, is_list=True))


_TASK_BOXES = {" ": "☐", "x": "☑", "X": "☑"}
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
    """Return the top-level blocks; `carried` belongs to the first of them."""
    blocks: list[TopLevelBlock] = []
    lines = text.split("\n")
    start = 0
    while start < len(tokens):
        end = _closing_index(tokens, start)
        if tokens[start].type == "definition":
            start = end
            continue
        blocks.append(_TokenWalker(lines, None if blocks else carried).block(tokens[start:end]))
        start = end
    return blocks


def _closing_index(tokens: list[Token], start: int) -> int:
    """Return the index after the token that closes the one at `start`."""
    depth = 0
    for index in range(start, len(tokens)):
        depth += tokens[index].nesting
        if not depth:
            return index + 1
    return len(tokens)


class _TokenWalker:
    """Flattens the tokens of one top-level block into leaves."""

    def __init__(self, lines: list[str], carried: CarriedBlock | None) -> None:
        self._lines = lines
        self._carried = carried
        self._leaves: list[Leaf] = []
        self._nesting: list[Container] = []
        # The number of the next item of each open list, None for bullets.
        self._numbers: list[int | None] = []
        self._items: list[ListItem] = []
        # The label and the first leaf of each open footnote.
        self._notes: list[tuple[str, int]] = []
        self._opened = self._end = 0

    def block(self, tokens: list[Token]) -> TopLevelBlock:
        opener = tokens[0]
        first, last = cast("list[int]", opener.map)
        kind: TopLevelKind = _TOP_LEVEL_KINDS.get(opener.type, "other")
        ordinal = int(opener.attrs.get("start", 1)) if opener.type == "ordered_list_open" else 0
        self._end = first
        stops = SplitPoints()
        for index, token in enumerate(tokens):
            if kind == "container":
                number = self._numbers[-1] if self._numbers else None
                stops.add_token(token, len(self._leaves), self._blank_before, number)
            self._add_token(token, tokens[index - 1])
        return TopLevelBlock(
            kind,
            tuple(self._leaves),
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

    def _add_token(self, token: Token, before: Token) -> None:
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
                self._nesting.append(Container("quote"))
            case "footnote_reference_open":
                self._nesting.append(Container("footnote", token.meta["label"]))
                self._notes.append((token.meta["label"], len(self._leaves)))
                self._opened = cast("list[int]", token.map)[0]
            case "bullet_list_open" | "ordered_list_open":
                self._numbers.append(self._first_number(token))
            case "bullet_list_close" | "ordered_list_close":
                self._numbers.pop()
            case "list_item_open":
                self._open_item(token)
            case "list_item_close" | "footnote_reference_close":
                if self._nesting[-1].marker:
                    self._add(token, "paragraph")
                if self._nesting.pop().kind == "footnote":
                    self._close_note()
            case "blockquote_close":
                self._nesting.pop()
            case _:
                pass

    def _close_note(self) -> None:
        label, first = self._notes.pop()
        for index in range(len(self._leaves) - 1, first - 1, -1):
            leaf = self._leaves[index]
            if leaf.kind in {"paragraph", "heading"} and not leaf.back:
                self._leaves[index] = replace(leaf, back=label)
                return

    def _first_number(self, token: Token) -> int | None:
        if token.type == "bullet_list_open":
            return None
        if self._carried and self._carried.ordinal and not self._leaves:
            return self._carried.ordinal - 1
        return int(token.attrs.get("start", 1))

    def _open_item(self, token: Token) -> None:
        line = cast("list[int]", token.map)[0]
        if len(self._numbers) == 1 and not self._nesting:
            self._items.append(ListItem(line, len(self._leaves), self._blank_before(line)))
        number = self._numbers[-1]
        if number is None:
            marker = _BULLETS[(self._numbers.count(None) - 1) % len(_BULLETS)]
        else:
            marker = f"{number}{token.markup}"
            self._numbers[-1] = number + 1
        self._nesting.append(Container("item", marker))
        self._opened = line

    def _inline(self, token: Token, opener: Token) -> None:
        text = token.content
        if opener.type == "heading_open":
            self._add_text(opener, "heading", text, level=int(opener.tag[1]))
            return
        if self._nesting and self._nesting[-1].kind == "item" and self._nesting[-1].marker:
            task = _TASK.match(text)
            if task:
                self._nesting[-1] = Container("item", _TASK_BOXES[task[1]])
                text = text[task.end() :]
        if self._carried and self._carried.kind == "paragraph":
            self._add_text(opener, "paragraph", text[len(self._carried.opening) :], separator=self._carried.separator)
        else:
            self._add_text(opener, "paragraph", text)

    def _add_text(
        self, token: Token, kind: LeafKind, text: str, *, level: int = 0, separator: str | None = None
    ) -> None:
        for index, (between, piece) in enumerate(split_long_text(text)):
            self._add(token, kind, piece, level=level, separator=between if index else separator)

    def _blank_before(self, line: int) -> bool:
        return any(_BLANK.fullmatch(text) for text in self._lines[self._end : line])

    def _add(self, token: Token, kind: LeafKind, text: str = "", **fields: Any) -> None:
        """Add a leaf with the lines of the token; an empty item has the token of its end."""
        first, last = token.map or (self._opened, self._opened + 1)
        tight = bool(self._leaves and self._numbers) and not self._blank_before(first)
        starts = not self._leaves and not (self._carried and self._carried.kind == "paragraph")
        self._leaves.append(Leaf(kind, text, containers=tuple(self._nesting), tight=tight, starts=starts, **fields))
        self._nesting = [Container(container.kind) for container in self._nesting]
        self._end = last


References = dict[str, Any]
"""Link definitions by their normalised labels, and footnote labels under `FOOTNOTES_KEY`."""


# Only blocks are parsed here; inline text is the expensive part and waits until it is displayed.
_BLOCK_PARSER = make_parser(DepthLimitedParser())
_BLOCK_PARSER.core.ruler.enableOnly(["block"])
_BLOCK_PARSER.options["inline_definitions"] = True


def parse_blocks(
    text: str,
    references: References | None = None,
    carried: CarriedBlock | None = None,
    *,
    is_open: bool = False,
    defining: list[int] | None = None,
) -> tuple[list[TopLevelBlock], References]:
    """Parse a text with normalised newlines into top-level blocks and the definitions that are new.

    With `carried`, the text begins with its opening. With `is_open`, a formula may go on after the end of the text.
    `defining` collects the lines where link definitions begin, new or not.
    """
    defined: References = {}
    env: dict[str, Any] = {"references": ChainMap(defined, references or {}), "open": is_open}
    if carried:
        env["missing"], env["goes_on"] = carried.missing, carried.kind == "paragraph"
    tokens = _BLOCK_PARSER.parse(text, env)
    notes = {token.meta["label"]: {"map": token.map} for token in tokens if token.type == "footnote_reference_open"}
    if notes:
        defined[FOOTNOTES_KEY] = notes
    if defining is not None:
        duplicates: list[dict[str, Any]] = env.get("duplicate_refs", [])
        defining += [definition["map"][0] for label, definition in defined.items() if label != FOOTNOTES_KEY]
        defining += [definition["map"][0] for definition in duplicates]
    return top_level_blocks(tokens, text, carried), defined
