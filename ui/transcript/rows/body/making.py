"""Leaves of Markdown made into blocks."""

from dataclasses import replace
from functools import partial

from ui.transcript.blocks.block import Block
from ui.transcript.blocks.math.formulas import MathCallbacks
from ui.transcript.blocks.math.math_block import MathBlock
from ui.transcript.blocks.picture.remote_block import RemoteImageBlock
from ui.transcript.blocks.rule import RuleBlock
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.text_block import BODY, MarkdownTextBlock
from ui.transcript.markdown.inline import RemoteImage, parse_image_only
from ui.transcript.markdown.leaves import Leaf
from ui.transcript.markdown.parser import References
from ui.transcript.rows.stage import RenderContext

_GAPS = {"paragraph": 11, "heading": 22, "code": 12, "table": 12, "rule": 16, "math": 12}
_NAME_LENGTH = 120
"""Characters of code that tell it from other code of a message."""


class BlockFactory:
    """Of one text. `references` are its definitions; more of them may come."""

    def __init__(self, render_context: RenderContext, item_id: str, color: str = "text", font: str = BODY) -> None:
        self.render_context = render_context
        self.item_id = item_id
        self.references: References = {}
        self._color, self._font = color, font
        formulas, arrived = render_context.formulas, partial(render_context.signals.content_arrived.emit, item_id)
        self._math = MathCallbacks(formulas.get, arrived) if formulas else None

    def block(self, leaf: Leaf, before: Block | None = None, *, is_open: bool = False) -> Block:
        """For a leaf that stands below a block."""
        block = self._make_block(leaf, before, is_open=is_open)
        tight = leaf.tight and leaf.kind == "paragraph"
        block.gap = self.render_context.style.gap(4 if tight else _GAPS[leaf.kind]) if leaf.separator is None else 0
        block.separator = leaf.separator
        block.containers, block.tight, block.starts = leaf.containers, leaf.tight, leaf.starts
        return block

    def image_of(self, leaf: Leaf) -> RemoteImage | None:
        """The picture, where a finished leaf is nothing but one."""
        return parse_image_only(leaf.text, self.references) if _may_be_image(leaf) else None

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
        choices, item_id = self.render_context.choices, self.item_id

        def remember(wraps: bool) -> None:  # noqa: FBT001  what the callback carries
            choices.set(item_id, _code_name(block.text), value=wraps)

        callbacks = replace(self.render_context.code_callbacks(item_id, _code_name(leaf.text)), on_wrap=remember)
        block = self.render_context.code_block(leaf.text, leaf.info, callbacks, item_id, is_open=is_open)
        return block


def _code_name(code: str) -> str:
    # A number would be another one before all of a long text is read.
    return f"wrap {code[:_NAME_LENGTH]}"


def _may_be_image(leaf: Leaf) -> bool:
    return leaf.kind == "paragraph" and leaf.separator is None
