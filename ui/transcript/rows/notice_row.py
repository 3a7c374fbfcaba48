"""An error in place, or a fact: a sentence, what to do about it, and the button that does it."""

from functools import partial

from PySide6.QtCore import QCoreApplication, QRectF
from PySide6.QtGui import QPainter

from desktop_agent.conversation.items import NoticeItem, ToolCallItem
from desktop_agent.vocabulary.errors import RemedyAction
from ui.look.sentences import translate_sentence
from ui.transcript.blocks.block import Block
from ui.transcript.blocks.buttons import Button, ButtonRowBlock
from ui.transcript.blocks.head_block import Header, HeaderBlock
from ui.transcript.blocks.text_block import BODY, SMALL, TextBlock
from ui.transcript.look import RenderStyle
from ui.transcript.markdown.inline import Line
from ui.transcript.rows.markdown_body import MarkdownBody
from ui.transcript.rows.row import Row
from ui.transcript.rows.stage import RenderContext


class NoticeRow(Row):
    """Errors stand in a red box, facts are quiet. A longer text behind it is folded at first; its line opens it."""

    is_copied = False

    def __init__(self, item: NoticeItem, render_context: RenderContext) -> None:
        super().__init__(item, render_context)
        self._notice = item
        px, gap = render_context.style.px, render_context.style.gap
        self._is_folding = gap(6)
        self.above = self.below = self._is_folding + gap(12)
        self.left, self.right = px(44), px(16)

    @property
    def label(self) -> str:
        """The accessible name."""
        if self._notice.level == "error":
            return QCoreApplication.translate("Transcript", "Error")
        return QCoreApplication.translate("Transcript", "Notice")

    @property
    def unfolded(self) -> bool:
        """Whether the longer text is seen."""
        return self.render_context.choices.get(self.item.id, "unfolded", default=False)

    def build(self) -> None:
        """Sentence, remedy, buttons, and what can be opened."""
        notice = self._notice
        blocks: list[Block] = [TextBlock(Line(translate_sentence(notice.sentence)), BODY, "text")]
        if notice.remedy:
            blocks.append(TextBlock(Line(translate_sentence(notice.remedy)), SMALL, "muted"))
        buttons: list[Button] = []
        signals = self.render_context.signals
        if remedy := _remedy_labels().get(notice.action):
            buttons.append(Button(remedy, partial(signals.remedy_requested.emit, notice.id, notice.action)))
        # What one call alone had changed is redone at its card.
        if notice.can_be_redone and not self._is_of_one_call():
            words = QCoreApplication.translate("Transcript", "Redo")
            buttons.append(Button(words, partial(signals.redo_requested.emit, notice.id)))
        if notice.detail:
            words = QCoreApplication.translate("Transcript", "Copy details")
            buttons.append(Button(words, partial(signals.details_copied.emit, notice.detail)))
        if buttons:
            blocks.append(ButtonRowBlock(buttons))
        for index, block in enumerate(blocks):
            block.gap = self.render_context.style.gap(10 if isinstance(block, ButtonRowBlock) else 2)
            self.set_block(index, block)
        if notice.folded:
            self._add_folded(len(blocks))

    def _is_of_one_call(self) -> bool:
        redos = self._notice.redos.keys()
        calls = (each for each in self.render_context.items if isinstance(each, ToolCallItem))
        return len(redos) == 1 or any(redos <= call.redos.keys() for call in calls)

    def _add_folded(self, index: int) -> None:
        words = QCoreApplication.translate("Transcript", "Show details")
        title = QCoreApplication.translate("Transcript", "Details")
        head = HeaderBlock(Header(title, is_open=self.unfolded, control=words), self._toggle)
        head.gap = self.render_context.style.px(2)
        self.set_block(index, head)
        if self.unfolded:
            MarkdownBody(self, index + 1, "muted", SMALL).show(self._notice.folded, finished=True)

    def _toggle(self) -> None:
        self.render_context.choices.set(self.item.id, "unfolded", value=not self.unfolded)
        self.refresh("state")
        self.render_context.signals.changed.emit(self.item.id)

    def paint_frame(self, painter: QPainter, style: RenderStyle) -> None:
        """The box and its sign."""
        px = style.px
        is_error = self._notice.level == "error"
        box = QRectF(0.5, self._is_folding + 0.5, self.width - 1, self.height - 2 * self._is_folding - 1)
        painter.setPen(style.color("danger_background" if is_error else "border"))
        painter.setBrush(style.color("danger_background" if is_error else "surface"))
        painter.drawRoundedRect(box, px(10), px(10))
        name, color = ("error", "danger") if is_error else ("info", "muted")
        ratio = painter.device().devicePixelRatio()
        painter.drawPixmap(px(15), self.above + (style.line - px(18)) // 2, style.icon(name, color, 18, ratio))


def _remedy_labels() -> dict[RemedyAction, str]:
    """What the buttons say, in the language of now."""
    translate = QCoreApplication.translate
    return {
        RemedyAction.RETRY: translate("Transcript", "Retry"),
        RemedyAction.OPEN_SETTINGS: translate("Transcript", "Open settings"),
        RemedyAction.CONTINUE: translate("Transcript", "Continue"),
    }
