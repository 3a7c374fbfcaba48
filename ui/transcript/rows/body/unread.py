"""A section of a long text that nobody has come near yet."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from math import inf
from time import perf_counter

from ui.transcript.blocks.block import Block, PaintContext
from ui.transcript.look import RenderStyle
from ui.transcript.markdown.leaves import Leaf
from ui.transcript.markdown.parser import parse_blocks
from ui.transcript.markdown.sections import SECTION
from ui.transcript.markdown.stream import MarkdownStream
from ui.transcript.rows.body.joining import joined_text
from ui.transcript.rows.body.making import BlockFactory
from ui.transcript.rows.body.shown import split_tables

_READ_STEP = 1000
"""Characters that are read between two looks at the clock."""

_SHORT_SECTION = SECTION + SECTION // 2
"""Characters of a section that is read as a whole: in steps it would take longer altogether."""

_READ_AT_ONCE, _READ_IN_TIME = 14_000, 4_000
"""Characters of blocks that are made at once, and when somebody looks at the clock."""

_MAX_SPOKEN = 20_000

ReplaceBlock = Callable[[Block, list[Block]], None]
"""Puts blocks in the place of one."""


class LazySection(Block):
    """Stands where its text will be read. What was read of a very long one stands before it as blocks."""

    def __init__(self, text: str, factory: BlockFactory, replace: ReplaceBlock) -> None:
        self._text = text
        self._factory = factory
        self._replace = replace
        self._stream: MarkdownStream | None = None
        self._at = 0
        self._leaves: deque[Leaf] = deque()
        self._made = 0
        self._last: Block | None = None

    @property
    def _is_read(self) -> bool:
        return self._at >= len(self._text)

    def estimate(self, width: int, style: RenderStyle) -> int:
        """As if what is left of it were ordinary text."""
        of_leaves = self._at / (self._made + len(self._leaves)) if self._leaves else 0
        size = len(self._text) - self._at + of_leaves * len(self._leaves)
        breaks = 0.7 * self._text.count("\n") * size / max(1, len(self._text))
        return int((size * style.advance / max(40, width) + breaks) * style.line)

    def layout(self, width: int, style: RenderStyle) -> int:
        """It is never seen."""
        return self.estimate(width, style)

    def paint(self, context: PaintContext) -> None:
        """Nothing."""

    def read(self, until: float) -> None:
        """Put what is read until the clock says so before it, or in its place when that is all."""
        # Some open blocks are read again from their beginning at every step.
        step, room = (_READ_IN_TIME, _READ_AT_ONCE) if until == inf else (_READ_STEP, _READ_IN_TIME)
        while not self._is_read and len(self._leaves) < 2:
            self._read_step(step)
            step = step * 2 if until == inf else step
            if perf_counter() > until:
                break
        blocks: list[Block] = []
        # The last leaf waits: what stands between it and the text that follows is known from it.
        while len(self._leaves) > (not self._is_read) and room > 0:
            leaf = self._leaves.popleft()
            room -= len(leaf.text) + 50 + sum(len(cell) + 10 for row in leaf.cells for cell in row)
            self._last = self._factory.block(leaf, self._last)
            blocks.append(self._last)
        self._made += len(blocks)
        if blocks and self.gap:
            blocks[0].gap, self.gap = self.gap, 0
        if self._leaves or not self._is_read:
            if not blocks:
                return
            self.separator = self._leaves[0].separator
            blocks.append(self)
        self._replace(self, blocks)

    def _read_step(self, step: int) -> None:
        if self._stream is None and len(self._text) <= _SHORT_SECTION:
            pieces, _ = parse_blocks(self._text, self._factory.references)
            self._take(leaf for piece in pieces for leaf in piece.leaves)
            self._at = len(self._text)
            return
        if self._stream is None:
            self._stream = MarkdownStream()
            self._stream.references = self._factory.references
        end = self._at + step
        self._take(self._stream.append(self._text[self._at : end]).closed)
        if end >= len(self._text):
            self._take(self._stream.finish().closed)
        self._at = end

    def _take(self, leaves: Iterable[Leaf]) -> None:
        self._leaves.extend(split_tables(leaves))

    def blocks(self) -> list[Block]:
        """What will stand in its place, for the sake of the text alone."""
        if not self._at:
            pieces, _ = parse_blocks(self._text, self._factory.references)
            leaves = list(split_tables(leaf for piece in pieces for leaf in piece.leaves))
            return [self._factory.block(leaf) for leaf in leaves[self._made :]]
        while not self._is_read:
            self._read_step(_READ_AT_ONCE)
        return [self._factory.block(leaf) for leaf in self._leaves]

    def iter_blocks(self) -> Iterator[Block | None]:
        """The same, one by one; None in between, where reading took a while."""
        if self._is_read or len(self._text) <= _SHORT_SECTION:
            yield from self.blocks()
            return
        made = self._made
        for leaf in self._leaves_in_steps():
            if leaf is None:
                yield None
            elif made:
                made -= 1
            else:
                yield self._factory.block(leaf)

    def _leaves_in_steps(self) -> Iterator[Leaf | None]:
        """From the beginning: those of which blocks were made already are read for what follows them."""
        stream = MarkdownStream()
        stream.references = self._factory.references
        for at in range(0, len(self._text), _READ_STEP):
            closed = stream.append(self._text[at : at + _READ_STEP]).closed
            yield None
            yield from split_tables(closed)
        yield from split_tables(stream.finish().closed)

    def detached(self) -> list[Block]:
        """The same for somebody who reads it bit by bit: what happens to this one meanwhile is not seen."""
        if self._is_read:
            return self.blocks()
        rest = LazySection(self._text, self._factory, self._replace)
        rest.separator, rest.gap, rest._made = self.separator, self.gap, self._made
        return [rest]

    def contains_text(self, words: str) -> bool:
        """Whether these stand in its text."""
        return words in self._text

    def plain(self) -> str:
        """Read for that."""
        return joined_text(self.blocks())

    def spoken_text(self) -> str:
        """Its beginning."""
        if len(self._text) <= _MAX_SPOKEN:
            return self.plain()
        return joined_text(
            LazySection(self._text[self._at : self._at + _MAX_SPOKEN], self._factory, self._replace).blocks()
        )
