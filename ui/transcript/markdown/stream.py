"""Parse Markdown as it arrives: closed blocks are handed out once, and what is final of an open block is not parsed
again.

The one rule of closing: a top-level block is closed when the first line of the next one is complete.
"""

import re
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ui.transcript.markdown.elements import CarriedBlock, Leaf, TableRow, TopLevelBlock
from ui.transcript.markdown.open_blocks import OpenFence, OpenMath, displayed_tail, open_fence
from ui.transcript.markdown.parser import References, parse_blocks
from ui.transcript.markdown.rules import FIRST_BAR, FOOTNOTES_KEY, MAX_LABEL_LENGTH
from ui.transcript.markdown.text_units import PIECE, split_long_text

# A bracket that is known not to begin a definition: another one stands in it, or no colon behind it.
_NO_DEFINITION = re.compile(r"\[(?!\^)(?:[^\[\]\\]|\\.)*(?:\[|\][^:])", re.DOTALL)


class FinalPart(NamedTuple):
    """How many leaves or rows of the block are final, where the rest of the text begins, and what stands before it."""

    final: int
    start: int
    carried: CarriedBlock | None


def find_final_part(piece: TopLevelBlock, source: str, before: CarriedBlock | None) -> FinalPart | None:
    """What is final of the last block of a text, if anything; `before` is what of this block was so before."""
    match piece.kind:
        case "list":
            return _final_items(piece, source, before)
        case "table":
            return _final_rows(piece, source)
        case "paragraph":
            return _final_paragraph(piece, source, before)
        case "container":
            return _final_in_container(piece, source, before)
        case _:
            return None


def line_offset(source: str, line: int) -> int:
    """Where a line begins, or the end of a text that has no such line."""
    at = 0
    for _ in range(line):
        at = source.find("\n", at) + 1
        if not at:
            return len(source)
    return at


def _final_items(piece: TopLevelBlock, source: str, before: CarriedBlock | None) -> FinalPart | None:
    complete = source.count("\n")
    last = next((index for index in range(len(piece.items) - 1, 0, -1) if piece.items[index].line < complete), 0)
    # The first item is made up when there was one before.
    if last <= (1 if before else 0):
        return None
    item = piece.items[last]
    is_ordered = piece.marker in ".)"
    first = before.ordinal - 1 if before else piece.ordinal
    # Four columns to its text: no item of the same list can be taken for one inside it.
    opening = f"1{piece.marker}  x\n" if is_ordered else f"{piece.marker}   x\n"
    carried = CarriedBlock("list", opening + "\n" * item.after_blank, ordinal=first + last)
    return FinalPart(item.leaf, line_offset(source, item.line), carried)


def _final_rows(piece: TopLevelBlock, source: str) -> FinalPart | None:
    count = piece.end - piece.first - 3
    if count < 1:
        return None
    head = line_offset(source, piece.first)
    body = head + line_offset(source[head:], 2)
    carried = CarriedBlock("table", source[head:body], missing=piece.missing[count])
    return FinalPart(count, body + line_offset(source[body:], count), carried)


def _final_paragraph(piece: TopLevelBlock, source: str, before: CarriedBlock | None) -> FinalPart | None:
    content = "".join((leaf.separator or "") + leaf.text for leaf in piece.leaves)
    start = 0
    if before:
        start, content = len(before.opening), content[len(before.separator) :]
    if len(content) <= PIECE:
        return None
    # Of more than one line, a definition is shorter than this. One that stands above has no title of this length.
    if content.startswith("[") and "\n" not in content and not _NO_DEFINITION.match(content):
        return None
    if not before:
        start = source.index(content[0], line_offset(source, piece.first))
    parts = list(split_long_text(_settled_lines(content)))
    if len(parts) < 2:
        return None
    length = sum(len(separator or "") + len(text) for separator, text in parts[:-1])
    separator = parts[-1][0] or ""
    return FinalPart(
        len(parts) - 1, start + length + len(separator), CarriedBlock("paragraph", f"x{separator}", separator=separator)
    )


