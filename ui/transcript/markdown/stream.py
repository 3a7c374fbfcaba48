"""Parse Markdown as it arrives. Closed blocks are returned once; final parts of an open block are not parsed again.

A top-level block is closed when the first line of the next one is complete.
"""

import re
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from desktop_agent.markdown.long_text import PIECE, split_long_text
from desktop_agent.markdown.parser import FIRST_BAR, FOOTNOTES_KEY, MAX_LABEL_LENGTH
from ui.transcript.markdown.elements import CarriedBlock, Leaf, TableRow, TopLevelBlock
from ui.transcript.markdown.open_blocks import OpenFence, OpenFormula, displayed_tail, open_fence
from ui.transcript.markdown.parser import References, parse_blocks

# A bracket that begins no definition: another bracket follows inside it, or no colon behind it.
_NO_DEFINITION = re.compile(r"\[(?!\^)(?:[^\[\]\\]++|\\.)*+(?:\[|\][^:])", re.DOTALL)


class FinalPart(NamedTuple):
    """How many leaves or rows of a block are final, where the rest begins, and what is parsed in their place."""

    final: int
    start: int
    carried: CarriedBlock | None


def line_offset(source: str, line: int) -> int:
    """Return the offset of a line, or the length of a text that has no such line."""
    offset = 0
    for _ in range(line):
        offset = source.find("\n", offset) + 1
        if not offset:
            return len(source)
    return offset


def _final_items(block: TopLevelBlock, source: str, before: CarriedBlock | None) -> FinalPart | None:
    complete = source.count("\n")
    last = next((index for index in range(len(block.items) - 1, 0, -1) if block.items[index].line < complete), 0)
    # The first item is a placeholder when the list was carried.
    if last <= (1 if before else 0):
        return None
    item = block.items[last]
    is_ordered = block.marker in ".)"
    first = before.ordinal - 1 if before else block.ordinal
    # With four columns before its text, no item of the same list can become nested in it.
    opening = f"1{block.marker}  x\n" if is_ordered else f"{block.marker}   x\n"
    carried = CarriedBlock("list", opening + "\n" * item.after_blank, ordinal=first + last)
    return FinalPart(item.leaf, line_offset(source, item.line), carried)


def _final_rows(block: TopLevelBlock, source: str, before: CarriedBlock | None) -> FinalPart | None:
    del before
    count = block.end - block.first - 3
    if count < 1:
        return None
    head = line_offset(source, block.first)
    body = head + line_offset(source[head:], 2)
    carried = CarriedBlock("table", source[head:body], missing=block.missing[count])
    return FinalPart(count, body + line_offset(source[body:], count), carried)


def _final_paragraph(block: TopLevelBlock, source: str, before: CarriedBlock | None) -> FinalPart | None:
    content = "".join((leaf.separator or "") + leaf.text for leaf in block.leaves)
    start = 0
    if before:
        start, content = len(before.opening), content[len(before.separator) :]
    if len(content) <= PIECE:
        return None
    # Definitions of several lines are shorter than a piece, and so are the titles of those above.
    if content.startswith("[") and "\n" not in content and not _NO_DEFINITION.match(content):
        return None
    if not before:
        start = source.index(content[0], line_offset(source, block.first))
    parts = list(split_long_text(_settled_lines(content)))
    if len(parts) < 2:
        return None
    length = sum(len(separator or "") + len(text) for separator, text in parts[:-1])
    separator = parts[-1][0] or ""
    carried = CarriedBlock("paragraph", f"x{separator}", separator=separator)
    return FinalPart(len(parts) - 1, start + length + len(separator), carried)


def _final_in_container(block: TopLevelBlock, source: str, before: CarriedBlock | None) -> FinalPart | None:
    complete = source.count("\n")
    sure = [stop for stop in block.stops if stop.sure <= complete]
    read_already = len(before.opening) if before else 0
    for stop in reversed(sure):
        start = line_offset(source, stop.start)
        leaves = block.leaves[stop.leaf : sure[-1].leaf]
        if start > read_already and (stop.note is None or _has_words(leaves, stop.note)):
            carried = CarriedBlock("container", stop.opening, ordinal=stop.ordinal) if stop.opening else None
            return FinalPart(stop.leaf, start, carried)
    return None


_FINAL_PARTS = {
    "list": _final_items,
    "table": _final_rows,
    "paragraph": _final_paragraph,
    "container": _final_in_container,
}


def find_final_part(block: TopLevelBlock, source: str, before: CarriedBlock | None) -> FinalPart | None:
    """Return the final part of the last block of a text, if any; `before` is what was already carried of it."""
    find = _FINAL_PARTS.get(block.kind)
    return find(block, source, before) if find else None


def _has_words(leaves: tuple[Leaf, ...], note: str) -> bool:
    """Return whether the back link of a footnote surely follows one of these leaves."""
    return any(leaf.kind in {"paragraph", "heading"} and leaf.back in {"", note} for leaf in leaves)


