"""Text of blocks that stand below each other."""

from collections.abc import Iterable, Iterator

from ui.transcript.blocks.block import Block
from ui.transcript.markdown.inline import utf16_length


def separator_before(block: Block, before: Block) -> str:
    """What stands between a block and the one before it."""
    if block.separator is not None:
        return block.separator
    return "\n" if block.containers and before.containers else "\n\n"


def marker_before(block: Block) -> str:
    """What stands before its first line."""
    return f"{block.containers[-1].marker} " if block.containers and block.containers[-1].marker else ""


def text_parts(blocks: Iterable[Block]) -> Iterator[tuple[int, str, str]]:
    """Number and text of each block that has text, and what stands before it."""
    before: Block | None = None
    is_first = True
    for number, block in enumerate(blocks):
        if text := block.plain():
            separator = separator_before(block, before) if before and not is_first else ""
            yield number, separator + marker_before(block), text
            is_first = False
        before = block


def joined_text(blocks: Iterable[Block]) -> str:
    """All of their text."""
    return "".join(between + text for _, between, text in text_parts(blocks))


def locate_offset(blocks: Iterable[Block], offset: int) -> tuple[int, int]:
    """Which block, and which place in it, an offset of their joined text is."""
    found, at = (0, 0), 0
    for number, between, text in text_parts(blocks):
        at += utf16_length(between)
        if number and offset < at:
            return found
        size = utf16_length(text)
        found = number, min(max(0, offset - at), size)
        at += size
        if offset <= at:
            break
    return found