def _final_in_container(piece: TopLevelBlock, source: str, before: CarriedBlock | None) -> FinalPart | None:
    complete = source.count("\n")
    sure = [stop for stop in piece.stops if stop.sure <= complete]
    read_already = len(before.opening) if before else 0
    for stop in reversed(sure):
        start = line_offset(source, stop.start)
        if start > read_already and (
            stop.note is None or _has_words(piece.leaves[stop.leaf : sure[-1].leaf], stop.note)
        ):
            carried = CarriedBlock("container", stop.opening, ordinal=stop.ordinal) if stop.opening else None
            return FinalPart(stop.leaf, start, carried)
    return None


def _has_words(leaves: tuple[Leaf, ...], note: str) -> bool:
    """Whether the way back from a footnote surely stands behind one of these leaves or a later one."""
    return any(leaf.kind in {"paragraph", "heading"} and leaf.back in {"", note} for leaf in leaves)


def _settled_lines(content: str) -> str:
    """Without the line that is not complete and may turn out to be anything, and one that may become a head."""
    line = content.rfind("\n") + 1
    size = len(content) - line
    may_be_note = content.startswith("[^", line) and size <= MAX_LABEL_LENGTH
    if size > FIRST_BAR and not may_be_note and not _may_be_head(content, line):
        return content
    above = content.rfind("\n", 0, max(0, line - 1)) + 1
    return content[: above if _may_be_head(content, above) else line].rstrip()


def _may_be_head(content: str, line: int) -> bool:
    end = content.find("\n", line)
    return content.find("|", line, min(line + FIRST_BAR, end if end >= 0 else len(content))) >= 0


def displayed_leaves(
    piece: TopLevelBlock, carried: CarriedBlock | None, rows: list[tuple[str, ...]]
) -> tuple[Leaf, ...]:
    """The leaves of a block without what was made up, and with the rows that were frozen."""
    if not carried or carried.kind == "paragraph":
        return piece.leaves
    if carried.kind in {"list", "container"}:
        return piece.leaves[1:]
    (leaf,) = piece.leaves
    return (Leaf("table", cells=(*rows, *leaf.cells[1:]), aligns=leaf.aligns, starts=True),)


# What reading a block's lines and its indents takes, in microseconds on an ordinary computer.
_LINE_COST, _INDENT_COST = 20, 0.35
_MAX_PENDING = 16_000


@dataclass(frozen=True, slots=True)
class StreamStep:
    """What one piece of text changed.

    `closed` leaves are new and final; `tail` replaces the whole previous tail. When `grown` is not None, nothing
    else happened than that the last leaf, an open code block or formula, got this text at its end. When `rows` is not
    None, nothing else happened than that the last leaf, an open table, got these rows at its end, in the place of its
    last `replaced` ones.
    """

    closed: tuple[Leaf, ...] = ()
    tail: tuple[Leaf, ...] = ()
    grown: str | None = None
    definitions: bool = False
    rows: tuple[TableRow, ...] | None = None
    replaced: int = 0


