"""An error in place, or a fact: a sentence, what to do about it, and the button that does it."""

from functools import partial

from PySide6.QtCore import QCoreApplication, QRectF
from PySide6.QtGui import QPainter

from desktop_agent.conversation.items import NoticeItem, ToolCallItem
from desktop_agent.vocabulary.errors import RemedyAction
from ui.look.sentences import spoken
from ui.transcript.blocks.block import Block
from ui.transcript.blocks.buttons import Button, ButtonsBlock
from ui.transcript.blocks.head_block import Head, HeadBlock
from ui.transcript.blocks.text_block import BODY, SMALL, TextBlock
from ui.transcript.look import Look
from ui.transcript.markdown.inline import Line
from ui.transcript.rows.markdown_body import MarkdownBody
from ui.transcript.rows.row import Row
from ui.transcript.rows.stage import Stage


class NoticeRow(Row):
    """Errors stand in a red box, facts are quiet. A longer text behind it is folded at first; its line opens it."""

    in_copies = False

    def __init__(self, item: NoticeItem, stage: Stage) -> None:
        super().__init__(item, stage)
        self._notice = item
        px, gap = stage.look.px, stage.look.gap
        self._apart = gap(6)
        self.above = self.below = self._apart + gap(12)
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
        return self.stage.choices.get(self.item.id, "unfolded", default=False)

    def build(self) -> None:
        """Sentence, remedy, buttons, and what can be opened."""
        notice = self._notice
        blocks: list[Block] = [TextBlock(Line(spoken(notice.sentence)), BODY, "text")]
        if notice.remedy:
            blocks.append(TextBlock(Line(spoken(notice.remedy)), SMALL, "muted"))
        buttons: list[Button] = []
        facts = self.stage.facts
        if remedy := _remedies().get(notice.action):
            buttons.append(Button(remedy, partial(facts.remedy_requested.emit, notice.id, notice.action)))
        # What one call alone had changed is redone at its card.
        if notice.can_be_redone and not self._is_of_one_call():
            words = QCoreApplication.translate("Transcript", "Redo")
            buttons.append(Button(words, partial(facts.redo_requested.emit, notice.id)))
        if notice.detail:
            words = QCoreApplication.translate("Transcript", "Copy details")
            buttons.append(Button(words, partial(facts.details_copied.emit, notice.detail)))
        if buttons:
            blocks.append(ButtonsBlock(buttons))
        for index, block in enumerate(blocks):
            block.gap = self.stage.look.gap(10 if isinstance(block, ButtonsBlock) else 2)
            self.put(index, block)
        if notice.folded:
            self._put_folded(len(blocks))

    def _is_of_one_call(self) -> bool:
        redos = self._notice.redos.keys()
        calls = (each for each in self.stage.items if isinstance(each, ToolCallItem))
        return len(redos) == 1 or any(redos <= call.redos.keys() for call in calls)

    def _put_folded(self, index: int) -> None:
        words = QCoreApplication.translate("Transcript", "Show details")
        title = QCoreApplication.translate("Transcript", "Details")
        head = HeadBlock(Head(title, is_open=self.unfolded, control=words), self._toggle)
        head.gap = self.stage.look.px(2)
        self.put(index, head)
        if self.unfolded:
            MarkdownBody(self, index + 1, "muted", SMALL).show(self._notice.folded, finished=True)

    def _toggle(self) -> None:
        self.stage.choices.set(self.item.id, "unfolded", value=not self.unfolded)
        self.refresh("state")
        self.stage.facts.changed.emit(self.item.id)

    def paint_frame(self, painter: QPainter, look: Look) -> None:
        """The box and its sign."""
        px = look.px
        is_error = self._notice.level == "error"
        box = QRectF(0.5, self._apart + 0.5, self.width - 1, self.height - 2 * self._apart - 1)
        painter.setPen(look.color("danger_background" if is_error else "border"))
        painter.setBrush(look.color("danger_background" if is_error else "surface"))
        painter.drawRoundedRect(box, px(10), px(10))
        name, color = ("error", "danger") if is_error else ("info", "muted")
        ratio = painter.device().devicePixelRatio()
        painter.drawPixmap(px(15), self.above + (look.line - px(18)) // 2, look.icon(name, color, 18, ratio))


def _remedies() -> dict[RemedyAction, str]:
    """What the buttons say, in the language of now."""
    translate = QCoreApplication.translate
    return {
        RemedyAction.RETRY: translate("Transcript", "Retry"),
        RemedyAction.OPEN_SETTINGS: translate("Transcript", "Open settings"),
        RemedyAction.CONTINUE: translate("Transcript", "Continue"),
    }
