"""Leaves of Markdown made into blocks."""

from dataclasses import replace
from functools import partial

from ui.transcript.blocks.block import Block
from ui.transcript.blocks.math.formulas import MathHost
from ui.transcript.blocks.math.math_block import MathBlock
from ui.transcript.blocks.picture.remote_block import RemoteBlock
from ui.transcript.blocks.rule import RuleBlock
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.text_block import BODY, LeafText
from ui.transcript.markdown.inline import RemoteImage, only_image
from ui.transcript.markdown.leaves import Leaf
from ui.transcript.markdown.parser import References
from ui.transcript.rows.stage import Stage

_GAPS = {"paragraph": 11, "heading": 22, "code": 12, "table": 12, "rule": 16, "math": 12}
_NAMED_BY = 120
"""Characters of code that tell it from other code of a message."""


class Maker:
    """Of one text. `references` are its definitions; more of them may come."""

    def __init__(self, stage: Stage, item_id: str, color: str = "text", font: str = BODY) -> None:
        self.stage = stage
        self.item_id = item_id
        self.references: References = {}
        self._color, self._font = color, font
        formulas, arrived = stage.formulas, partial(stage.facts.arrived.emit, item_id)
        self._math = MathHost(formulas.get, arrived) if formulas else None

    def block(self, leaf: Leaf, before: Block | None = None, *, is_open: bool = False) -> Block:
        """For a leaf that stands below a block."""
        block = self._of_its_kind(leaf, before, is_open=is_open)
        tight = leaf.tight and leaf.kind == "paragraph"
        block.gap = self.stage.look.gap(4 if tight else _GAPS[leaf.kind]) if leaf.joint is None else 0
        block.joint = leaf.joint
        block.inside, block.tight, block.starts = leaf.inside, leaf.tight, leaf.starts
        return block

    def image_of(self, leaf: Leaf) -> RemoteImage | None:
        """The picture, where a finished leaf is nothing but one."""
        return only_image(leaf.text, self.references) if _may_be_image(leaf) else None

    def _of_its_kind(self, leaf: Leaf, before: Block | None, *, is_open: bool) -> Block:
        match leaf.kind:
            case "code":
                return self._code(leaf, is_open=is_open)
            case "math":
                return MathBlock(leaf.text, self._math, is_open=is_open)
            case "table":
                columns = before.columns if isinstance(before, TableBlock) and leaf.joint is not None else None
                return TableBlock(leaf, self.references, columns, self._math)
            case "rule":
                return RuleBlock()
            case _:
                image = None if is_open else self.image_of(leaf)
                if image:
                    return RemoteBlock(image, self.stage.remote_host(self.item_id))
                return LeafText(leaf, self.references, self._color, self._font, self._math)

    def _code(self, leaf: Leaf, *, is_open: bool) -> Block:
        choices, item_id = self.stage.choices, self.item_id

        def remember(wraps: bool) -> None:  # noqa: FBT001  what the callback carries
            choices.set(item_id, _name_of(block.text), value=wraps)

        host = replace(self.stage.code_host(item_id, _name_of(leaf.text)), on_wrap=remember)
        block = self.stage.code_block(leaf.text, leaf.info, host, item_id, is_open=is_open)
        return block


def _name_of(code: str) -> str:
    # A number would be another one before all of a long text is read.
    return f"wrap {code[:_NAMED_BY]}"


def _may_be_image(leaf: Leaf) -> bool:
    return leaf.kind == "paragraph" and leaf.joint is None
