"""Blocks below each other, of which only those near the screen are laid out."""

from PySide6.QtCore import QRect

from ui.transcript.blocks.block import Block
from ui.transcript.blocks.indent import indent_of
from ui.transcript.geometry import Heights
from ui.transcript.look import Look


class Stack:
    """y counts from the upper edge, x from the left one; `above`, `below`, `left` and `right` stay free."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self.blocks: list[Block] = []
        self._heights = Heights()
        self.width = 0
        self.above, self.below = look.px(8), look.px(8)
        self.left = self.right = 0

    @property
    def height(self) -> int:
        """Of all blocks and the frame."""
        return self.above + self._heights.total + self.below

    def place(self, width: int) -> None:
        """Take a width; exact heights become guesses when it is another one."""
        if width != self.width:
            self.width = width
            for block in self.blocks:
                block.forget()

    def put(self, index: int, block: Block) -> None:
        """Set the block at this index, which is at most one past the last."""
        guess = self.gap(index, block) + block.estimate(self.room(block), self.look)
        if index == len(self.blocks):
            self.blocks.append(block)
            self._heights.append(guess)
        else:
            self.blocks[index] = block
            self._heights[index] = guess

    def truncate(self, count: int) -> None:
        """Keep only the first blocks."""
        if count < len(self.blocks):
            self._heights.remove(count, len(self.blocks) - count)
            del self.blocks[count:]

    def settle(self, top: int, bottom: int) -> bool:
        """Lay out what lies between two y; answers whether a height changed."""
        changed = False
        index = self.block_at(top)
        while index < len(self.blocks) and self.block_top(index) < bottom:
            changed |= self.settle_block(index)
            index += 1
        return changed

    def settle_block(self, index: int) -> bool:
        """Lay out one block; answers whether its height changed."""
        block = self.blocks[index]
        if block.laid:
            return False
        before = self._heights[index]
        self._heights[index] = self.gap(index, block) + block.lay(self.room(block), self.look)
        return before != self._heights[index]

    def forget_outside(self, top: int, bottom: int) -> None:
        """Give up the layouts that are far away."""
        for index, block in enumerate(self.blocks):
            if block.laid and not top < self.block_top(index) + self._heights[index] // 2 < bottom:
                block.forget()

    def block_at(self, y: int) -> int:
        """The block whose place, with the gap above it, holds y."""
        return self._heights.find(y - self.above)

    def block_top(self, index: int) -> int:
        """Where a block's place begins, gap included; the first one begins at the row's top."""
        return self.above + self._heights.top(index) if index else 0

    def block_box(self, index: int) -> QRect:
        """Where a block itself stands."""
        block = self.blocks[index]
        gap = self.gap(index, block)
        x = self.left + indent_of(block.inside, self.look)
        top = self.above + self._heights.top(index) + gap
        return QRect(x, top, self.room(block), self._heights[index] - gap)

    def gap(self, index: int, block: Block) -> int:
        """The space above a block; the first one has none."""
        return block.gap if index else 0

    def room(self, block: Block) -> int:
        """How wide a block may be."""
        return max(40, self.width - self.left - self.right - indent_of(block.inside, self.look))
