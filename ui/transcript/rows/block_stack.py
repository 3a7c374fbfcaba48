"""Blocks stacked below each other, of which only those near the viewport are read and laid out."""

from collections.abc import Callable, Sequence
from math import inf
from time import perf_counter

from PySide6.QtCore import QRect

from ui.transcript.blocks.block import Block, BlockReplacement
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.text_block import indent_width, is_right_to_left_block
from ui.transcript.rows.block_factory import LazySection
from ui.transcript.rows.heights import Heights
from ui.transcript.style import RenderStyle


class BlockColumn:
    """y counts from the upper edge, x from the left one; `above`, `below`, `left` and `right` stay free."""

    def __init__(self, style: RenderStyle) -> None:
        self.style = style
        self.blocks: list[Block] = []
        self.heights = Heights()
        self.width = 0
        self.above, self.below = style.gap(8), style.gap(8)
        self.left = self.right = 0
        # The blocks that are laid out stand between these two indices.
        self._laid = 0, 0
        self.replaced: Callable[[BlockReplacement], None] | None = None
        """Hears when blocks that were read stand in the place of one that was not."""

    @property
    def height(self) -> int:
        """Of all blocks and the frame."""
        return self.above + self.heights.total + self.below

    def set_width(self, width: int) -> None:
        """Take a width; exact heights become guesses when it is another one."""
        if width != self.width:
            self.width = width
            for block in self.blocks:
                block.forget()
                block.layout_count = 0

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
        """About how high the block at this index is."""
        self.heights[index] = self._estimate_block(index, self.blocks[index])

    def _estimate_block(self, index: int, block: Block) -> int:
        return self.gap(index, block) + block.estimate(self.block_width(block), self.style)

    def replace(self, index: int, blocks: Sequence[Block]) -> None:
        """Set several blocks in the place of one."""
        if not blocks and not index and len(self.blocks) > 1:
            # The first block has no gap above it.
            self.heights[1] -= self.blocks[1].gap
        self.blocks[index : index + 1] = blocks
        self.heights.replace(index, 1, [self._estimate_block(at, block) for at, block in enumerate(blocks, index)])
        first, end = (each + len(blocks) - 1 if index < each else each for each in self._laid)
        self._laid = first, end
        if self.replaced:
            self.replaced(BlockReplacement(index, blocks))

    def truncate(self, count: int) -> None:
        """Keep only the first blocks."""
        if count < len(self.blocks):
            for block in self.blocks[max(count, self._laid[0]) : self._laid[1]]:
                block.forget()
            self.heights.remove(count, len(self.blocks) - count)
            del self.blocks[count:]

    def layout(self, index: int) -> bool:
        """Lay out a block that is not; answers whether its height changed."""
        block = self.blocks[index]
        before = self.heights[index]
        # Nothing that a block says of itself may move the others together.
        self.heights[index] = self.gap(index, block) + max(0, block.layout(self.block_width(block), self.style))
        block.layout_count += 1
        first, end = self._laid
        self._laid = (min(first, index), max(end, index + 1)) if end > first else (index, index + 1)
        return before != self.heights[index]

    @property
    def has_layouts(self) -> bool:
        """Whether blocks of it may be laid out."""
        return self._laid[1] > self._laid[0]

    def forget_outside(self, top: int, bottom: int) -> None:
        """Give up the layouts that are far away."""
        kept: list[int] = []
        first, end = self._laid
        for index, block in enumerate(self.blocks[first:end], first):
            # Between two places that were looked at there may be thousands of blocks.
            if block.is_laid_out:
                # Not by its middle: of a block that is many screens high that may be far from what is seen of it.
                block_top = self.block_top(index)
                if block_top < bottom and block_top + self.heights[index] > top:
                    kept.append(index)
                else:
                    block.forget()
        self._laid = (kept[0], kept[-1] + 1) if kept else (0, 0)

    def block_at(self, y: int) -> int:
        """The block whose place, with the gap above it, holds y."""
        return self.heights.find(y - self.above)

    def block_top(self, index: int) -> int:
        """Where a block's place begins, gap included; the first one begins at the row's top."""
        return self.above + self.heights.top(index) if index else 0

    def block_box(self, index: int) -> QRect:
        """Where a block itself stands."""
        block = self.blocks[index]
        gap = self.gap(index, block)
        x = self.left + (0 if is_right_to_left_block(block) else indent_width(block.containers, self.style))
        top = self.above + self.heights.top(index) + gap
        return QRect(x, top, self.block_width(block), self.heights[index] - gap)

    def gap(self, index: int, block: Block) -> int:
        """The space above a block; the first one has none."""
        return block.gap if index else 0

    def block_width(self, block: Block) -> int:
        """How wide a block may be."""
        return max(40, self.width - self.left - self.right - indent_width(block.containers, self.style))


