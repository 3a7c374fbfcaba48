"""Text of blocks that stand below each other."""

from collections.abc import Iterable, Iterator

from ui.transcript.blocks.block import Block
from ui.transcript.markdown.inline import units


def joint_of(block: Block, before: Block) -> str:
    """What stands between a block and the one before it."""
    if block.joint is not None:
        return block.joint
    return "\n" if block.inside and before.inside else "\n\n"


def marker_of(block: Block) -> str:
    """What stands before its first line."""
    return f"{block.inside[-1].marker} " if block.inside and block.inside[-1].marker else ""


def parts_of(blocks: Iterable[Block]) -> Iterator[tuple[int, str, str]]:
    """Number and text of each block that has text, and what stands before it."""
    before: Block | None = None
    is_first = True
    for number, block in enumerate(blocks):
        if text := block.plain():
            joint = joint_of(block, before) if before and not is_first else ""
            yield number, joint + marker_of(block), text
            is_first = False
        before = block


def plain_of(blocks: Iterable[Block]) -> str:
    """All of their text."""
    return "".join(between + text for _, between, text in parts_of(blocks))


def place_in(blocks: Iterable[Block], offset: int) -> tuple[int, int]:
    """Which block, and which place in it, an offset of their joined text is."""
    found, at = (0, 0), 0
    for number, between, text in parts_of(blocks):
        at += units(between)
        if number and offset < at:
            return found
        size = units(text)
        found = number, min(max(0, offset - at), size)
        at += size
        if offset <= at:
            break
    return found
