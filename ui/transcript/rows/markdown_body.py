"""The part of a row that shows Markdown: leaves in, blocks out, what is closed is never touched again."""

from dataclasses import replace
from functools import partial

from ui.transcript.blocks.block import Block
from ui.transcript.blocks.code.code_block import CodeBlock, CodeHost
from ui.transcript.blocks.image_placeholder import ImagePlaceholder
from ui.transcript.blocks.math.formulas import MathHost
from ui.transcript.blocks.math.math_block import MathBlock
from ui.transcript.blocks.rule import RuleBlock
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.text_block import BODY, LeafText
from ui.transcript.markdown.inline import only_image
from ui.transcript.markdown.leaves import Leaf
from ui.transcript.markdown.leaves import Row as Cells
from ui.transcript.markdown.parser import References
from ui.transcript.markdown.stream import MarkdownStream, Step, leaves_of
from ui.transcript.markdown.unfinished import closed_inline
from ui.transcript.rows.row import Row

_GAPS = {"paragraph": 11, "heading": 22, "code": 12, "table": 12, "rule": 16, "math": 12}


class MarkdownBody:
    """Stands in a row from its block `first` on."""

    def __init__(self, row: Row, first: int = 0, color: str = "text", font: str = BODY) -> None:
        self._row = row
        self._first = first
        self._color, self._font = color, font
        self._math = math_host(row)
        self._stream: MarkdownStream | None = None
        self._leaves: list[Leaf] = []
        self._closed = 0
        self._taken = 0
        self._done = False
        self._references: References = {}

    @property
    def closed(self) -> int:
        """Up to which block nothing changes any more."""
        return self._first + self._closed

    def show(self, text: str, *, finished: bool) -> int:
        """Show this text, of which a beginning may be shown already; answers the first block that changed."""
        if self._done:
            return len(self._row.blocks)
        self._done = finished
        if finished and not self._taken:
            leaves, self._references = leaves_of(text)
            return self._take(Step(leaves))
        stream = self._stream = self._stream or MarkdownStream()
        self._references = stream.references
        changed = len(self._row.blocks)
        if len(text) > self._taken:
            piece, self._taken = text[self._taken :], len(text)
            changed = self._take(stream.append(piece))
        if finished:
            changed = min(changed, self._take(stream.finish()))
            self._stream = None
        return changed

    def _take(self, step: Step) -> int:
        row = self._row
        if step.grown is not None:
            block = row.blocks[-1]
            if isinstance(block, CodeBlock | MathBlock) and step.grown:
                block.grow(step.grown)
            return len(row.blocks) - 1
        if step.rows is not None:
            return self._grow_table(step.rows, step.replaced)
        leaves = (*step.closed, *_presentable(step.tail))
        start = self._closed
        changed = self._first + start + len(leaves)
        for index, leaf in enumerate(leaves, start):
            is_open = index - start >= len(step.closed)
            if self._set(index, leaf, is_open=is_open):
                changed = min(changed, self._first + index)
        row.truncate(self._first + start + len(leaves))
        del self._leaves[start + len(leaves) :]
        self._closed += len(step.closed)
        return min(changed, self._redefine()) if step.definitions else changed

    def _grow_table(self, rows: tuple[Cells, ...], replaced: int) -> int:
        if not rows and not replaced:
            return len(self._row.blocks)
        index = len(self._leaves) - 1
        shown = self._leaves[index]
        (leaf,) = _presentable((replace(shown, cells=(*shown.cells[: len(shown.cells) - replaced], *rows)),))
        self._set(index, leaf, is_open=True)
        return self._first + index

    def _set(self, index: int, leaf: Leaf, *, is_open: bool) -> bool:
        """Make the leaf at this index be seen; answers whether that changed anything."""
        at = self._first + index
        if index < len(self._leaves):
            old, self._leaves[index] = self._leaves[index], leaf
            block = self._row.blocks[at]
            if isinstance(block, CodeBlock | MathBlock):
                if leaf.kind == old.kind and (old.info, old.inside) == (leaf.info, leaf.inside):
                    return _change_code(block, leaf, is_open=is_open)
            elif old == leaf:
                return False
            elif _same_but_text(old, leaf) and isinstance(block, LeafText | TableBlock):
                block.become(leaf)
                return True
        else:
            self._leaves.append(leaf)
        self._row.put(at, self._make(index, leaf, is_open=is_open))
        return True

    def _make(self, index: int, leaf: Leaf, *, is_open: bool) -> Block:
        block = self._make_kind(index, leaf, is_open=is_open)
        px = self._row.stage.look.px
        tight = leaf.tight and leaf.kind == "paragraph"
        block.gap = px(4 if tight else _GAPS[leaf.kind]) if leaf.joint is None else 0
        block.joint = leaf.joint
        block.inside = leaf.inside
        return block

    def _make_kind(self, index: int, leaf: Leaf, *, is_open: bool) -> Block:
        match leaf.kind:
            case "code":
                return self._make_code(index, leaf, is_open=is_open)
            case "math":
                return MathBlock(leaf.text, self._math, is_open=is_open)
            case "table":
                return TableBlock(leaf, self._references)
            case "rule":
                return RuleBlock()
            case _:
                image = only_image(leaf.text, self._references) if _may_be_image(leaf) and not is_open else None
                if image:
                    return ImagePlaceholder(image)
                return LeafText(leaf, self._references, self._color, self._font, self._math)

    def _make_code(self, index: int, leaf: Leaf, *, is_open: bool) -> Block:
        return CodeBlock(leaf.text, leaf.info, code_host(self._row, f"wrap {index}"), is_open=is_open)

    def _redefine(self) -> int:
        """A link definition arrived: read again what may use it."""
        row, changed = self._row, len(self._row.blocks)
        for index in range(len(row.blocks) - 1, self._first - 1, -1):
            block = row.blocks[index]
            if isinstance(block, LeafText | TableBlock) and block.redefine():
                changed = index
        return changed


