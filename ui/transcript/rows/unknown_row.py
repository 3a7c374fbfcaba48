"""Something that this version does not know: shown as it came."""

import json

from PySide6.QtCore import QCoreApplication

from desktop_agent.conversation.items import UnknownItem
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.blocks.text_block import SMALL, TextBlock
from ui.transcript.markdown.inline import Line
from ui.transcript.rows.markdown_body import code_callbacks
from ui.transcript.rows.row import Row
from ui.transcript.rows.stage import RenderContext


class UnknownRow(Row):
    """A sentence and the raw content."""

    def __init__(self, item: UnknownItem, render_context: RenderContext) -> None:
        super().__init__(item, render_context)
        self._unknown = item

    @property
    def label(self) -> str:
        """The accessible name."""
        return QCoreApplication.translate("Transcript", "Unknown content")

    def build(self) -> None:
        """Raw content as JSON."""
        render_context = self.render_context
        text = json.dumps(self._unknown.raw, ensure_ascii=False, indent=2, default=str)
        code = CodeBlock(text, "json", code_callbacks(self, "wrap"))
        code.gap = render_context.style.px(6)
        words = QCoreApplication.translate(
            "Transcript", "This version does not know this content. It is kept as it came."
        )
        self.set_block(0, TextBlock(Line(words), SMALL, "muted"))
        self.set_block(1, code)
