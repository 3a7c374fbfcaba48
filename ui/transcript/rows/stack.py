"""Blocks below each other, of which only those near the screen are read and laid out."""

from math import inf
from time import perf_counter

from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.look import RenderStyle
from ui.transcript.rows.body.column import BlockColumn
from ui.transcript.rows.body.unread import LazySection

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
