"""A row: one item of the conversation, as blocks inside a frame, and what is copied of them."""

import re
from collections.abc import Iterable, Iterator, Sequence

from PySide6.QtCore import QRect
from PySide6.QtGui import QPainter

from desktop_agent.conversation.items import Item
from ui.style.text import show_hidden
from ui.transcript.blocks.block import (
    WHOLE_TEXT,
    Block,
    Control,
    MenuAction,
    PaintContext,
    TextRange,
    marker_before,
    separator_before,
)
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.blocks.diagram_block import DiagramBlock
from ui.transcript.blocks.image_blocks import RemoteImageBlock
from ui.transcript.blocks.math.math_block import MathBlock
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.text_block import MarkdownTextBlock, RuleBlock, paint_containers
from ui.transcript.clipboard import EMPTY_EXTRACT, CopiedBlock, CopyExtract, copy_formats_of
from ui.transcript.markdown.elements import Leaf, LeafKind
from ui.transcript.markdown.inline import slice_utf16
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.rows.block_factory import BlockFactory, LazySection
from ui.transcript.rows.block_stack import BlockStack
from ui.transcript.rows.render_context import RenderContext
from ui.transcript.style import RenderStyle

_ELEMENT = re.compile(r"\A<(p|h[1-6])>(.*)</\1>\Z", re.DOTALL)
_HEADING = re.compile(r"\A#{1,6} ")


def iter_extracts(
    blocks: Sequence[Block], start: tuple[int, int] = (0, 0), end: tuple[int, int] | None = None
) -> Iterator[CopyExtract]:
    """Yield what is copied between two positions, block by block; later changes of the blocks do not matter.

    Whenever parsing took a while, EMPTY_EXTRACT is yielded.
    A part of a single block is copied by itself: a word of an item is no item, and code has no fence.
    """
    last = min(end[0] if end else len(blocks), len(blocks) - 1)
    goes_on = start[0] <= last and blocks[start[0]].separator is not None
    kept: list[tuple[Sequence[Block], int, int]] = []
    for index in range(start[0], last + 1):
        first = start[1] if index == start[0] else 0
        stop = end[1] if end and index == end[0] else WHOLE_TEXT[1]
        block = blocks[index]
        if isinstance(block, LazySection) and (first, stop) == WHOLE_TEXT:
            kept.append((block.detached(), first, stop))
        else:
            kept.append(((block,), first, stop))
    is_alone = end is not None and start[0] == end[0]
    return _extract_steps(kept, _table_head_above(blocks, start[0]) if goes_on else "", is_alone=is_alone)


def _extract_steps(
    kept: list[tuple[Sequence[Block], int, int]], above: str, *, is_alone: bool
) -> Iterator[CopyExtract]:
    before: Block | None = None
    for together, first, stop in kept:
        for block in (each for one in together for each in _read_in_steps(one)):
            if block is None:
                yield EMPTY_EXTRACT
                continue
            part = _BlockPart(block, first, stop, is_alone=is_alone)
            if part.is_something:
                yield part.extract(before, "" if before else above)
                before = block


def _read_in_steps(block: Block) -> Iterable[Block | None]:
    return block.iter_blocks() if isinstance(block, LazySection) else (block,)


def read_block(block: Block) -> Sequence[Block]:
    """Return the block, or those that will replace it when it is parsed."""
    return block.blocks() if isinstance(block, LazySection) else (block,)


def table_pieces_at(blocks: Sequence[Block], index: int) -> Iterator[TableBlock]:
    """Yield all pieces of the table that a block is a piece of."""
    first = _first_piece(blocks, index)
    for number in range(first, len(blocks)):
        for block in read_block(blocks[number]):
            if not isinstance(block, TableBlock) or (block.separator is None and number > first):
                return
            yield block


def _table_head_above(blocks: Sequence[Block], index: int) -> str:
    """Return the head of a table if the first copied block is a later piece of it."""
    first = read_block(blocks[_first_piece(blocks, index)])
    return first[0].markdown_prefix() if first else ""


def _first_piece(blocks: Sequence[Block], index: int) -> int:
    while index and blocks[index].separator is not None:
        index -= 1
    return index