class MarkdownStream:
    """Folds pieces of text into leaves. `references` are the definitions of all closed text."""

    def __init__(self) -> None:
        self.references: References = {}
        self._tail = ""
        self._carriage = False
        self._carried: CarriedBlock | None = None
        self._rows: list[TableRow] = []
        self._open_rows: tuple[TableRow, ...] | None = None
        self._fence: OpenFence | None = None
        self._math: OpenMath | None = None
        self._shown: tuple[Leaf, ...] = ()
        self._skips_left = 0

    def append(self, text: str) -> StreamStep:
        """Take the next piece. A very long open block is read again only every so many pieces."""
        return self._take_text(self._normal(text))

    def _take_text(self, text: str) -> StreamStep:
        if self._fence:
            return self._feed_fence(self._fence, text)
        if self._math:
            grown = self._math.feed(text)
            if grown is not None:
                return StreamStep(grown=grown)
            self._tail, self._math = self._math.source(), None
        else:
            self._tail += text
        if self._skips_left:
            self._skips_left -= 1
            return StreamStep(tail=self._shown)
        step = self._parse()
        self._shown = step.tail
        self._skips_left = 0 if self._fence or self._math or step.rows is not None else _skips(self._tail)
        return step

    def _feed_fence(self, fence: OpenFence, text: str) -> StreamStep:
        grown = fence.feed(text)
        if fence.rest is None:
            return StreamStep(grown=grown)
        self._tail, self._fence = fence.rest, None
        after = self._parse()
        return StreamStep((fence.leaf(), *after.closed), after.tail, definitions=after.definitions)

    def finish(self) -> StreamStep:
        """No more text comes: close everything."""
        before = self._take_text("\n") if self._carriage else StreamStep()
        self._carriage = False
        # How a block without an end treats blank last lines is the parser's to say.
        open_block, self._fence, self._math = self._fence or self._math, None, None
        if open_block:
            self._tail = open_block.source()
        pieces, defined = parse_blocks(self._source(), self.references, self._carried)
        is_defined = self._take_definitions(defined) or before.definitions
        closed = self._leaves(pieces)
        self._tail, self._skips_left, self._carried = "", 0, None
        return StreamStep(before.closed + closed, definitions=is_defined)

    def _normal(self, text: str) -> str:
        """As `normal` does it; a lone carriage return waits for its pair."""
        if self._carriage:
            text = "\r" + text
        self._carriage = text.endswith("\r")
        return normalize_newlines(text[:-1] if self._carriage else text)

    def _source(self) -> str:
        return self._carried.opening + self._tail if self._carried else self._tail

    def _leaves(self, pieces: list[TopLevelBlock]) -> tuple[Leaf, ...]:
        """Of blocks from the first of the tail on."""
        if not pieces:
            return ()
        first = displayed_leaves(pieces[0], self._carried, self._rows)
        return (*first, *(leaf for piece in pieces[1:] for leaf in piece.leaves))

    def _parse(self) -> StreamStep:
        source = self._source()
        lines: list[int] = []
        pieces, defined = parse_blocks(
            displayed_tail(source), self.references, self._carried, is_open=True, defining=lines
        )
        above, count = _above_definitions(pieces, lines), _closed_count(pieces, source.count("\n"))
        if above and above[0] >= count:
            count = above[0]
        else:
            above = None
        if self._open_rows is not None and not count and len(pieces) == 1:
            return self._grow_table(pieces[0], source)
        closed, tail = self._leaves(pieces[:count]), pieces[count:]
        start = line_offset(source, pieces[count - 1].end) if count else len(source) - len(self._tail)
        if above:
            start = line_offset(source, above[1])
        if count:
            self._carried, self._rows = None, []
        leaves = self._leaves(tail)
        ready = find_final_part(tail[0], source, self._carried) if tail else None
        if ready and (len(tail) == 1 or tail[0].kind == "list"):
            count = self._freeze(tail[0], ready)
            closed, leaves, start = closed + leaves[:count], leaves[count:], ready.start
        self._tail = source[start:]
        self._open_rows = tail[0].leaves[0].cells[-1:] if self._carries_table() and len(tail) == 1 else None
        if tail and self._enter(tail[-1], source, start, alone=len(tail) == 1):
            leaves = (*leaves[:-1], self._open_leaf(leaves[-1]))
            start = line_offset(source, tail[-1].first) if self._fence else start
        return StreamStep(closed, leaves, definitions=self._take_definitions(defined, source.count("\n", 0, start)))

    def _freeze(self, piece: TopLevelBlock, ready: FinalPart) -> int:
        """Carry on with the rest of an open block; answers how many of its leaves are final."""
        made_up = self._carried is not None and self._carried.kind in {"list", "container"}
        self._carried = ready.carried
        if piece.kind == "table":
            self._rows += piece.leaves[0].cells[bool(self._rows) : ready.final + 1]
            return 0
        return ready.final - made_up

    def _carries_table(self) -> bool:
        return self._carried is not None and self._carried.kind == "table"

    def _grow_table(self, piece: TopLevelBlock, source: str) -> StreamStep:
        rows, before = piece.leaves[0].cells[1:], self._open_rows or ()
        if rows == before:
            return StreamStep(rows=())
        ready = find_final_part(piece, source, self._carried)
        if ready:
            self._freeze(piece, ready)
            self._tail = source[ready.start :]
        self._open_rows = rows[-1:] if ready else rows
        return StreamStep(rows=rows, replaced=len(before))

    def _enter(self, piece: TopLevelBlock, source: str, start: int, *, alone: bool) -> bool:
        """Whether the last block is bare text without an end: from here on text is not parsed but appended."""
        first = line_offset(source, piece.first)
        if piece.kind == "fence" and alone:
            self._fence = open_fence(source[first:])
            self._tail = "" if self._fence else self._tail
        elif piece.is_open and "\n" in source[first:] and not _may_become_words(source, first):
            self._math = OpenMath(self._tail, first - start)
        return bool(self._fence or self._math)

    def _open_leaf(self, leaf: Leaf) -> Leaf:
        if self._fence:
            return self._fence.shown_leaf()
        return replace(leaf, text=self._math.shown) if self._math else leaf

    def _take_definitions(self, defined: References, end: int | None = None) -> bool:
        """Take over the definitions that end before a line, or all of them; answers whether there were any."""
        known = len(self.references), len(self.references.get(FOOTNOTES_KEY, ()))
        for label, each in defined.items():
            if label == FOOTNOTES_KEY:
                notes = self.references.setdefault(FOOTNOTES_KEY, {})
                notes.update({name: note for name, note in each.items() if _is_new(notes, name, note, end)})
            elif _is_new(self.references, label, each, end):
                self.references[label] = each
        return known != (len(self.references), len(self.references.get(FOOTNOTES_KEY, ())))


