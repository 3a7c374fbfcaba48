"""What the assistant said, and where its claims come from."""

from PySide6.QtCore import QCoreApplication

from desktop_agent.conversation.items import AnswerItem
from ui.transcript.blocks.sources_block import SourcesBlock, cited_sources, sources_markdown
from ui.transcript.blocks.text_block import SMALL, TextBlock
from ui.transcript.markdown.inline import Line
from ui.transcript.rows.markdown_body import MarkdownBody
from ui.transcript.rows.row import Row
from ui.transcript.rows.stage import RenderContext


class AnswerRow(Row):
    """Markdown as it arrives, its sources at the end, and a mark when it was interrupted."""

    def __init__(self, item: AnswerItem, render_context: RenderContext) -> None:
        super().__init__(item, render_context)
        self._answer = item
        self._body = MarkdownBody(self)
        self._marked = False
        self.above, self.below = render_context.style.gap(8), render_context.style.gap(12)

    @property
    def label(self) -> str:
        """The accessible name."""
        return QCoreApplication.translate("Transcript", "Assistant said")

    @property
    def is_open(self) -> bool:
        """Until the item is finished."""
        return not self._answer.finished

    @property
    def closed(self) -> int:
        """How many blocks are final."""
        return len(self.blocks) if self._answer.finished else self._body.closed

    def build(self) -> None:
        """From the beginning."""
        self._body, self._marked = MarkdownBody(self), False
        self._body.show(str(self._answer.text), finished=self._answer.finished)
        self._add_interrupted_mark()

    def refresh(self, what: str) -> int:
        """Take what is new."""
        del what
        first = self._body.show(str(self._answer.text), finished=self._answer.finished)
        self._add_interrupted_mark()
        if first >= len(self.blocks):
            return self.height
        box = self.block_top(first)
        if not self.blocks[first].is_laid_out:
            self.settle_block(first)
        return box + (self.gap(first, self.blocks[first]) if first else 0) + self.blocks[first].dirty_from

    def _add_interrupted_mark(self) -> None:
        if not self._answer.finished or self._marked:
            return
        self._marked = True
        sources = cited_sources(self._answer.citations)
        if sources:
            is_folded = SourcesBlock.is_long(sources) and not self.render_context.choices.get(
                self.item.id, "sources", default=False
            )
            opened = self.render_context.signals.link_activated.emit
            block = SourcesBlock(sources, opened, self._show_sources if is_folded else None)
            block.gap = self.render_context.style.px(14)
            self.set_block(len(self.blocks), block)
        if self._answer.interrupted:
            block = TextBlock(Line(QCoreApplication.translate("Transcript", "Not finished")), SMALL, "muted")
            block.gap = self.render_context.style.px(8)
            self.set_block(len(self.blocks), block)

    def _show_sources(self) -> None:
        self.render_context.choices.set(self.item.id, "sources", value=True)
        self.truncate(0)
        self.build()
        self.render_context.signals.changed.emit(self.item.id)

    def source(self) -> str:
        """As the model wrote it, and the sources as a list."""
        sources = cited_sources(self._answer.citations)
        return "\n\n".join([str(self._answer.text), *([sources_markdown(sources)] if sources else [])])
