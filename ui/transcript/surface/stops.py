"""What Tab stops at in a message: links and buttons in their order, also those that nobody has scrolled to yet."""

from collections.abc import Iterator
from dataclasses import dataclass

from ui.transcript.blocks.block import Block, Control
from ui.transcript.blocks.math.math_block import MathBlock
from ui.transcript.blocks.rule import RuleBlock
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.text_block import MarkdownTextBlock, TextBlock
from ui.transcript.markdown.inline import Line, slice_utf16
from ui.transcript.rows.row import Row, RowSelection

_LINK_PREFIX = "#link "
"""Begins the name of a link among the keys of controls; its place in the text follows."""

_LINK_SIGNS = ("[", "<", "://", "www.", "@")


@dataclass(frozen=True, slots=True)
class Link:
    """A link in a text: its place in the plain text of its block, its words and its target."""

    start: int
    end: int
    words: str
    target: str

    @property
    def name(self) -> str:
        """By which it is known among the controls of its block."""
        return f"{_LINK_PREFIX}{self.start} {self.end}"


@dataclass(frozen=True, slots=True)
class FocusStop:
    """One of them: its block, and what it is there."""

    block: int
    target: Control | Link

    @property
    def key(self) -> str:
        """As in `Screen.focused`."""
        return f"{self.block}/{self.target.name}"


def iter_focus_stops(row: Row, block: int, step: int) -> Iterator[FocusStop]:
    """The stops of a row from a block on, or back from it; blocks with buttons are laid out for that."""
    while 0 <= block < len(row.blocks):
        found = [FocusStop(block, each) for each in _stops_in_block(row, block)]
        yield from found if step > 0 else reversed(found)
        block += step


def next_focus_stop(row: Row, key: str, step: int) -> FocusStop | None:
    """The stop after a key, or before it; an empty key stands before all."""
    if not key:
        return next(iter_focus_stops(row, 0, 1), None) if step > 0 else None
    has_passed = False
    for stop in iter_focus_stops(row, int(key.partition("/")[0]), step):
        if has_passed:
            return stop
        has_passed = stop.key == key
    return None


def find_focus_stop(row: Row, key: str) -> FocusStop | None:
    """The stop of a key, while it is there."""
    block, _, name = key.partition("/")
    found = _stops_in_block(row, int(block)) if name and int(block) < len(row.blocks) else ()
    return next((FocusStop(int(block), each) for each in found if each.name == name), None)


def link_selection(row: Row, key: str) -> RowSelection | None:
    """Where a link stands that has the keyboard; None for a button."""
    block, _, name = key.partition("/")
    if not name.startswith(_LINK_PREFIX) or int(block) >= len(row.blocks):
        return None
    start, end = map(int, name[len(_LINK_PREFIX) :].split())
    return (int(block), start), (int(block), end)


def _stops_in_block(row: Row, index: int) -> list[Control | Link]:
    row.read(index)
    block = row.blocks[index] if index < len(row.blocks) else None
    if block is None or isinstance(block, RuleBlock | MathBlock):
        return []
    if isinstance(block, TextBlock | TableBlock) and not _may_have_links(block):
        return []
    if not block.is_laid_out:
        row.settle_block(index)
    return [*links_in(block), *block.controls()]


def _may_have_links(block: Block) -> bool:
    texts = [block.leaf.text] if isinstance(block, MarkdownTextBlock) else []
    if isinstance(block, TableBlock):
        texts = [cell for row in block.leaf.cells for cell in row]
    return any(sign in text for text in texts for sign in _LINK_SIGNS)


def links_in(block: Block) -> Iterator[Link]:
    """All links of a block."""
    if isinstance(block, TextBlock):
        yield from links_of(block.line())
    elif isinstance(block, TableBlock):
        for row, lines in enumerate(block.cells.lines()):
            for column, line in enumerate(lines):
                at = block.cells.offset_of(row, column) if line.spans else 0
                for link in links_of(line):
                    yield Link(at + link.start, at + link.end, link.words, link.target)


def links_of(line: Line) -> Iterator[Link]:
    """The links of a line; parts of one in several styles are one."""
    last: tuple[int, int, str] | None = None
    for span in line.spans:
        if not span.href:
            continue
        end = span.start + span.length
        if last and last[1] == span.start and last[2] == span.href:
            last = last[0], end, span.href
            continue
        if last:
            yield _link(line, *last)
        last = span.start, end, span.href
    if last:
        yield _link(line, *last)


def _link(line: Line, start: int, end: int, target: str) -> Link:
    first, last = line.to_plain(start), line.to_plain(end)
    return Link(first, last, slice_utf16(line.plain(), first, last), target)
