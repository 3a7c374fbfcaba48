"""A step that the provider took on its own servers: what it is called, and what it did."""

from PySide6.QtCore import QCoreApplication, QRect

from desktop_agent.conversation.items import ServerStepItem
from ui.look.visible_text import show_hidden
from ui.transcript.blocks.block import Block
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.blocks.head_block import Header, HeaderBlock
from ui.transcript.blocks.text_block import SMALL, TextBlock
from ui.transcript.markdown.inline import Line
from ui.transcript.rows.markdown_body import code_callbacks
from ui.transcript.rows.row import Row
from ui.transcript.rows.stage import RenderContext

_MAX_SUMMARY_LENGTH = 110
_MAX_NAME_LENGTH = 200


class ServerStepRow(Row):
    """One quiet line, and the beginning of what it did; its head opens the rest."""

    is_copied = False

    def __init__(self, item: ServerStepItem, render_context: RenderContext) -> None:
        super().__init__(item, render_context)
        self._step = item
        self.above, self.below = render_context.style.gap(6), render_context.style.gap(6)

    @property
    def label(self) -> str:
        """The accessible name."""
        return QCoreApplication.translate("Transcript", "Server step: {0}").format(_one_line(self._step.name))

    @property
    def unfolded(self) -> bool:
        """Whether all is seen."""
        return self.render_context.choices.get(self.item.id, "unfolded", default=False)

    def build(self) -> None:
        """Everything anew: it never changes."""
        text = self._step.text.strip()
        title = _one_line(self._step.name) or QCoreApplication.translate("Transcript", "Server step")
        short = _one_line(text[: _MAX_SUMMARY_LENGTH * 3])
        if len(short) <= _MAX_SUMMARY_LENGTH and len(text) <= _MAX_SUMMARY_LENGTH * 3:
            self.set_block(0, HeaderBlock(Header(title, icon="globe")))
        else:
            control = QCoreApplication.translate("Transcript", "Show details")
            self.set_block(
                0, HeaderBlock(Header(title, icon="globe", is_open=self.unfolded, control=control), self._toggle)
            )
            short = short[: _MAX_SUMMARY_LENGTH - 1] + "…"
        if not text:
            return
        whole = CodeBlock(text, "", code_callbacks(self, "wrap")) if self.unfolded else None
        block = whole or TextBlock(Line(short), SMALL, "muted")
        block.gap = self.render_context.style.px(2)
        self.set_block(1, block)

    def _toggle(self) -> None:
        self.render_context.choices.set(self.item.id, "unfolded", value=not self.unfolded)
        self.refresh("state")
        self.render_context.signals.changed.emit(self.item.id)

    def room(self, block: Block) -> int:
        """What it did stands under the words of the head."""
        return super().block_width(block) - (0 if isinstance(block, HeaderBlock) else self.render_context.style.px(24))

    def block_box(self, index: int) -> QRect:
        """The head is not indented."""
        box = super().block_box(index)
        return box.translated(self.render_context.style.px(24), 0) if index else box

    def spoken_text(self) -> str:
        """All of it, folded or not."""
        return f"{_one_line(self._step.name)}\n{self._step.text}".strip()


def _one_line(text: str) -> str:
    """Words from a server: control characters seen, not obeyed."""
    return " ".join(show_hidden(text[: max(_MAX_NAME_LENGTH, _MAX_SUMMARY_LENGTH * 3)]).split())
