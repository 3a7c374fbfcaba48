"""The part of a row that shows Markdown: leaves in, blocks out; closed blocks are never touched again."""

from collections.abc import Sequence

from ui.transcript.blocks.block import Block
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.blocks.math.math_block import MathBlock
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.text_block import BODY, MarkdownTextBlock
from ui.transcript.markdown.elements import Leaf
from ui.transcript.markdown.elements import TableRow as Cells
from ui.transcript.markdown.sections import definitions_of, split_sections
from ui.transcript.markdown.stream import MarkdownStream, StreamStep, normalize_newlines, parse_leaves
from ui.transcript.rows.block_factory import (
    BlockFactory,
    LazySection,
    SplittingSection,
    close_last_leaf,
    grow_table,
    split_tables,
)
from ui.transcript.rows.row import Row

LONG_TEXT = 20_000
"""Characters. A longer text is split when it is first shown, and its sections are parsed when they come near."""


class MarkdownBody:
    """The Markdown blocks of a row, from its block `first` on."""

    def __init__(self, row: Row, first: int = 0, color: str = "text", font: str = BODY) -> None:
        self._row = row
        self._begin = self._first = first
        self._factory = BlockFactory(row.render_context, row.item.id, color, font)
        self._stream: MarkdownStream | None = None
        self._leaves: list[Leaf] = []
        self._tail: tuple[Leaf, ...] | None = None
        self._closed = 0
        self._shown_length = 0
        self._is_finished = False

    @property
    def closed(self) -> int:
        """The index before which blocks are final."""
        return self._first + self._closed

    def show(self, text: str, *, finished: bool) -> int:
        """Show this text, of which a beginning may be shown already; return the index of the first changed block."""
        if self._is_finished:
            return len(self._row.blocks)
        self._is_finished = finished
        if not self._shown_length and len(text) > LONG_TEXT:
            return self._show_long(text, finished=finished)
        if finished and not self._shown_length:
            leaves, self._factory.references = parse_leaves(text)
            return self._apply_step(StreamStep(leaves))
        stream = self._stream = self._stream or MarkdownStream()
        self._factory.references = stream.references
        changed = len(self._row.blocks)
        if len(text) > self._shown_length:
            piece, self._shown_length = text[self._shown_length :], len(text)
            changed = self._apply_step(stream.append(piece))
        if finished:
            changed = min(changed, self._apply_step(stream.finish()))
            self._stream = None
        return changed

    def _show_long(self, text: str, *, finished: bool) -> int:
        """Add lazy sections, and below them, while the text grows, the blocks of the last section."""
        self._shown_length = len(text)
        if finished:
            section = SplittingSection(normalize_newlines(text), self._factory, self._replace_block)
            self._row.stack.set_block(self._first, section)
            section.start_splitting()
            return self._begin
        lines = text[: text.rfind("\n") + 1]
        whole = normalize_newlines(lines)
        parts = split_sections(whole)
        rest = whole[parts.pop()[0] :] + text[len(lines) :] if parts else text
        references = self._factory.references = definitions_of(whole, parts)
        for start, end in parts:
            self._row.stack.set_block(self._first, LazySection(whole[start:end], self._factory, self._replace_block))
            self._first += 1
        self._stream = MarkdownStream(references)
        self._apply_step(self._stream.append(rest))
        return self._begin

    def _replace_block(self, block: Block, blocks: list[Block]) -> None:
        self._row.stack.replace(self._row.blocks.index(block), blocks)
        self._first += len(blocks) - 1

    def _apply_step(self, step: StreamStep) -> int:
        row = self._row
        if step.grown is not None:
            block = row.blocks[-1]
            if isinstance(block, CodeBlock | MathBlock) and step.grown:
                block.append(step.grown)
            return len(row.blocks) - 1
        if step.rows is not None:
            return self._grow_table(step.rows, step.replaced)
        if step.tail is self._tail and not (step.closed or step.definitions):
            # A very long open block was not parsed again.
            return len(row.blocks)
        self._tail = step.tail
        closed = tuple(split_tables(step.closed))
        leaves = (*closed, *split_tables(close_last_leaf(step.tail)))
        changed = self._show_from(self._closed, leaves, closed=len(closed))
        self._closed += len(closed)
        return min(changed, self._refresh_references()) if step.definitions else changed

    def _show_from(self, start: int, leaves: Sequence[Leaf], *, closed: int = 0) -> int:
        """Show these leaves from an index on, and nothing below; return the first changed block."""
        row, end = self._row, start + len(leaves)
        changed = len(row.blocks)
        for index, leaf in enumerate(leaves, start):
            if self._set(index, leaf, is_open=index >= start + closed):
                changed = min(changed, self._first + index)
        row.stack.truncate(self._first + end)
        del self._leaves[end:]
        last = row.blocks[-1] if row.blocks else None
        if isinstance(last, TableBlock):
            last.columns.truncate(last.number + 1)
        return self._first_changed_piece(min(changed, self._first + end))

    def _first_changed_piece(self, changed: int) -> int:
        """Return the first piece of a table whose columns the block at this index changed, or that block."""
        blocks = self._row.blocks
        while 0 < changed < len(blocks) and _continues_table(blocks, changed):
            changed -= 1
        return changed

    def _grow_table(self, rows: tuple[Cells, ...], replaced: int) -> int:
        if not rows and not replaced:
            return len(self._row.blocks)
        start, leaves = grow_table(self._leaves, rows, replaced)
        return self._show_from(start, leaves)

    def _set(self, index: int, leaf: Leaf, *, is_open: bool) -> bool:
        """Show the leaf at this index; return whether anything changed."""
        block_index = self._first + index
        if index < len(self._leaves):
            old, self._leaves[index] = self._leaves[index], leaf
            block = self._row.blocks[block_index]
            block.tight, block.starts = leaf.tight, leaf.starts
            if isinstance(block, CodeBlock | MathBlock):
                if leaf.kind == old.kind and (old.info, old.containers) == (leaf.info, leaf.containers):
                    return _change_code(block, leaf, is_open=is_open)
            elif old == leaf:
                # A growing text may turn out to be an image when it is finished, as it will when it is opened again.
                if is_open or not isinstance(block, MarkdownTextBlock) or self._factory.image_of(leaf) is None:
                    return False
            elif _differs_in_text_only(old, leaf) and isinstance(block, MarkdownTextBlock | TableBlock):
                block.set_leaf(leaf)
                if isinstance(block, TableBlock):
                    self._row.stack.estimate_block(block_index)
                return True
        else:
            self._leaves.append(leaf)
        before = self._row.blocks[block_index - 1] if index else None
        self._row.stack.set_block(block_index, self._factory.block(leaf, before, is_open=is_open))
        return True

    def _refresh_references(self) -> int:
        """Parse again the blocks that may use a new link definition."""
        row, changed = self._row, len(self._row.blocks)
        for index in range(len(row.blocks) - 1, self._begin - 1, -1):
            block = row.blocks[index]
            if isinstance(block, MarkdownTextBlock | TableBlock) and block.refresh_references():
                changed = index
        return changed


def _continues_table(blocks: Sequence[Block], index: int) -> bool:
    """Return whether the block is a piece of a table below one that must be laid out again."""
    block = blocks[index]
    return isinstance(block, TableBlock) and block.separator is not None and not blocks[index - 1].is_laid_out


def _differs_in_text_only(old: Leaf, new: Leaf) -> bool:
    return (old.kind, old.level, old.containers, old.tight, old.aligns, old.separator) == (
        new.kind,
        new.level,
        new.containers,
        new.tight,
        new.aligns,
        new.separator,
    ) and not new.text.startswith(("![", "[!["))


def _change_code(block: CodeBlock | MathBlock, leaf: Leaf, *, is_open: bool) -> bool:
    text = block.text
    if not is_open:
        was_open = block.is_open
        if was_open or text != leaf.text:
            block.finish(leaf.text)
        return was_open
    if leaf.text.startswith(text) and len(leaf.text) > len(text):
        block.append(leaf.text[len(text) :])
        return True
    if leaf.text != text:
        block.finish(leaf.text)
        block.is_open = True
        return True
    return False
