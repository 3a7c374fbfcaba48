"""Something that this version does not know: shown as it came."""

import json
from functools import partial

from desktop_agent.conversation.items import UnknownItem
from ui.transcript.blocks.code_block import CodeBlock
from ui.transcript.blocks.text_block import SMALL, TextBlock
from ui.transcript.markdown.inline import Line
from ui.transcript.rows.row import Row
from ui.transcript.rows.stage import Stage


class UnknownRow(Row):
    """A sentence and the raw content."""

    def __init__(self, item: UnknownItem, stage: Stage) -> None:
        super().__init__(item, stage)
        self._unknown = item

    @property
    def label(self) -> str:
        """The accessible name."""
        return "Unknown content"

    def build(self) -> None:
        """Raw content as JSON."""
        stage = self.stage
        text = json.dumps(self._unknown.raw, ensure_ascii=False, indent=2, default=str)
        changed = partial(stage.facts.changed.emit, self.item.id)
        code = CodeBlock(text, "json", stage.facts.code_copied.emit, changed, stage.highlighter.colour)
        code.gap = stage.look.px(6)
        self.put(0, TextBlock(Line("This version does not know this content. It is kept as it came."), SMALL, "muted"))
        self.put(1, code)
