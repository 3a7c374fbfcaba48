"""What of an open block is final already, so that it is neither parsed nor shown again.

An item of a list is final when the first line of the next one is complete, a row of a table when the next one begins,
and a piece of a paragraph when enough stands after it and no line of it can become the head of a table any more.
"""

import re
from typing import NamedTuple

from ui.transcript.markdown.leaves import CarriedBlock, Leaf, TopLevelBlock
from ui.transcript.markdown.pieces import PIECE, split_long_text
from ui.transcript.markdown.rules.footnotes import MAX_LABEL_LENGTH
from ui.transcript.markdown.rules.tables import FIRST_BAR

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