def code_host(row: Row, key: str) -> CodeHost:
    """What a code block of a row talks to; whether its lines wrap is remembered under the key."""
    stage, item_id = row.stage, row.item.id

    def remember(wraps: bool) -> None:  # noqa: FBT001  what the callback carries
        stage.choices.set(item_id, key, value=wraps)

    return CodeHost(
        stage.facts.code_copied.emit,
        partial(stage.facts.changed.emit, item_id),
        stage.highlighter.colour,
        stage.choices.get(item_id, key, default=False),
        remember,
    )


def math_host(row: Row) -> MathHost | None:
    """What a block with formulas talks to."""
    formulas = row.stage.formulas
    return MathHost(formulas.get, partial(row.stage.facts.arrived.emit, row.item.id)) if formulas else None


def _may_be_image(leaf: Leaf) -> bool:
    return leaf.kind == "paragraph" and leaf.joint is None


def _same_but_text(old: Leaf, new: Leaf) -> bool:
    return (old.kind, old.level, old.inside, old.tight, old.aligns, old.joint) == (
        new.kind,
        new.level,
        new.inside,
        new.tight,
        new.aligns,
        new.joint,
    ) and not new.text.startswith("![")


def _change_code(block: CodeBlock | MathBlock, leaf: Leaf, *, is_open: bool) -> bool:
    text = block.text
    if not is_open:
        was_open = block.is_open
        if was_open or text != leaf.text:
            block.close(leaf.text)
        return was_open
    if leaf.text.startswith(text) and len(leaf.text) > len(text):
        block.grow(leaf.text[len(text) :])
        return True
    if leaf.text != text:
        block.close(leaf.text)
        block.is_open = True
        return True
    return False


def _presentable(tail: tuple[Leaf, ...]) -> tuple[Leaf, ...]:
    """The last leaf with its open emphasis, code and links shown as if they were closed."""
    if not tail:
        return tail
    last = tail[-1]
    if last.kind in {"paragraph", "heading"}:
        closed = closed_inline(last.text)
        return tail if closed == last.text else (*tail[:-1], replace(last, text=closed))
    if last.kind == "table" and last.cells:
        row = list(last.cells[-1])
        filled = max((index for index, cell in enumerate(row) if cell), default=0)
        row[filled] = closed_inline(row[filled])
        return (*tail[:-1], replace(last, cells=(*last.cells[:-1], tuple(row))))
    return tail
