"""Blocks of a row that took the place of one that was not read yet."""

from collections.abc import Sequence
from dataclasses import dataclass

from ui.transcript.blocks.block import Block
from ui.transcript.rows.body.joining import locate_offset


@dataclass(frozen=True, slots=True)
class BlockReplacement:
    """At the index `at` stand `blocks` now, where one stood before; none, when it said nothing."""

    at: int
    blocks: Sequence[Block]

    def map_position(self, block: int, offset: int = 0) -> tuple[int, int]:
        """Where a place of the row is now: a block and an offset in its text."""
        if block < self.at:
            return block, offset
        if block > self.at:
            return block + len(self.blocks) - 1, offset
        if not offset or not self.blocks:
            return block, 0
        number, inside = locate_offset(self.blocks, offset)
        return block + number, inside

    def map_key(self, key: str) -> str:
        """Where a control is now, by its key."""
        block, _, name = key.partition("/")
        return f"{self.map_position(int(block))[0]}/{name}" if name else key
