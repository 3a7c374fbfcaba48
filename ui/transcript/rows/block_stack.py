"""Blocks stacked below each other, of which only those near the viewport are parsed and laid out."""

from collections.abc import Callable, Sequence
from math import inf
from time import perf_counter

from PySide6.QtCore import QRect

from ui.transcript.blocks.block import Block, BlockReplacement
from ui.transcript.blocks.buttons import HeaderBlock
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.text_block import indent_width, is_right_to_left_block
from ui.transcript.rows.block_factory import LazySection
from ui.transcript.rows.heights import Heights
from ui.transcript.style import RenderStyle

_MAX_PASSES = 3


class BlockStack:
    """The blocks of a row. y counts from its upper edge, x from its left one.

    The margins `above`, `below`, `left` and `right` stay free. Below a header, blocks are indented by `body_indent`.
    """

    def __init__(self, style: RenderStyle) -> None:
        self.style = style
        self.blocks: list[Block] = []
        self.heights = Heights()
        self.width = 0
        self.above, self.below = style.gap(8), style.gap(8)
        self.left = self.right = self.body_indent = 0
        # The blocks that are laid out are between these two indices.
        self._laid_out_range = 0, 0
        # Blocks at the end that are known to be parsed.
        self._read_at_end = 0
        self.replaced: Callable[[BlockReplacement], None] | None = None
        """Called when blocks replaced a lazy section."""

    @property
    def height(self) -> int:
        return self.above + self.heights.total + self.below

    def set_width(self, width: int) -> None:
        """Set the width; with another one, exact heights become estimates."""
        if width != self.width:
            self.width = width
            for block in self.blocks:
                block.forget()

    def set_block(self, index: int, block: Block) -> None:
        """Set the block at this index, which is at most one past the last."""
        if index == len(self.blocks):
            self.blocks.append(block)
            self.heights.append(0)
        else:
            self.blocks[index].forget()
            self.blocks[index] = block
        self.estimate_block(index)

    def estimate_block(self, index: int) -> None:
        """Estimate the height of the block at this index."""
        self.heights[index] = self._estimated_height(index, self.blocks[index])

    def _estimated_height(self, index: int, block: Block) -> int:
        return self.gap(index, block) + block.estimate(self.block_width(block), self.style)

    def replace(self, index: int, blocks: Sequence[Block]) -> None:
        """Replace a block by several."""
        if not blocks and not index and len(self.blocks) > 1:
            # The first block has no gap above it.
            self.heights[1] -= self.blocks[1].gap
        self.blocks[index : index + 1] = blocks
        heights = [self._estimated_height(number, block) for number, block in enumerate(blocks, index)]
        self.heights.replace(index, 1, heights)
        first, end = (bound + len(blocks) - 1 if index < bound else bound for bound in self._laid_out_range)
        self._laid_out_range = first, end
        if self.replaced:
            self.replaced(BlockReplacement(index, blocks))

    def truncate(self, count: int) -> None:
        """Keep only the first `count` blocks."""
        removed = len(self.blocks) - count
        if removed > 0:
            self._read_at_end = max(0, self._read_at_end - removed)
            for block in self.blocks[max(count, self._laid_out_range[0]) : self._laid_out_range[1]]:
                block.forget()
            self.heights.remove(count, removed)
            del self.blocks[count:]

    def restyle(self, style: RenderStyle, width: int) -> None:
        """Use another style: blocks keep their numbers and what was parsed, and are laid out when visible."""
        before = self.style
        self.forget_layouts()
        for block in self.blocks:
            block.rescale_gap(style)
        share = style.line * style.advance * self.width / (before.line * before.advance * width)
        scaled = [round(self.heights[index] * share) for index in range(len(self.blocks))]
        self.heights.replace(0, len(self.blocks), scaled)
        self.style, self.width = style, width

    def block_at(self, y: int) -> int:
        """Return the block at y; the gap above a block belongs to it."""
        return self.heights.find(y - self.above)

    def block_top(self, index: int) -> int:
        """Return where a block begins, with its gap; the first one begins at the row's top."""
        return self.above + self.heights.top(index) if index else 0

    def block_box(self, index: int) -> QRect:
        """Return the box of a block, without its gap."""
        block = self.blocks[index]
        gap = self.gap(index, block)
        if block.spans_row:
            return QRect(0, self.above + self.heights.top(index) + gap, self.width, self.heights[index] - gap)
        x = self.left + (0 if is_right_to_left_block(block) else indent_width(block.containers, self.style))
        top = self.above + self.heights.top(index) + gap
        indent = self.body_indent if index else 0
        return QRect(x + indent, top, self.block_width(block), self.heights[index] - gap)

    def gap(self, index: int, block: Block) -> int:
        """Return the space above a block; the first one has none."""
        return block.gap if index else 0

    def block_width(self, block: Block) -> int:
        """Return how wide a block may be."""
        if block.spans_row:
            return self.width
        indent = 0 if isinstance(block, HeaderBlock) else self.body_indent
        return max(40, self.width - self.left - self.right - indent_width(block.containers, self.style)) - indent

    def layout(self, index: int) -> bool:
        """Lay out a block; return whether its height changed."""
        block = self.blocks[index]
        before = self.heights[index]
        # A negative height would move the blocks below over this one.
        self.heights[index] = self.gap(index, block) + max(0, block.layout(self.block_width(block), self.style))
        first, end = self._laid_out_range
        self._laid_out_range = (min(first, index), max(end, index + 1)) if end > first else (index, index + 1)
        return before != self.heights[index]

    def _layout_block(self, index: int) -> bool:
        block = self.blocks[index]
        return not block.is_laid_out and not isinstance(block, LazySection) and self.layout(index)

    @property
    def has_layouts(self) -> bool:
        return self._laid_out_range[1] > self._laid_out_range[0]

    def forget_layouts(self) -> None:
        """Drop all layouts."""
        for block in self.blocks[slice(*self._laid_out_range)]:
            block.forget()
        self._laid_out_range = 0, 0

    def forget_outside(self, top: int, bottom: int) -> None:
        """Drop the layouts of blocks outside of a span."""
        kept: list[int] = []
        first, end = self._laid_out_range
        for index, block in enumerate(self.blocks[first:end], first):
            # Most of the blocks in between may not be laid out.
            if block.is_laid_out:
                # Do not test its middle: in a block of many screens that may be far from the visible part.
                block_top = self.block_top(index)
                if block_top < bottom and block_top + self.heights[index] > top:
                    kept.append(index)
                else:
                    block.forget()
        self._laid_out_range = (kept[0], kept[-1] + 1) if kept else (0, 0)

    def settle(self, top: int, bottom: int) -> bool:
        """Parse and lay out what is between two y; return whether a height changed."""
        has_read = False
        while self.read_between(top, bottom):
            has_read = True
        return self.layout_between(top, bottom) or has_read

    def layout_between(self, top: int, bottom: int) -> bool:
        """Lay out the parsed blocks between two y; return whether a height changed."""
        changed = False
        for _ in range(_MAX_PASSES):
            index = first = self.block_at(top)
            while index < len(self.blocks) and self.block_top(index) < bottom:
                changed |= self._layout_block(index)
                index += 1
            # Laying out a piece of a table may change the columns of those above it.
            if all(block.is_laid_out or isinstance(block, LazySection) for block in self.blocks[first:index]):
                break
        return changed

    def layout_ahead(self, top: int, bottom: int, until: float) -> bool:
        """Lay out the parsed blocks between two y until the deadline; return whether there were any.

        Tables in several pieces are left out: they share their columns, and visible ones would change.
        """
        has_laid = False
        index = self.block_at(top)
        while index < len(self.blocks) and self.block_top(index) < bottom and not (has_laid and perf_counter() > until):
            block = self.blocks[index]
            if not block.is_laid_out and not self._is_piece_of_table(index):
                self._layout_block(index)
                has_laid |= block.is_laid_out
            index += 1
        return has_laid

    def _is_piece_of_table(self, index: int) -> bool:
        neighbours = self.blocks[index : index + 2]
        return isinstance(neighbours[0], TableBlock) and any(block.separator is not None for block in neighbours)

    def settle_block(self, index: int) -> bool:
        """Parse and lay out one block; return whether its height changed."""
        has_read = False
        while index < len(self.blocks) and isinstance(self.blocks[index], LazySection):
            has_read |= self.read(index)
        return (index < len(self.blocks) and self._layout_block(index)) or has_read

    def read(self, index: int, until: float = inf) -> bool:
        """Parse more of a lazy section, at least one step; return whether blocks replaced it.

        What is left of it at the deadline stays below the new blocks.
        """
        block = self.blocks[index] if index < len(self.blocks) else None
        if not isinstance(block, LazySection):
            return False
        count = len(self.blocks)
        block.read(until)
        return len(self.blocks) != count or self.blocks[index] is not block

    def read_between(self, top: int, bottom: int) -> bool:
        """Parse one step of what is between two y, and of the block before it; return whether there was any."""
        # The bar beside a quote continues that of the block before.
        index = self._lazy_section_from(max(0, self.block_at(top) - 1), bottom)
        if index is not None:
            self.read(index, 0)
        return index is not None

    def has_lazy_section_between(self, top: int, bottom: int) -> bool:
        """Return whether anything between two y is not parsed yet."""
        return self._lazy_section_from(self.block_at(top), bottom) is not None

    def _lazy_section_from(self, index: int, bottom: int) -> int | None:
        while index < len(self.blocks) and self.block_top(index) < bottom:
            if isinstance(self.blocks[index], LazySection):
                return index
            index += 1
        return None

    def last_lazy_section(self) -> int | None:
        """Return the index of the last lazy section."""
        index = len(self.blocks) - self._read_at_end - 1
        while index >= 0 and not isinstance(self.blocks[index], LazySection):
            index -= 1
        self._read_at_end = len(self.blocks) - index - 1
        return index if index >= 0 else None
