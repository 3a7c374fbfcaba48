"""A row: one item of the conversation, as blocks inside a frame, and what is copied of them."""

import re
from collections.abc import Callable, Iterator, Sequence

from PySide6.QtCore import QRect
from PySide6.QtGui import QPainter

from desktop_agent.conversation.items import Item
from ui.transcript.blocks.block import (
    WHOLE_TEXT,
    Block,
    Control,
    MenuAction,
    PaintContext,
    TextRange,
    joined_text,
    marker_before,
    separator_before,
)
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.blocks.message_footer import MessageFooter
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.text_block import paint_containers
from ui.transcript.clipboard import EMPTY_EXTRACT, CopiedBlock, CopyExtract
from ui.transcript.markdown.inline import slice_utf16
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.rows.block_factory import MAX_SPOKEN, LazySection
from ui.transcript.rows.block_stack import BlockStack
from ui.transcript.rows.render_context import RenderContext
from ui.transcript.style import RenderStyle

_ELEMENT = re.compile(r"\A<(p|h[1-6])>(.*)</\1>\Z", re.DOTALL)
_HEADING = re.compile(r"\A#{1,6} ")


def _extract_steps(parts: list[tuple[Block, int, int]], above: str, *, is_alone: bool) -> Iterator[CopyExtract]:
    before: Block | None = None
    for part, first, stop in parts:
        for block in part.iter_blocks() if isinstance(part, LazySection) else (part,):
            extract = _extract(block, first, stop, before, "" if before else above, is_alone=is_alone)
            if extract:
                yield extract
                before = block or before


def _extract(
    block: Block | None, first: int, stop: int, before: Block | None, above: str, *, is_alone: bool
) -> CopyExtract | None:
    """Return a part of a block as plain text, Markdown and HTML; None if there is nothing in it."""
    if block is None:
        return EMPTY_EXTRACT
    plain = block.plain()
    size = utf16_length(plain)
    is_whole, stop = not first and stop >= size, min(stop, size)
    if first >= stop and not (is_whole and marker_before(block)):
        return None
    text, html = slice_utf16(plain, first, stop), block.html(first, stop)
    if is_alone and isinstance(block, CodeBlock):
        return CopyExtract("", text, CopiedBlock(text), CopiedBlock(html))
    markdown = block.markdown(first, stop)
    if above and markdown.startswith("| "):
        markdown = f"{above}\n{markdown}"
    if is_alone and not is_whole:
        element = _ELEMENT.match(html)
        bare = element[2] if element else html
        return CopyExtract("", text, CopiedBlock(_HEADING.sub("", markdown)), CopiedBlock(bare))
    separator = separator_before(block, before) if before else ""
    marker = marker_before(block) if not first else ""
    containers = (block.containers, block.tight, block.starts, block.separator if before else None)
    return CopyExtract(separator + marker, text, CopiedBlock(markdown, *containers), CopiedBlock(html, *containers))


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


_OVERHANG = 5
UNFOLDED_KEY = "unfolded"
"""The name of the choice to unfold a row."""

RowSelection = tuple[tuple[int, int], tuple[int, int]]
"""From (block, offset) to (block, offset) in one row."""


class Row:
    """One item of the conversation: a stack of blocks, painted inside a frame, and its text."""

    is_copied = True
    """Whether its text belongs to a copy of several rows."""
    footer_gap = 4
    """Pixels at 100 % between the last block and the footer."""
    is_preparing = False
    """Whether a few words replace a block that the worker still makes."""

    def __init__(self, item: Item, render_context: RenderContext) -> None:
        self.item = item
        self.render_context = render_context
        self.stack = BlockStack(render_context.style)
        self.blocks = self.stack.blocks
        self.footer: MessageFooter | None = None
        self._footer_content: object = None

    @property
    def label(self) -> str:
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
        self.render_context.choices.set(self.item.id, UNFOLDED_KEY, not self.unfolded)
        self.refresh("state")
        self.restore_footer()
        self.render_context.signals.changed.emit(self.item.id)

    def build(self) -> None:
        """Make the blocks from the item."""
        raise NotImplementedError

    def add(self, block: Block, gap: float = 0, *, is_fixed: bool = True) -> None:
        """Append a block below a gap in pixels at 100 %, which a compact view makes smaller unless it is fixed."""
        if gap:
            block.set_gap(self.render_context.style, gap, is_fixed=is_fixed)
        self.stack.set_block(len(self.blocks), block)

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
        stack.restyle(self.render_context.style, width)
        self.refresh("text")

    @property
    def body_bottom(self) -> int:
        """The y below the last block of the message itself."""
        footer_height = self.stack.heights[len(self.blocks) - 1] if self._has_footer else 0
        return self.stack.height - self.stack.below - footer_height

    @property
    def _has_footer(self) -> bool:
        return self.footer is not None and bool(self.blocks) and self.blocks[-1] is self.footer

    def set_footer(self, content: object, make: Callable[[], MessageFooter] | None = None) -> None:
        """Show the footer that `make` makes below the message, unless it has this content already; None removes it."""
        if content != self._footer_content:
            self._footer_content = content
            if self._has_footer:
                self.stack.truncate(len(self.blocks) - 1)
            self.footer = make() if make else None
        self.restore_footer()

    def restore_footer(self) -> None:
        """Put the footer below the blocks again, after they were made anew."""
        if self.footer is not None and not self._has_footer:
            self.add(self.footer, self.footer_gap)

    def source(self) -> str:
        """Return the text as Markdown."""
        return joined_text(self.blocks)

    def paint(
        self,
        painter: QPainter,
        clip: QRect,
        selection: RowSelection | None,
        hovered: str = "",
        focused: str = "",
        *,
        is_quiet: bool = False,
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
                block_clip = clip.translated(-box.topLeft())
                block.paint(PaintContext(painter, style, block_clip, span, *marks, is_quiet=is_quiet))
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

    def extracts(self, start: tuple[int, int] = (0, 0), end: tuple[int, int] | None = None) -> Iterator[CopyExtract]:
        """Yield what is copied between two positions, block by block; later changes of the blocks do not matter.

        Whenever parsing took a while, EMPTY_EXTRACT is yielded.
        A part of a single block is copied by itself: a word of an item is no item, and code has no fence.
        """
        blocks = self.blocks
        last = min(end[0] if end else len(blocks), len(blocks) - 1)
        continues = start[0] <= last and blocks[start[0]].separator is not None
        parts: list[tuple[Block, int, int]] = []
        for index in range(start[0], last + 1):
            first = start[1] if index == start[0] else 0
            stop = end[1] if end and index == end[0] else WHOLE_TEXT[1]
            block = blocks[index]
            is_whole = (first, stop) == WHOLE_TEXT
            detached = block.detached() if isinstance(block, LazySection) and is_whole else [block]
            parts += [(part, first, stop) for part in detached]
        is_alone = end is not None and start[0] == end[0]
        return _extract_steps(parts, _table_head_above(blocks, start[0]) if continues else "", is_alone=is_alone)

    def whole(self, index: int) -> tuple[int, int]:
        """Return the first and last piece of the paragraph that a block belongs to; a table has no paragraphs."""
        if isinstance(self.blocks[index], TableBlock):
            return index, index
        first, last = _first_piece(self.blocks, index), index
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