def _is_new(known: References, label: str, definition: dict[str, Any], end: int | None) -> bool:
    return label not in known and (end is None or definition["map"][1] <= end)


def _closed_count(pieces: list[TopLevelBlock], complete: int) -> int:
    """How many blocks are closed in a text with so many complete lines."""
    for index in range(len(pieces) - 1, 0, -1):
        if pieces[index].sure <= complete and not pieces[index].is_open:
            return index
    return 0


def _above_definitions(pieces: list[TopLevelBlock], lines: list[int]) -> tuple[int, int] | None:
    """How many blocks stand above the last two definitions at the margin, and the line of the last one.

    The first of them is over where the other begins, since no title begins with a bracket, and so are those blocks.
    None where there are no two, or something stands between them.
    """
    containers = 0
    found: list[tuple[int, int]] = []
    for line in sorted(lines):
        while containers < len(pieces) and pieces[containers].end <= line:
            containers += 1
        if containers == len(pieces) or line < pieces[containers].first:
            found.append((containers, line))
    return found[-1] if len(found) > 1 and found[-2][0] == found[-1][0] else None


def _may_become_words(source: str, first: int) -> bool:
    """Whether a line further out makes this open formula words of the block right above it, such as a footnote."""
    above = source[:first].removesuffix("\n").rpartition("\n")[2]
    return source[first : first + 1] in {" ", "\t"} and bool(above.strip())


def _skips(tail: str) -> int:
    """How many more pieces may come before an open block is read again from its beginning."""
    return int(tail.count("\n") * _LINE_COST + tail.count("  ") * _INDENT_COST) // _MAX_PENDING


def normalize_newlines(text: str) -> str:
    """Line ends as one newline each, NUL as CommonMark 2.3 wants it."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.replace("\0", "\ufffd")


def parse_leaves(text: str) -> tuple[tuple[Leaf, ...], References]:
    """A whole text at once: its leaves and its definitions."""
    pieces, references = parse_blocks(normalize_newlines(text))
    return tuple(leaf for piece in pieces for leaf in piece.leaves), references