_MAX_PASSES = 3


class BlockStack(BlockColumn):
    """What is asked for is read first; then it is laid out."""

    def __init__(self, style: RenderStyle) -> None:
        super().__init__(style)
        # Blocks at the end of which it is known that they are read.
        self._read_at_end = 0

    def settle(self, top: int, bottom: int) -> bool:
        """Read and lay out what lies between two y; answers whether a height changed."""
        has_read = False
        while self.read_between(top, bottom):
            has_read = True
        return self.layout_between(top, bottom) or has_read

    def layout_between(self, top: int, bottom: int) -> bool:
        """Lay out what was read between two y; answers whether a height changed."""
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
        """Lay out what was read between two y until the clock says so; answers whether there was something.

        Not a table in several pieces: they share their columns, and those on the screen would change.
        """
        has_laid = False
        index = self.block_at(top)
        while index < len(self.blocks) and self.block_top(index) < bottom and not (has_laid and perf_counter() > until):
            if not self._is_piece_of_table(index):
                before = self.blocks[index].is_laid_out
                self._layout_block(index)
                has_laid |= self.blocks[index].is_laid_out and not before
            index += 1
        return has_laid

    def _is_piece_of_table(self, index: int) -> bool:
        around = self.blocks[index : index + 2]
        return isinstance(around[0], TableBlock) and any(block.separator is not None for block in around)

    def settle_block(self, index: int) -> bool:
        """Lay out one block, read first if it was not; answers whether its height changed."""
        has_read = False
        while index < len(self.blocks) and isinstance(self.blocks[index], LazySection):
            has_read |= self.read(index)
        return (index < len(self.blocks) and self._layout_block(index)) or has_read

    def _layout_block(self, index: int) -> bool:
        block = self.blocks[index]
        return not block.is_laid_out and not isinstance(block, LazySection) and self.layout(index)

    def read_between(self, top: int, bottom: int) -> bool:
        """One step of reading what lies between two y, and the block before it; answers whether there was one."""
        # The bar beside a quote goes on from the block before.
        index = max(0, self.block_at(top) - 1)
        while index < len(self.blocks) and self.block_top(index) < bottom:
            if isinstance(self.blocks[index], LazySection):
                self.read(index, 0)
                return True
            index += 1
        return False

    def read(self, index: int, until: float = inf) -> bool:
        """Read on in a block that was not read yet, one step at least; answers whether other blocks stand there now.

        What is left of it when the clock says so stands behind what was read.
        """
        block = self.blocks[index] if index < len(self.blocks) else None
        if not isinstance(block, LazySection):
            return False
        count = len(self.blocks)
        block.read(until)
        return len(self.blocks) != count or self.blocks[index] is not block

    def truncate(self, count: int) -> None:
        """Keep only the first blocks."""
        self._read_at_end = max(0, self._read_at_end - max(0, len(self.blocks) - count))
        super().truncate(count)

    def last_lazy_section(self) -> int | None:
        """The index of the last block that was not read yet."""
        index = len(self.blocks) - self._read_at_end - 1
        while index >= 0 and not isinstance(self.blocks[index], LazySection):
            index -= 1
        self._read_at_end = len(self.blocks) - index - 1
        return index if index >= 0 else None

    def has_lazy_section_between(self, top: int, bottom: int) -> bool:
        """Whether something between two y was not read yet."""
        index = self.block_at(top)
        while index < len(self.blocks) and self.block_top(index) < bottom:
            if isinstance(self.blocks[index], LazySection):
                return True
            index += 1
        return False