def _settled_lines(content: str) -> str:
    """Return the content without an incomplete line that may become another block, or a possible table head."""
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
    block: TopLevelBlock, carried: CarriedBlock | None, rows: list[tuple[str, ...]]
) -> tuple[Leaf, ...]:
    """Return the leaves of a block without placeholders, and with the frozen rows of a table."""
    if not carried or carried.kind == "paragraph":
        return block.leaves
    if carried.kind in {"list", "container"}:
        return block.leaves[1:]
    (leaf,) = block.leaves
    return (Leaf("table", cells=(*rows, *leaf.cells[1:]), aligns=leaf.aligns, starts=True),)


# Estimated cost of parsing lines and indents, in microseconds.
_LINE_COST, _INDENT_COST = 20, 0.35
_MAX_PENDING = 16_000


@dataclass(frozen=True, slots=True)
class StreamStep:
    """What one piece of text changed.

    `closed` leaves are new and final; `tail` replaces the whole previous tail. If `grown` is not None, the only change
    is this text at the end of the last leaf, an open code block or formula. If `rows` is not None, the only change is
    these rows at the end of an open table, in place of its last `replaced` rows.
    """

    closed: tuple[Leaf, ...] = ()
    tail: tuple[Leaf, ...] = ()
    grown: str | None = None
    definitions: bool = False
    rows: tuple[TableRow, ...] | None = None
    replaced: int = 0


class MarkdownStream:
    """Parses a growing text into leaves. `references` are the definitions of all closed text, and those before it."""

    def __init__(self, references: References | None = None) -> None:
        self.references: References = {} if references is None else references
        self._tail = ""
        self._ends_with_return = False
        self._carried: CarriedBlock | None = None
        self._rows: list[TableRow] = []
        self._open_rows: tuple[TableRow, ...] | None = None
        self._fence: OpenFence | None = None
        self._math: OpenFormula | None = None
        self._shown: tuple[Leaf, ...] = ()
        self._skips_left = 0

    def append(self, text: str) -> StreamStep:
        """Append text. A very long open block is parsed again only every few calls."""
        return self._append_normalized(self._normalize(text))

    def _append_normalized(self, text: str) -> StreamStep:
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
        """Close all blocks; no more text may follow."""
        before = self._append_normalized("\n") if self._ends_with_return else StreamStep()
        self._ends_with_return = False
        # The parser decides how an unclosed block treats trailing blank lines.
        open_block, self._fence, self._math = self._fence or self._math, None, None
        if open_block:
            self._tail = open_block.source()
        blocks, defined = parse_blocks(self._source(), self.references, self._carried)
        is_defined = self._take_definitions(defined) or before.definitions
        closed = self._leaves(blocks)
        self._tail, self._skips_left, self._carried = "", 0, None
        return StreamStep(before.closed + closed, definitions=is_defined)

    def _normalize(self, text: str) -> str:
        """Normalise newlines; a trailing carriage return waits for its line feed."""
        if self._ends_with_return:
            text = "\r" + text
        self._ends_with_return = text.endswith("\r")
        return normalize_newlines(text[:-1] if self._ends_with_return else text)

    def _source(self) -> str:
        return self._carried.opening + self._tail if self._carried else self._tail

    def _leaves(self, blocks: list[TopLevelBlock]) -> tuple[Leaf, ...]:
        if not blocks:
            return ()
        first = displayed_leaves(blocks[0], self._carried, self._rows)
        return (*first, *(leaf for block in blocks[1:] for leaf in block.leaves))

    def _parse(self) -> StreamStep:
        source = self._source()
        lines: list[int] = []
        displayed = displayed_tail(source)
        blocks, defined = parse_blocks(displayed, self.references, self._carried, is_open=True, defining=lines)
        last_definition, count = _above_definitions(blocks, lines), _closed_count(blocks, source.count("\n"))
        if last_definition and last_definition[0] >= count:
            count = last_definition[0]
        else:
            last_definition = None
        if self._open_rows is not None and not count and len(blocks) == 1:
            return self._grow_table(blocks[0], source)
        closed, tail = self._leaves(blocks[:count]), blocks[count:]
        start = line_offset(source, blocks[count - 1].end) if count else len(source) - len(self._tail)
        if last_definition:
            start = line_offset(source, last_definition[1])
        if count:
            self._carried, self._rows = None, []
        leaves = self._leaves(tail)
        final_part = find_final_part(tail[0], source, self._carried) if tail else None
        if final_part and (len(tail) == 1 or tail[0].kind == "list"):
            count = self._freeze(tail[0], final_part)
            closed, leaves, start = closed + leaves[:count], leaves[count:], final_part.start
        self._tail = source[start:]
        self._open_rows = tail[0].leaves[0].cells[-1:] if self._carries_table() and len(tail) == 1 else None
        if tail and self._open_last_block(tail[-1], source, start, alone=len(tail) == 1):
            leaves = (*leaves[:-1], self._open_leaf(leaves[-1]))
            start = line_offset(source, tail[-1].first) if self._fence else start
        return StreamStep(closed, leaves, definitions=self._take_definitions(defined, source.count("\n", 0, start)))

    def _freeze(self, block: TopLevelBlock, final_part: FinalPart) -> int:
        """Carry on with the rest of an open block; return how many of its leaves are final."""
        has_placeholder = self._carried is not None and self._carried.kind in {"list", "container"}
        self._carried = final_part.carried
        if block.kind == "table":
            self._rows += block.leaves[0].cells[bool(self._rows) : final_part.final + 1]
            return 0
        return final_part.final - has_placeholder

    def _carries_table(self) -> bool:
        return self._carried is not None and self._carried.kind == "table"

    def _grow_table(self, block: TopLevelBlock, source: str) -> StreamStep:
        rows, before = block.leaves[0].cells[1:], self._open_rows or ()
        if rows == before:
            return StreamStep(rows=())
        final_part = find_final_part(block, source, self._carried)
        if final_part:
            self._freeze(block, final_part)
            self._tail = source[final_part.start :]
        self._open_rows = rows[-1:] if final_part else rows
        return StreamStep(rows=rows, replaced=len(before))

    def _open_last_block(self, block: TopLevelBlock, source: str, start: int, *, alone: bool) -> bool:
        """Return whether the last block is an open fence or formula, to which text is now appended unparsed."""
        first = line_offset(source, block.first)
        if block.kind == "fence" and alone:
            self._fence = open_fence(source[first:])
            self._tail = "" if self._fence else self._tail
        elif block.is_open and "\n" in source[first:] and not _may_become_words(source, first):
            self._math = OpenFormula(self._tail, first - start)
        return bool(self._fence or self._math)

    def _open_leaf(self, leaf: Leaf) -> Leaf:
        if self._fence:
            return self._fence.shown_leaf()
        return replace(leaf, text=self._math.shown) if self._math else leaf

    def _take_definitions(self, defined: References, end: int | None = None) -> bool:
        """Add the definitions that end before a line, or all; return whether any was new."""
        known = len(self.references), len(self.references.get(FOOTNOTES_KEY, ()))
        for label, definition in defined.items():
            if label == FOOTNOTES_KEY:
                notes = self.references.setdefault(FOOTNOTES_KEY, {})
                notes.update({name: note for name, note in definition.items() if _is_new(notes, name, note, end)})
            elif _is_new(self.references, label, definition, end):
                self.references[label] = definition
        return known != (len(self.references), len(self.references.get(FOOTNOTES_KEY, ())))


