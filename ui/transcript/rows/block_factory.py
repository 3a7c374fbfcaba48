"""Make blocks from leaves of Markdown: at once, or lazily for the sections of a long text."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from math import inf
from time import perf_counter, thread_time

from ui.transcript.blocks.block import Block, PaintContext, joined_text
from ui.transcript.blocks.image_blocks import RemoteImageBlock
from ui.transcript.blocks.math.formulas import MathCallbacks
from ui.transcript.blocks.math.math_block import MathBlock
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.text_block import BODY, MarkdownTextBlock, RuleBlock
from ui.transcript.markdown.elements import Leaf, TableRow
from ui.transcript.markdown.inline import RemoteImage, parse_image_only
from ui.transcript.markdown.open_blocks import close_open_inline
from ui.transcript.markdown.parser import References
from ui.transcript.markdown.sections import SECTION, Sections, split_in_steps
from ui.transcript.markdown.stream import MarkdownStream, parse_leaves
from ui.transcript.rows.render_context import RenderContext
from ui.transcript.style import RenderStyle

_GAPS = {"paragraph": 11, "heading": 22, "code": 12, "table": 12, "rule": 16, "math": 12}
_NAME_LENGTH = 120
"""Characters of code that distinguish it from the other code of a message."""


class BlockFactory:
    """Makes the blocks of one text. `references` are its link definitions; more may be added."""

    def __init__(self, render_context: RenderContext, item_id: str, color: str = "text", font: str = BODY) -> None:
        self.render_context = render_context
        self.item_id = item_id
        self.references: References = {}
        self._color, self._font = color, font
        arrived = partial(render_context.signals.content_arrived.emit, item_id)
        self._math = MathCallbacks(render_context.formulas.get, arrived)

    def block(self, leaf: Leaf, before: Block | None = None, *, is_open: bool = False) -> Block:
        """Make the block for a leaf that follows the block `before`."""
        block = self._make_block(leaf, before, is_open=is_open)
        if leaf.separator is None:
            is_tight = leaf.tight and leaf.kind == "paragraph"
            block.set_gap(self.render_context.style, 4 if is_tight else _GAPS[leaf.kind])
        block.separator = leaf.separator
        block.containers, block.tight, block.starts = leaf.containers, leaf.tight, leaf.starts
        return block

    def image_of(self, leaf: Leaf) -> RemoteImage | None:
        """Return the image if a finished leaf is nothing else."""
        is_paragraph = leaf.kind == "paragraph" and leaf.separator is None
        return parse_image_only(leaf.text, self.references) if is_paragraph else None

    def _make_block(self, leaf: Leaf, before: Block | None, *, is_open: bool) -> Block:
        match leaf.kind:
            case "code":
                return self._make_code_block(leaf, is_open=is_open)
            case "math":
                return MathBlock(leaf.text, self._math, is_open=is_open)
            case "table":
                columns = before.columns if isinstance(before, TableBlock) and leaf.separator is not None else None
                return TableBlock(leaf, self.references, columns, self._math)
            case "rule":
                return RuleBlock()
            case _:
                image = None if is_open else self.image_of(leaf)
                if image:
                    return RemoteImageBlock(image, self.render_context.remote_image_callbacks(self.item_id))
                return MarkdownTextBlock(leaf, self.references, self._color, self._font, self._math)

    def _make_code_block(self, leaf: Leaf, *, is_open: bool) -> Block:
        def remember(wraps: bool) -> None:  # noqa: FBT001  what the callback carries
            self.render_context.choices.set(self.item_id, _code_name(block.text), wraps)

        callbacks = self.render_context.code_callbacks(self.item_id, _code_name(leaf.text))
        callbacks = replace(callbacks, on_wrap=remember)
        block = self.render_context.code_block(leaf.text, leaf.info, callbacks, self.item_id, is_open=is_open)
        return block


def _code_name(code: str) -> str:
    # Not by number: numbers change while a long text is parsed.
    return f"wrap {code[:_NAME_LENGTH]}"


_CELLS_PER_PIECE = 128
"""Cells of one piece of a table, which is parsed and measured at once."""


def close_last_leaf(tail: tuple[Leaf, ...]) -> tuple[Leaf, ...]:
    """Close the open emphasis, code and links of the last leaf, for display."""
    if not tail:
        return tail
    last = tail[-1]
    if last.kind in {"paragraph", "heading"}:
        closed = close_open_inline(last.text)
        return tail if closed == last.text else (*tail[:-1], replace(last, text=closed))
    if last.kind == "table" and last.cells:
        row = list(last.cells[-1])
        filled = max((index for index, cell in enumerate(row) if cell), default=0)
        row[filled] = close_open_inline(row[filled])
        return (*tail[:-1], replace(last, cells=(*last.cells[:-1], tuple(row))))
    return tail


def split_tables(leaves: Iterable[Leaf]) -> Iterator[Leaf]:
    """Split tables into pieces of a few rows; only the first piece has the head and no separator."""
    for leaf in leaves:
        count = max(1, _CELLS_PER_PIECE // max(1, len(leaf.aligns)))
        if leaf.kind != "table" or len(leaf.cells) <= count:
            yield leaf
            continue
        yield replace(leaf, cells=leaf.cells[:count])
        containers = tuple(replace(container, marker="") for container in leaf.containers)
        rest = replace(leaf, containers=containers, separator="\n", starts=False)
        for start in range(count, len(leaf.cells), count):
            yield replace(rest, cells=leaf.cells[start : start + count])


def grow_table(pieces: list[Leaf], rows: tuple[TableRow, ...], replaced: int) -> tuple[int, list[Leaf]]:
    """Replace the last rows of the table at the end of these leaves.

    Return the index from which the leaves differ, and the leaves from there on. Costs only what is new.
    """
    first = len(pieces) - 1
    cells = pieces[first].cells
    while len(cells) < replaced and pieces[first].separator is not None:
        first -= 1
        cells = pieces[first].cells + cells
    cells = (*cells[: len(cells) - replaced], *rows)
    (whole,) = close_last_leaf((replace(pieces[first], cells=cells),))
    return first, list(split_tables((whole,))) if whole.cells else []


_READ_STEP = 1000
"""Characters that are parsed between two checks of the clock."""

_SHORT_SECTION = SECTION + SECTION // 2
"""Characters of a section that is parsed as a whole: in steps it would take longer altogether."""

_READ_AT_ONCE, _READ_IN_TIME = 14_000, 4_000
"""Characters of blocks that are made at once without and with a time limit."""

MAX_SPOKEN = 20_000
"""Characters of a row that assistive technology gets; more would stall the bus."""

ReplaceBlock = Callable[[Block, list[Block]], None]
"""Replaces a block by several."""


class LazySection(Block):
    """A section of Markdown that is parsed when it comes near the viewport; it stays below the blocks made so far."""

    def __init__(self, text: str, factory: BlockFactory, replace: ReplaceBlock) -> None:
        self._text = text
        self._factory = factory
        self._replace = replace
        self._stream: MarkdownStream | None = None
        self._at = 0
        self._leaves: deque[Leaf] = deque()
        self._block_count = 0
        self._last: Block | None = None

    @property
    def _is_read(self) -> bool:
        return self._at >= len(self._text)

    def estimate(self, width: int, style: RenderStyle) -> int:
        """Estimate the height as if the rest were ordinary text."""
        leaf_length = self._at / (self._block_count + len(self._leaves)) if self._leaves else 0
        size = len(self._text) - self._at + leaf_length * len(self._leaves)
        breaks = 0.7 * self._text.count("\n") * size / max(1, len(self._text))
        return int((size * style.advance / max(40, width) + breaks) * style.line)

    def layout(self, width: int, style: RenderStyle) -> int:
        """Return the estimate: a lazy section is never visible."""
        return self.estimate(width, style)

    def paint(self, context: PaintContext) -> None:
        """Paint nothing."""

    def read(self, until: float) -> None:
        """Parse until the deadline, and put the blocks before this section, or in its place when all is parsed."""
        # Some open blocks are read again from their beginning at every step.
        step, room = (_READ_IN_TIME, _READ_AT_ONCE) if until == inf else (_READ_STEP, _READ_IN_TIME)
        while not self._is_read and len(self._leaves) < 2:
            self._read_step(step)
            step = step * 2 if until == inf else step
            if perf_counter() > until:
                break
        blocks: list[Block] = []
        # Keep the last leaf until all is parsed: its separator becomes that of this section.
        while len(self._leaves) > (not self._is_read) and room > 0:
            leaf = self._leaves.popleft()
            room -= len(leaf.text) + 50 + sum(len(cell) + 10 for row in leaf.cells for cell in row)
            self._last = self._factory.block(leaf, self._last)
            blocks.append(self._last)
        self._block_count += len(blocks)
        if blocks and self.gap:
            blocks[0].take_gap(self)
        if self._leaves or not self._is_read:
            if not blocks:
                return
            self.separator = self._leaves[0].separator
            blocks.append(self)
        self._replace(self, blocks)

    def _read_step(self, step: int) -> None:
        if self._stream is None and len(self._text) <= _SHORT_SECTION:
            self._add_leaves(parse_leaves(self._text, self._factory.references)[0])
            self._at = len(self._text)
            return
        self._stream = self._stream or MarkdownStream(self._factory.references)
        end = self._at + step
        self._add_leaves(self._stream.append(self._text[self._at : end]).closed)
        if end >= len(self._text):
            self._add_leaves(self._stream.finish().closed)
        self._at = end

    def _add_leaves(self, leaves: Iterable[Leaf]) -> None:
        self._leaves.extend(split_tables(leaves))

    def blocks(self) -> list[Block]:
        """Return the blocks that will replace this section, for their text only."""
        if not self._at:
            leaves = split_tables(parse_leaves(self._text, self._factory.references)[0])
            return [self._factory.block(leaf) for leaf in islice(leaves, self._block_count, None)]
        while not self._is_read:
            self._read_step(_READ_AT_ONCE)
        return [self._factory.block(leaf) for leaf in self._leaves]

    def iter_blocks(self) -> Iterator[Block | None]:
        """Yield the same blocks one by one, and None whenever parsing took a while."""
        if self._is_read or len(self._text) <= _SHORT_SECTION:
            yield from self.blocks()
            return
        to_skip = self._block_count
        for leaf in self._leaves_in_steps():
            if leaf is None:
                yield None
            elif to_skip:
                to_skip -= 1
            else:
                yield self._factory.block(leaf)

    def _leaves_in_steps(self) -> Iterator[Leaf | None]:
        """Parse from the beginning: leaves that already became blocks are needed for what follows them."""
        stream = MarkdownStream(self._factory.references)
        for start in range(0, len(self._text), _READ_STEP):
            closed = stream.append(self._text[start : start + _READ_STEP]).closed
            yield None
            yield from split_tables(closed)
        yield from split_tables(stream.finish().closed)

    def detached(self) -> list[Block]:
        """Return the same blocks, lazily, and independent of what later happens to this section."""
        if self._is_read:
            return self.blocks()
        rest = LazySection(self._text, self._factory, self._replace)
        rest.separator, rest.gap, rest._block_count = self.separator, self.gap, self._block_count
        return [rest]

    def contains_text(self, words: str) -> bool:
        """Return whether the source contains these words."""
        return words in self._text

    def plain(self) -> str:
        """Return the whole text, parsed for that."""
        return joined_text(self.blocks())

    def spoken_text(self) -> str:
        """Return the beginning of the text."""
        if len(self._text) <= MAX_SPOKEN:
            return self.plain()
        beginning = self._text[self._at : self._at + MAX_SPOKEN]
        return joined_text(LazySection(beginning, self._factory, self._replace).blocks())


_FIRST_SLICE = 0.010
"""Seconds of processor time spent on splitting a text when it is first shown: enough for an ordinary one."""

_MIN_SLICE = 0.0005
"""Seconds of splitting between two frames."""


class SplittingSection(LazySection):
    """A long text that is still being split; replaced by its sections when that is done."""

    def __init__(self, text: str, factory: BlockFactory, replace: ReplaceBlock) -> None:
        super().__init__(text, factory, replace)
        self._splitting = self._steps(split_in_steps(text))
        self._split: Sections | None = None

    def start_splitting(self) -> None:
        """Split for a moment, which is enough for an ordinary text."""
        self._split_until(thread_time, thread_time() + _FIRST_SLICE)

    def read(self, until: float) -> None:
        """Go on splitting until the deadline; at the end, replace this block by the sections."""
        self._split_until(perf_counter, max(until, perf_counter() + _MIN_SLICE))

    def _split_until(self, clock: Callable[[], float], until: float) -> None:
        for _ in self._splitting:
            if clock() > until:
                return
        self._replace(self, self._sections())

    def _steps(self, cutting: Generator[None, None, Sections]) -> Iterator[None]:
        self._split = yield from cutting
        self._factory.references = self._split[1]

    def _sections(self) -> list[Block]:
        parts = self._split[0] if self._split else []
        return [LazySection(self._text[start:end], self._factory, self._replace) for start, end in parts]

    def iter_blocks(self) -> Iterator[Block | None]:
        for _ in self._splitting:
            yield None
        for section in self._sections():
            if isinstance(section, LazySection):
                yield from section.iter_blocks()
                yield None

    def blocks(self) -> list[Block]:
        return [block for block in self.iter_blocks() if block]

    def detached(self) -> list[Block]:
        """Return a section of the same text."""
        return [SplittingSection(self._text, self._factory, self._replace)]