class _BlockPart:
    """A part of a block that is copied."""

    def __init__(self, block: Block, first: int, stop: int, *, is_alone: bool) -> None:
        self._block = block
        self._plain = block.plain()
        size = utf16_length(self._plain)
        self._first, self._stop = first, min(stop, size)
        is_whole = not first and stop >= size
        self._is_bare = is_alone and (not is_whole or isinstance(block, CodeBlock))
        self.is_something = first < self._stop or (is_whole and bool(marker_before(block)))

    def extract(self, before: Block | None, above: str) -> CopyExtract:
        """Return the part as plain text, Markdown and HTML."""
        block, first, stop = self._block, self._first, self._stop
        text = slice_utf16(self._plain, first, stop)
        html = block.html(first, stop)
        if self._is_bare and isinstance(block, CodeBlock):
            return CopyExtract("", text, CopiedBlock(text), CopiedBlock(html))
        markdown = block.markdown(first, stop)
        if above and markdown.startswith("| "):
            markdown = f"{above}\n{markdown}"
        if self._is_bare:
            element = _ELEMENT.match(html)
            return CopyExtract(
                "", text, CopiedBlock(_HEADING.sub("", markdown)), CopiedBlock(element[2] if element else html)
            )
        separator = separator_before(block, before) if before else ""
        marker = marker_before(block) if not first else ""
        containers = (block.containers, block.tight, block.starts, block.separator if before else None)
        return CopyExtract(separator + marker, text, CopiedBlock(markdown, *containers), CopiedBlock(html, *containers))


_OVERHANG = 5
MAX_SPOKEN = 20_000
"""Characters of a row that assistive technology gets; more would stall the bus."""

UNFOLDED_KEY = "unfolded"
"""The name of the choice to unfold a row."""

RowSelection = tuple[tuple[int, int], tuple[int, int]]
"""From (block, offset) to (block, offset) in one row."""


class Row:
    """One item of the conversation: a stack of blocks, painted inside a frame, and its text."""

    is_copied = True
    """Whether its text belongs to a copy of several rows."""

    def __init__(self, item: Item, render_context: RenderContext) -> None:
        self.item = item
        self.render_context = render_context
        self.stack = BlockStack(render_context.style)
        self.blocks = self.stack.blocks
        # The gaps of blocks other than Markdown, in a style in which 1000 pixels are one.
        self._plain_gaps: dict[Block, float] = {}

    @property
    def label(self) -> str:
        """The accessible name."""
        raise NotImplementedError

    @property
    def is_open(self) -> bool:
        """Whether its text still grows: such a row is always kept."""
        return False

    @property
    def unfolded(self) -> bool:
        """Whether everything is shown: the person's choice, or else the default of the kind of row."""
        return self.render_context.choices.get(self.item.id, UNFOLDED_KEY, default=self._is_unfolded_by_default())

    def _is_unfolded_by_default(self) -> bool:
        return True

    def _toggle(self) -> None:
        """Fold the row or unfold it, by the person's choice."""
        self.render_context.choices.set(self.item.id, UNFOLDED_KEY, value=not self.unfolded)
        self.refresh("state")
        self.render_context.signals.changed.emit(self.item.id)

    def build(self) -> None:
        """Make the blocks from the item."""
        raise NotImplementedError

    def refresh(self, what: str) -> int:
        """Show a change of the item; return the y from which the row looks different."""
        del what
        self.stack.truncate(0)
        self.build()
        return 0

    def set_width(self, width: int) -> None:
        """Lay out the blocks in another width."""
        self.stack.set_width(width)

    def restyle(self, width: int) -> None:
        """Use the render context's new style: blocks keep their numbers and what was parsed."""
        frame = type(self)(self.item, self.render_context).stack
        stack = self.stack
        stack.above, stack.below, stack.body_indent = frame.above, frame.below, frame.body_indent
        gaps = _RestyledGaps(self.render_context, stack.style.px(1000), self._plain_gaps)
        stack.restyle(self.render_context.style, width, gaps.of)
        self.refresh("text")

    def source(self) -> str:
        """Return the text as Markdown."""
        return self.plain()

    def paint(
        self, painter: QPainter, clip: QRect, selection: RowSelection | None, hovered: str = "", focused: str = ""
    ) -> None:
        """Paint what is in the clip. The painter's origin is the row's top left."""
        style, stack = self.render_context.style, self.stack
        self.paint_frame(painter, style)
        # Glyphs reach a little out of their lines.
        clip = clip.adjusted(0, -_OVERHANG, 0, _OVERHANG)
        index = stack.block_at(clip.top())
        while index < len(self.blocks):
            box = stack.block_box(index)
            if box.top() > clip.bottom():
                break
            block = self.blocks[index]
            if block.is_laid_out:
                painter.save()
                painter.translate(box.topLeft())
                if block.containers:
                    paint_containers(painter, style, block, self.blocks[index - 1] if index else None, box)
                span = selected_range(selection, index) if selection else None
                marks = (_own_key(hovered, index), _own_key(focused, index))
                block.paint(PaintContext(painter, style, clip.translated(-box.topLeft()), span, *marks))
                painter.restore()
            index += 1

    def paint_frame(self, painter: QPainter, style: RenderStyle) -> None:
        """Paint what is behind the blocks."""

    def controls(self) -> Iterator[tuple[int, Control]]:
        """Yield the controls of all laid out blocks, each with the number of its block."""
        for index, block in enumerate(self.blocks):
            for control in block.controls() if block.is_laid_out else ():
                yield index, control

    def actions(self) -> Sequence[MenuAction]:
        """Return what the context menu offers for this message, beside copying it."""
        return ()

    def plain(self, start: tuple[int, int] = (0, 0), end: tuple[int, int] | None = None) -> str:
        """Return the text between two positions, or all of it."""
        parts: list[str] = []
        before = self.blocks[start[0] - 1] if 0 < start[0] <= len(self.blocks) else None
        for index in range(start[0], (end[0] if end else len(self.blocks) - 1) + 1):
            first = start[1] if index == start[0] else 0
            stop = end[1] if end and index == end[0] else WHOLE_TEXT[1]
            is_whole = (first, stop) == WHOLE_TEXT
            for block in read_block(self.blocks[index]) if is_whole else self.blocks[index : index + 1]:
                if text := block.plain():
                    separator = separator_before(block, before) if before and parts else ""
                    parts += [separator, marker_before(block) if not first else "", slice_utf16(text, first, stop)]
                before = block
        return "".join(parts)

    def extracts(self, start: tuple[int, int] = (0, 0), end: tuple[int, int] | None = None) -> Iterator[CopyExtract]:
        """Yield what is copied between two positions, block by block."""
        return iter_extracts(self.blocks, start, end)

    def markdown(self, start: tuple[int, int] = (0, 0), end: tuple[int, int] | None = None) -> str:
        """Return the text between two positions as Markdown, with its lists and quotes."""
        return copy_formats_of(self.extracts(start, end)).markdown

    def html(self, start: tuple[int, int] = (0, 0), end: tuple[int, int] | None = None) -> str:
        """Return the text between two positions as HTML."""
        return copy_formats_of(self.extracts(start, end)).html

    def whole(self, index: int) -> tuple[int, int]:
        """Return the first and last piece of the paragraph that a block belongs to; a table has no paragraphs."""
        if isinstance(self.blocks[index], TableBlock):
            return index, index
        return self.pieces(index)

    def pieces(self, index: int) -> tuple[int, int]:
        """Return the first and last piece of the paragraph, or of the table, that a block belongs to."""
        first = last = index
        while self.blocks[first].separator is not None:
            first -= 1
        while last + 1 < len(self.blocks) and self.blocks[last + 1].separator is not None:
            last += 1
        return first, last

    def spoken_text(self) -> str:
        """Return the text for assistive technology, up to a limit."""
        parts: list[str] = []
        room = MAX_SPOKEN
        for block in self.blocks:
            if text := block.spoken_text():
                parts.append(text)
                room -= len(text) + 1
            if room <= 0:
                break
        return "\n".join(parts)