def _is_new(known: References, label: str, definition: dict[str, Any], end: int | None) -> bool:
    return label not in known and (end is None or definition["map"][1] <= end)


def _closed_count(blocks: list[TopLevelBlock], complete: int) -> int:
    for index in range(len(blocks) - 1, 0, -1):
        if blocks[index].sure <= complete and not blocks[index].is_open:
            return index
    return 0


def _above_definitions(blocks: list[TopLevelBlock], lines: list[int]) -> tuple[int, int] | None:
    """Return the number of blocks above the last two top-level definitions, and the line of the last one.

    The first of the two is final where the second begins, since no title begins with a bracket, and so are the blocks.
    None if there are fewer than two, or a block stands between them.
    """
    containers = 0
    definitions: list[tuple[int, int]] = []
    for line in sorted(lines):
        while containers < len(blocks) and blocks[containers].end <= line:
            containers += 1
        if containers == len(blocks) or line < blocks[containers].first:
            definitions.append((containers, line))
    return definitions[-1] if len(definitions) > 1 and definitions[-2][0] == definitions[-1][0] else None


def _may_become_words(source: str, first: int) -> bool:
    """Return whether a less indented line can turn this formula into text of the block above, such as a footnote."""
    above = source[:first].removesuffix("\n").rpartition("\n")[2]
    return source[first : first + 1] in {" ", "\t"} and bool(above.strip())


def _skips(tail: str) -> int:
    """Return how many more texts may arrive before an open block is parsed again from its beginning."""
    return int(tail.count("\n") * _LINE_COST + tail.count("  ") * _INDENT_COST) // _MAX_PENDING


def normalize_newlines(text: str) -> str:
    """Return the text with `\n` line ends, and with NUL replaced as CommonMark 2.3 requires."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.replace("\0", "\ufffd")


def parse_leaves(text: str, known: References | None = None) -> tuple[tuple[Leaf, ...], References]:
    """Parse a whole text into its leaves and its definitions, beside those that are known."""
    blocks, references = parse_blocks(normalize_newlines(text), known)
    return tuple(leaf for block in blocks for leaf in block.leaves), references
