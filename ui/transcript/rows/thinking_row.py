"""A reasoning summary: quiet, in its true place, folded once it is over."""

from PySide6.QtCore import QCoreApplication, QRect
from PySide6.QtGui import QPainter

from desktop_agent.conversation.items import ThinkingItem
from ui.transcript.blocks.block import Block
from ui.transcript.blocks.head_block import Header, HeaderBlock
from ui.transcript.blocks.text_block import SMALL
from ui.transcript.look import RenderStyle
from ui.transcript.rows.markdown_body import MarkdownBody
from ui.transcript.rows.row import Row
from ui.transcript.rows.stage import RenderContext


class ThinkingRow(Row):
    """Open while it runs, folded when it is done, unless the person chose."""

    is_copied = False

    def __init__(self, item: ThinkingItem, render_context: RenderContext) -> None:
        super().__init__(item, render_context)
        self._thinking = item
        self._body: MarkdownBody | None = None
        self.above, self.below = render_context.style.gap(6), render_context.style.gap(6)

    @property
    def label(self) -> str:
        """The accessible name."""
        return QCoreApplication.translate("Transcript", "Thinking")

    @property
    def is_open(self) -> bool:
        """Until the item is finished."""
        return not self._thinking.finished

    @property
    def unfolded(self) -> bool:
        """Whether the text is seen."""
        return self.render_context.choices.get(self.item.id, "unfolded", default=not self._thinking.finished)

    def build(self) -> None:
        """Head, and the text when it is unfolded."""
        self.set_block(0, HeaderBlock(self._header(), self._toggle))
        self._body = None
        if self.unfolded:
            self._show_text()

    def refresh(self, what: str) -> int:
        """Take what is new, or fold."""
        head = self.blocks[0]
        before = head.is_laid_out
        if isinstance(head, HeaderBlock):
            head.set_header(self._header())
        if not self.unfolded:
            self.truncate(1)
            self._body = None
            return 0
        first = self._show_text()
        if (before and not head.is_laid_out) or what == "state":
            return 0
        return self.block_top(min(first, len(self.blocks) - 1))

    def _show_text(self) -> int:
        if self._body is None:
            self.truncate(1)
            self._body = MarkdownBody(self, 1, "muted", SMALL)
        first = self._body.show(str(self._thinking.text), finished=self._thinking.finished)
        if len(self.blocks) > 1:
            self.blocks[1].gap = self.render_context.style.px(4)
        return first

    def _header(self) -> Header:
        seconds = self._thinking.seconds
        if not self._thinking.finished:
            title = QCoreApplication.translate("Transcript", "Thinking…")
        elif seconds is None:
            title = QCoreApplication.translate("Transcript", "Thought")
        else:
            title = QCoreApplication.translate("Transcript", "Thought for {0}").format(_duration_text(seconds))
        control = QCoreApplication.translate("Transcript", "Show thinking")
        return Header(title, icon="thought", is_open=self.unfolded, control=control)

    def _toggle(self) -> None:
        self.render_context.choices.set(self.item.id, "unfolded", value=not self.unfolded)
        self.truncate(0)
        self.build()
        self.render_context.signals.changed.emit(self.item.id)

    def room(self, block: Block) -> int:
        """The text stands under the words of the head."""
        return super().block_width(block) - (0 if isinstance(block, HeaderBlock) else self.render_context.style.px(24))

    def block_box(self, index: int) -> QRect:
        """The text is indented, the head is not."""
        box = super().block_box(index)
        return box.translated(self.render_context.style.px(24), 0) if index else box

    def paint_frame(self, painter: QPainter, style: RenderStyle) -> None:
        """A quiet bar beside the text."""
        if len(self.blocks) > 1:
            top = self.above + style.px(30)
            painter.fillRect(
                QRect(style.px(7), top, style.px(2), self.height - self.below - top), style.color("border")
            )

    def source(self) -> str:
        """As the model wrote it."""
        return str(self._thinking.text)

    def spoken_text(self) -> str:
        """All of it, folded or not."""
        return f"{self._header().title}\n{self._thinking.text}"


def _duration_text(seconds: float) -> str:
    if seconds < 60:
        return QCoreApplication.translate("Transcript", "{0} s").format(max(1, round(seconds)))
    return QCoreApplication.translate("Transcript", "{0} min {1} s").format(int(seconds // 60), round(seconds % 60))