class _RestyledGaps:
    """The gaps above blocks that a row keeps in a new style: as above Markdown blocks that are made in it."""

    def __init__(self, render_context: RenderContext, before: int, plain: dict[Block, float]) -> None:
        self._factory = BlockFactory(render_context, "")
        self._before, self._now = before, render_context.style.px(1000)
        self._plain = plain
        self._known: dict[tuple[LeafKind, bool], int] = {}

    def of(self, block: Block) -> int:
        """Return the gap above a block in pixels."""
        if block.separator is not None:
            return block.gap
        kind = block.leaf.kind if isinstance(block, MarkdownTextBlock) else _LEAF_KINDS.get(type(block))
        if kind is None:
            # Not from a rounded gap: changing the style back gives the same gaps.
            return round(self._plain.setdefault(block, block.gap / self._before) * self._now)
        known = self._known.get((kind, block.tight))
        if known is None:
            known = self._known[kind, block.tight] = self._factory.block(Leaf(kind, tight=block.tight)).gap
        return known


_LEAF_KINDS: dict[type[Block], LeafKind] = {
    TableBlock: "table",
    CodeBlock: "code",
    DiagramBlock: "code",
    MathBlock: "math",
    RuleBlock: "rule",
    RemoteImageBlock: "paragraph",
}


def one_line(text: str, max_length: int) -> str:
    """Show text from a model or server on one line, with hidden characters spelled out."""
    return " ".join(show_hidden(text[:max_length]).split())


def selected_range(selection: RowSelection, index: int) -> TextRange | None:
    """Return the selected range of a block."""
    (first, start), (last, end) = selection
    if not first <= index <= last:
        return None
    span = (start if index == first else 0, end if index == last else WHOLE_TEXT[1])
    return span if span[1] > span[0] else None


def _own_key(key: str, index: int) -> str:
    block, _, name = key.partition("/")
    return name if name and block == str(index) else ""
