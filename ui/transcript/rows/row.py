"""A row: blocks below each other inside a frame, of which only those near the screen are laid out."""

from collections.abc import Iterator

from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QPainter

from desktop_agent.conversation.items import Item
from ui.transcript.blocks.block import EVERYTHING, Block, Brush, Control, Span
from ui.transcript.blocks.indent import indent_of, paint_inside
from ui.transcript.geometry import Heights
from ui.transcript.look import Look
from ui.transcript.markdown.inline import cut
from ui.transcript.rows.stage import Stage

Selection = tuple[tuple[int, int], tuple[int, int]]
"""From (block, offset) to (block, offset) inside one row."""


class Row:
    """The base of all rows. Heights are pixels; y counts from the row's top, x from the column's left."""

    in_copies = True
    """Whether its text belongs to a copy that reaches over several rows."""

    def __init__(self, item: Item, stage: Stage) -> None:
        self.item = item
        self.stage = stage
        self.blocks: list[Block] = []
        self._heights = Heights()
        self.width = 0
        look = stage.look
        self.above, self.below = look.px(8), look.px(8)
        self.left = self.right = 0

    @property
    def label(self) -> str:
        """The accessible name."""
        raise NotImplementedError

    @property
    def is_open(self) -> bool:
        """Whether its text still grows: such a row is never given up."""
        return False

    @property
    def height(self) -> int:
        """Of all blocks and the frame."""
        return self.above + self._heights.total + self.below

    def build(self) -> None:
        """Make the blocks from the item."""
        raise NotImplementedError

    def refresh(self, what: str) -> int:
        """The item changed; answers the y from which the row looks different."""
        del what
        self.truncate(0)
        self.build()
        return 0

    def source(self) -> str:
        """The text as Markdown."""
        return self.plain()

    def place(self, width: int) -> None:
        """Take a width; exact heights become guesses when it is another one."""
        if width != self.width:
            self.width = width
            for block in self.blocks:
                block.forget()

    def put(self, index: int, block: Block) -> None:
        """Set the block at this index, which is at most one past the last."""
        guess = self._gap(index, block) + block.estimate(self._room(block), self.stage.look)
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
        self._heights[index] = self._gap(index, block) + block.lay(self._room(block), self.stage.look)
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
        gap = self._gap(index, block)
        x = self.left + indent_of(block.inside, self.stage.look)
        top = self.above + self._heights.top(index) + gap
        return QRect(x, top, self._room(block), self._heights[index] - gap)

    def _gap(self, index: int, block: Block) -> int:
        return block.gap if index else 0

    def _room(self, block: Block) -> int:
        return max(40, self.width - self.left - self.right - indent_of(block.inside, self.stage.look))

    def paint(
        self, painter: QPainter, clip: QRect, selection: Selection | None, hovered: str = "", focused: str = ""
    ) -> None:
        """What lies in the clip. The painter stands at the row's top left."""
        look = self.stage.look
        self.paint_frame(painter, look)
        index = self.block_at(clip.top())
        while index < len(self.blocks):
            box = self.block_box(index)
            if box.top() > clip.bottom():
                break
            block = self.blocks[index]
            if block.laid:
                painter.save()
                painter.translate(box.topLeft())
                if block.inside:
                    paint_inside(painter, look, block, self.blocks[index - 1] if index else None, box)
                span = span_in(selection, index) if selection else None
                marks = (_own(hovered, index), _own(focused, index))
                block.paint(Brush(painter, look, clip.translated(-box.topLeft()), span, *marks))
                painter.restore()
            index += 1

    def paint_frame(self, painter: QPainter, look: Look) -> None:
        """What stands behind the blocks."""

    def controls(self) -> Iterator[tuple[int, Control]]:
        """Everything that can be pressed, with its block."""
        for index, block in enumerate(self.blocks):
            for control in block.controls() if block.laid else ():
                yield index, control

    def control_at(self, point: QPoint) -> tuple[str, Control] | None:
        """What can be pressed under a point, with its key."""
        if not self.blocks:
            return None
        index = self.block_at(point.y())
        block = self.blocks[index]
        if not block.laid:
            return None
        inside = point - self.block_box(index).topLeft()
        for control in block.controls():
            if control.box.contains(inside):
                return f"{index}/{control.name}", control
        return None

    def plain(self, start: tuple[int, int] = (0, 0), end: tuple[int, int] | None = None) -> str:
        """The text between two places, or all of it."""
        last = end[0] if end else len(self.blocks) - 1
        parts: list[str] = []
        for index in range(start[0], last + 1):
            text = self.blocks[index].plain()
            first = start[1] if index == start[0] else 0
            stop = end[1] if end and index == last else EVERYTHING[1]
            if text:
                joint = "\n" if self.blocks[index].inside and parts else "\n\n"
                marker = self._marker(index) if not first else ""
                parts += [joint if parts else "", marker, cut(text, first, stop)]
        return "".join(parts)

    def _marker(self, index: int) -> str:
        inside = self.blocks[index].inside
        return f"{inside[-1].marker} " if inside and inside[-1].marker else ""

    def spoken(self) -> str:
        """The text for assistive technology."""
        return "\n".join(text for block in self.blocks if (text := block.spoken()))


def span_in(selection: Selection, index: int) -> Span | None:
    """The part of a block that is selected."""
    (first, start), (last, end) = selection
    if not first <= index <= last:
        return None
    span = (start if index == first else 0, end if index == last else EVERYTHING[1])
    return span if span[1] > span[0] else None


def _own(key: str, index: int) -> str:
    block, _, name = key.partition("/")
    return name if name and block == str(index) else ""
