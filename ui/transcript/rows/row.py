"""A row: one item, as blocks inside a frame."""

from collections.abc import Iterator, Sequence

from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QPainter

from desktop_agent.conversation.items import Item
from ui.transcript.blocks.block import EVERYTHING, Action, Block, Brush, Control, Span
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.blocks.diagram.diagram_block import DiagramBlock
from ui.transcript.blocks.indent import paint_inside
from ui.transcript.blocks.math.math_block import MathBlock
from ui.transcript.blocks.picture.remote_block import RemoteBlock
from ui.transcript.blocks.rule import RuleBlock
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.text_block import LeafText
from ui.transcript.copying.forms import forms_of
from ui.transcript.copying.passage import Extract
from ui.transcript.look import Look
from ui.transcript.markdown.inline import cut
from ui.transcript.markdown.leaves import Leaf, LeafKind
from ui.transcript.rows.body.extracts import extracts
from ui.transcript.rows.body.joining import joint_of, marker_of
from ui.transcript.rows.body.making import Maker
from ui.transcript.rows.body.unread import UnreadBlock
from ui.transcript.rows.stack import Stack
from ui.transcript.rows.stage import Stage

_OVERHANG = 5
SPOKEN = 20_000
"""Characters of a row that are told; more would stall the bus."""

Selection = tuple[tuple[int, int], tuple[int, int]]
"""From (block, offset) to (block, offset) inside one row."""


class Row(Stack):
    """The base of all rows."""

    in_copies = True
    """Whether its text belongs to a copy that reaches over several rows."""

    above: int
    below: int

    def __init__(self, item: Item, stage: Stage) -> None:
        super().__init__(stage.look)
        self.item = item
        self.stage = stage
        # Of what is no Markdown, for a look in which 1000 pixels are one.
        self._plain_gaps: dict[Block, float] = {}

    @property
    def label(self) -> str:
        """The accessible name."""
        raise NotImplementedError

    @property
    def is_open(self) -> bool:
        """Whether its text still grows: such a row is never given up."""
        return False

    def build(self) -> None:
        """Make the blocks from the item."""
        raise NotImplementedError

    def refresh(self, what: str) -> int:
        """The item changed; answers the y from which the row looks different."""
        del what
        self.truncate(0)
        self.build()
        return 0

    def restyle(self, width: int) -> None:
        """The stage has another look: blocks keep their numbers and what was read, and are laid out when seen."""
        look, before = self.stage.look, self.look
        frame = type(self)(self.item, self.stage)
        self.above, self.below = frame.above, frame.below
        gaps = _Gaps(self.stage, before.px(1000), self._plain_gaps)
        for block in self.blocks[slice(*self._laid)]:
            block.forget()
        for block in self.blocks:
            block.layouts = 0
            block.gap = gaps.of(block)
        share = look.line * look.advance * self.width / (before.line * before.advance * width)
        self.heights.replace(0, len(self.blocks), [round(self.heights[at] * share) for at in range(len(self.blocks))])
        self.look, self.width, self._laid = look, width, (0, 0)
        self.refresh("text")

    def source(self) -> str:
        """The text as Markdown."""
        return self.plain()

    def paint(
        self, painter: QPainter, clip: QRect, selection: Selection | None, hovered: str = "", focused: str = ""
    ) -> None:
        """What lies in the clip. The painter stands at the row's top left."""
        look = self.stage.look
        self.paint_frame(painter, look)
        # Glyphs reach a little out of their lines.
        clip = clip.adjusted(0, -_OVERHANG, 0, _OVERHANG)
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

    def actions(self) -> Sequence[Action]:
        """What the menu about this message offers, beside copying it."""
        return ()

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
        parts: list[str] = []
        before = self.blocks[start[0] - 1] if 0 < start[0] <= len(self.blocks) else None
        for index in range(start[0], (end[0] if end else len(self.blocks) - 1) + 1):
            first = start[1] if index == start[0] else 0
            stop = end[1] if end and index == end[0] else EVERYTHING[1]
            for block in self.read_at(index) if (first, stop) == EVERYTHING else self.blocks[index : index + 1]:
                if text := block.plain():
                    joint = joint_of(block, before) if before and parts else ""
                    parts += [joint, marker_of(block) if not first else "", cut(text, first, stop)]
                before = block
        return "".join(parts)

    def extracts(self, start: tuple[int, int] = (0, 0), end: tuple[int, int] | None = None) -> Iterator[Extract]:
        """What is copied between two places, block by block."""
        return extracts(self.blocks, start, end)

    def markdown(self, start: tuple[int, int] = (0, 0), end: tuple[int, int] | None = None) -> str:
        """The text between two places as Markdown, in its lists and quotes."""
        return forms_of(self.extracts(start, end)).markdown

    def html(self, start: tuple[int, int] = (0, 0), end: tuple[int, int] | None = None) -> str:
        """The same as HTML."""
        return forms_of(self.extracts(start, end)).html

    def read_at(self, index: int) -> Sequence[Block]:
        """The block at an index, or what will stand in its place when it is read; for the sake of the text alone."""
        block = self.blocks[index]
        return block.blocks() if isinstance(block, UnreadBlock) else (block,)

    def whole(self, index: int) -> tuple[int, int]:
        """The first and the last block of the paragraph that a block is a piece of; a table has no paragraphs."""
        if isinstance(self.blocks[index], TableBlock):
            return index, index
        return self.pieces(index)

    def pieces(self, index: int) -> tuple[int, int]:
        """The first and the last block of the paragraph, or of the table, that a block is a piece of."""
        first = last = index
        while self.blocks[first].joint is not None:
            first -= 1
        while last + 1 < len(self.blocks) and self.blocks[last + 1].joint is not None:
            last += 1
        return first, last

    def spoken(self) -> str:
        """The text for assistive technology: its beginning, when there is very much of it."""
        parts: list[str] = []
        room = SPOKEN
        for block in self.blocks:
            if text := block.spoken():
                parts.append(text)
                room -= len(text) + 1
            if room <= 0:
                break
        return "\n".join(parts)


class _Gaps:
    """Above blocks that a row keeps in another look: as above blocks of Markdown that are made in it."""

    def __init__(self, stage: Stage, before: int, plain: dict[Block, float]) -> None:
        self._maker = Maker(stage, "")
        self._before, self._now = before, stage.look.px(1000)
        self._plain = plain
        self._known: dict[tuple[LeafKind, bool], int] = {}

    def of(self, block: Block) -> int:
        """Pixels."""
        if block.joint is not None:
            return block.gap
        kind = block.leaf.kind if isinstance(block, LeafText) else _KINDS.get(type(block))
        if kind is None:
            # Not from what was rounded before: there and back again is the same.
            return round(self._plain.setdefault(block, block.gap / self._before) * self._now)
        known = self._known.get((kind, block.tight))
        if known is None:
            known = self._known[kind, block.tight] = self._maker.block(Leaf(kind, tight=block.tight)).gap
        return known


_KINDS: dict[type[Block], LeafKind] = {
    TableBlock: "table",
    CodeBlock: "code",
    DiagramBlock: "code",
    MathBlock: "math",
    RuleBlock: "rule",
    RemoteBlock: "paragraph",
}


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
