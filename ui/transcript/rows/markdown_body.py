"""The part of a row that shows Markdown: leaves in, blocks out, what is closed is never touched again."""

from collections.abc import Sequence

from ui.transcript.blocks.block import Block
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.blocks.code.host import CodeHost
from ui.transcript.blocks.math.math_block import MathBlock
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.text_block import BODY, LeafText
from ui.transcript.markdown.leaves import Leaf
from ui.transcript.markdown.leaves import Row as Cells
from ui.transcript.markdown.sections import definitions_of, sections
from ui.transcript.markdown.stream import MarkdownStream, Step, leaves_of, normal
from ui.transcript.rows.body.making import Maker
from ui.transcript.rows.body.shown import grown, in_pieces, presentable
from ui.transcript.rows.body.uncut import UncutBlock
from ui.transcript.rows.body.unread import UnreadBlock
from ui.transcript.rows.row import Row

LONG = 20_000
"""Characters. A text that is longer when it is first shown is read section by section, when somebody comes near."""


class MarkdownBody:
    """Stands in a row from its block `first` on."""

    def __init__(self, row: Row, first: int = 0, color: str = "text", font: str = BODY) -> None:
        self._row = row
        self._begin = self._first = first
        self._maker = Maker(row.stage, row.item.id, color, font)
        self._stream: MarkdownStream | None = None
        self._leaves: list[Leaf] = []
        self._tail: tuple[Leaf, ...] | None = None
        self._closed = 0
        self._taken = 0
        self._done = False

    @property
    def closed(self) -> int:
        """Up to which block nothing changes any more."""
        return self._first + self._closed

    def show(self, text: str, *, finished: bool) -> int:
        """Show this text, of which a beginning may be shown already; answers the first block that changed."""
        if self._done:
            return len(self._row.blocks)
        self._done = finished
        if not self._taken and len(text) > LONG:
            return self._show_long(text, finished=finished)
        if finished and not self._taken:
            leaves, self._maker.references = leaves_of(text)
            return self._take(Step(leaves))
        stream = self._stream = self._stream or MarkdownStream()
        self._maker.references = stream.references
        changed = len(self._row.blocks)
        if len(text) > self._taken:
            piece, self._taken = text[self._taken :], len(text)
            changed = self._take(stream.append(piece))
        if finished:
            changed = min(changed, self._take(stream.finish()))
            self._stream = None
        return changed

    def _show_long(self, text: str, *, finished: bool) -> int:
        """Sections that are read later, and after them, while the text grows, what is read now."""
        self._taken = len(text)
        if finished:
            uncut = UncutBlock(normal(text), self._maker, self._place)
            self._row.put(self._first, uncut)
            uncut.begin()
            return self._begin
        lines = text[: text.rfind("\n") + 1]
        whole = normal(lines)
        parts = sections(whole)
        rest = whole[parts.pop()[0] :] + text[len(lines) :] if parts else text
        references = self._maker.references = definitions_of(whole, parts)
        for start, end in parts:
            self._row.put(self._first, UnreadBlock(whole[start:end], self._maker, self._place))
            self._first += 1
        self._stream = MarkdownStream()
        self._stream.references = references
        self._take(self._stream.append(rest))
        return self._begin

    def _place(self, block: Block, blocks: list[Block]) -> None:
        self._row.replace(self._row.blocks.index(block), blocks)
        self._first += len(blocks) - 1

    def _take(self, step: Step) -> int:
        row = self._row
        if step.grown is not None:
            block = row.blocks[-1]
            if isinstance(block, CodeBlock | MathBlock) and step.grown:
                block.grow(step.grown)
                block.layouts = 0
            return len(row.blocks) - 1
        if step.rows is not None:
            return self._grow_table(step.rows, step.replaced)
        if step.tail is self._tail and not (step.closed or step.definitions):
            # A very long open block that was not read again.
            return len(row.blocks)
        self._tail = step.tail
        closed = tuple(in_pieces(step.closed))
        leaves = (*closed, *in_pieces(presentable(step.tail)))
        changed = self._show_from(self._closed, leaves, closed=len(closed))
        self._closed += len(closed)
        return min(changed, self._redefine()) if step.definitions else changed

    def _show_from(self, start: int, leaves: Sequence[Leaf], *, closed: int = 0) -> int:
        """Let these leaves stand at an index, and nothing behind them; answers the first block that changed."""
        row, end = self._row, start + len(leaves)
        changed = len(row.blocks)
        for index, leaf in enumerate(leaves, start):
            if self._set(index, leaf, is_open=index >= start + closed):
                changed = min(changed, self._first + index)
        row.truncate(self._first + end)
        del self._leaves[end:]
        last = row.blocks[-1] if row.blocks else None
        if isinstance(last, TableBlock):
            last.columns.cut(last.number + 1)
        return self._unlaid(min(changed, self._first + end))

    def _unlaid(self, changed: int) -> int:
        """The first piece of a table whose columns the block at this index changed, or that block."""
        blocks = self._row.blocks
        while 0 < changed < len(blocks) and isinstance(blocks[changed], TableBlock) and _goes_on(blocks, changed):
            changed -= 1
        return changed

    def _grow_table(self, rows: tuple[Cells, ...], replaced: int) -> int:
        if not rows and not replaced:
            return len(self._row.blocks)
        start, leaves = grown(self._leaves, rows, replaced)
        return self._show_from(start, leaves)

    def _set(self, index: int, leaf: Leaf, *, is_open: bool) -> bool:
        """Make the leaf at this index be seen; answers whether that changed anything."""
        at = self._first + index
        if index < len(self._leaves):
            old, self._leaves[index] = self._leaves[index], leaf
            block = self._row.blocks[at]
            block.tight, block.starts = leaf.tight, leaf.starts
            if isinstance(block, CodeBlock | MathBlock):
                if leaf.kind == old.kind and (old.info, old.inside) == (leaf.info, leaf.inside):
                    return _change_code(block, leaf, is_open=is_open)
            elif old == leaf:
                # What was text while it grew may turn out to be a picture at its end, as it is when it is opened again.
                if is_open or not isinstance(block, LeafText) or self._maker.image_of(leaf) is None:
                    return False
            elif _same_but_text(old, leaf) and isinstance(block, LeafText | TableBlock):
                block.become(leaf)
                block.layouts = 0
                if isinstance(block, TableBlock):
                    self._row.guess(at)
                return True
        else:
            self._leaves.append(leaf)
        before = self._row.blocks[at - 1] if index else None
        self._row.put(at, self._maker.block(leaf, before, is_open=is_open))
        return True

    def _redefine(self) -> int:
        """A definition arrived: read again what may use it."""
        row, changed = self._row, len(self._row.blocks)
        for index in range(len(row.blocks) - 1, self._begin - 1, -1):
            block = row.blocks[index]
            if isinstance(block, LeafText | TableBlock) and block.redefine():
                block.layouts = 0
                changed = index
        return changed


def code_host(row: Row, key: str) -> CodeHost:
    """What a code block of a row talks to; whether its lines wrap is remembered under the key."""
    return row.stage.code_host(row.item.id, key)


def _goes_on(blocks: Sequence[Block], index: int) -> bool:
    """Whether a piece of a table stands below one that must be laid out again."""
    return blocks[index].joint is not None and not blocks[index - 1].laid


def _same_but_text(old: Leaf, new: Leaf) -> bool:
    return (old.kind, old.level, old.inside, old.tight, old.aligns, old.joint) == (
        new.kind,
        new.level,
        new.inside,
        new.tight,
        new.aligns,
        new.joint,
    ) and not new.text.startswith(("![", "[!["))


def _change_code(block: CodeBlock | MathBlock, leaf: Leaf, *, is_open: bool) -> bool:
    text = block.text
    if not is_open:
        was_open = block.is_open
        if was_open or text != leaf.text:
            block.close(leaf.text)
            block.layouts = 0
        return was_open
    if leaf.text.startswith(text) and len(leaf.text) > len(text):
        block.grow(leaf.text[len(text) :])
        block.layouts = 0
        return True
    if leaf.text != text:
        block.close(leaf.text)
        block.is_open = True
        block.layouts = 0
        return True
    return False
