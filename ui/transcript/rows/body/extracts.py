"""What is copied of blocks that stand below each other."""

import re
from collections.abc import Iterable, Iterator, Sequence

from ui.transcript.blocks.block import WHOLE_TEXT, Block
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.copying.passage import EMPTY_EXTRACT, CopiedBlock, CopyExtract
from ui.transcript.markdown.inline import slice_utf16, utf16_length
from ui.transcript.rows.body.joining import marker_before, separator_before
from ui.transcript.rows.body.unread import LazySection

_ELEMENT = re.compile(r"\A<(p|h[1-6])>(.*)</\1>\Z", re.DOTALL)
_HEADING = re.compile(r"\A#{1,6} ")


def iter_extracts(
    blocks: Sequence[Block], start: tuple[int, int] = (0, 0), end: tuple[int, int] | None = None
) -> Iterator[CopyExtract]:
    """Block by block between two places, or all of it, as it is now: what happens to the blocks later is not seen.

    NOTHING stands between them where reading took a while.
    What lies inside of one block is copied by itself: a word of an item is no item, and code has no fence.
    """
    last = min(end[0] if end else len(blocks), len(blocks) - 1)
    goes_on = start[0] <= last and blocks[start[0]].separator is not None
    kept: list[tuple[Sequence[Block], int, int]] = []
    for index in range(start[0], last + 1):
        first = start[1] if index == start[0] else 0
        stop = end[1] if end and index == end[0] else WHOLE_TEXT[1]
        block = blocks[index]
        if isinstance(block, LazySection) and (first, stop) == WHOLE_TEXT:
            kept.append((block.detached(), first, stop))
        else:
            kept.append(((block,), first, stop))
    is_alone = end is not None and start[0] == end[0]
    return _extract_steps(kept, _above(blocks, start[0]) if goes_on else "", is_alone=is_alone)


def _extract_steps(
    kept: list[tuple[Sequence[Block], int, int]], above: str, *, is_alone: bool
) -> Iterator[CopyExtract]:
    before: Block | None = None
    for together, first, stop in kept:
        for block in (each for one in together for each in _read_in_steps(one)):
            if block is None:
                yield EMPTY_EXTRACT
                continue
            part = _BlockPart(block, first, stop, is_alone=is_alone)
            if part.is_something:
                yield part.extract(before, "" if before else above)
                before = block


def _read_in_steps(block: Block) -> Iterable[Block | None]:
    return block.iter_blocks() if isinstance(block, LazySection) else (block,)


def read_block(block: Block) -> Sequence[Block]:
    """The block, or what will stand in its place when it is read."""
    return block.blocks() if isinstance(block, LazySection) else (block,)


def table_pieces_at(blocks: Sequence[Block], index: int) -> Iterator[TableBlock]:
    """The pieces of the table that the block at an index is a piece of."""
    first = _first_piece(blocks, index)
    for at in range(first, len(blocks)):
        for block in read_block(blocks[at]):
            if not isinstance(block, TableBlock) or (block.separator is None and at > first):
                return
            yield block


def _above(blocks: Sequence[Block], index: int) -> str:
    """The head of a table of which a later piece is the first that is copied."""
    first = read_block(blocks[_first_piece(blocks, index)])
    return first[0].markdown_prefix() if first else ""


def _first_piece(blocks: Sequence[Block], index: int) -> int:
    while index and blocks[index].separator is not None:
        index -= 1
    return index


class _BlockPart:
    """A block between two places of its text."""

    def __init__(self, block: Block, first: int, stop: int, *, is_alone: bool) -> None:
        self._block = block
        self._plain = block.plain()
        size = utf16_length(self._plain)
        self._first, self._stop = first, min(stop, size)
        is_whole = not first and stop >= size
        self._is_bare = is_alone and (not is_whole or isinstance(block, CodeBlock))
        self.is_something = first < self._stop or (is_whole and bool(marker_before(block)))

    def extract(self, before: Block | None, above: str) -> CopyExtract:
        """In all forms."""
        block, first, stop = self._block, self._first, self._stop
        text = slice_utf16(self._plain, first, stop)
        html = block.html(first, stop)
        if self._is_bare and isinstance(block, CodeBlock):
            return CopyExtract("", text, CopiedBlock(text), CopiedBlock(html))
        markdown = block.markdown(first, stop)
        if above and markdown.startswith("| "):
            markdown = f"{above}\n{markdown}"
        if self._is_bare:
            element = _ELEMENT.match(html)
            return CopyExtract(
                "", text, CopiedBlock(_HEADING.sub("", markdown)), CopiedBlock(element[2] if element else html)
            )
        separator = separator_before(block, before) if before else ""
        marker = marker_before(block) if not first else ""
        where = (block.containers, block.tight, block.starts, block.separator if before else None)
        return CopyExtract(separator + marker, text, CopiedBlock(markdown, *where), CopiedBlock(html, *where))
