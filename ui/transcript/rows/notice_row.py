"""An error in place, or a fact: a sentence, what to do about it, and the button that does it."""

from functools import partial

from PySide6.QtCore import QCoreApplication, QRectF
from PySide6.QtGui import QPainter

from desktop_agent.conversation.items import NoticeItem
from desktop_agent.vocabulary.errors import RemedyAction
from ui.look.sentences import spoken
from ui.transcript.blocks.block import Block
from ui.transcript.blocks.buttons import Button, ButtonsBlock
from ui.transcript.blocks.text_block import BODY, SMALL, TextBlock
from ui.transcript.look import Look
from ui.transcript.markdown.inline import Line
from ui.transcript.rows.row import Row
from ui.transcript.rows.stage import Stage


class NoticeRow(Row):
    """Errors stand in a red box, facts are quiet."""

    in_copies = False

    def __init__(self, item: NoticeItem, stage: Stage) -> None:
        super().__init__(item, stage)
        self._notice = item
        px = stage.look.px
        self.above, self.below = px(6) + px(12), px(6) + px(12)
        self.left, self.right = px(44), px(16)

    @property
    def label(self) -> str:
        """The accessible name."""
        if self._notice.level == "error":
            return QCoreApplication.translate("Transcript", "Error")
        return QCoreApplication.translate("Transcript", "Notice")

    def build(self) -> None:
        """Sentence, remedy, buttons."""
        notice = self._notice
        blocks: list[Block] = [TextBlock(Line(spoken(notice.sentence)), BODY, "text")]
        if notice.remedy:
            blocks.append(TextBlock(Line(spoken(notice.remedy)), SMALL, "muted"))
        buttons: list[Button] = []
        facts = self.stage.facts
        if remedy := _remedies().get(notice.action):
            buttons.append(Button(remedy, partial(facts.remedy_requested.emit, notice.id, notice.action)))
        if notice.detail:
            words = QCoreApplication.translate("Transcript", "Copy details")
            buttons.append(Button(words, partial(facts.details_copied.emit, notice.detail)))
        if buttons:
            blocks.append(ButtonsBlock(buttons))
        for index, block in enumerate(blocks):
            block.gap = self.stage.look.px(10 if isinstance(block, ButtonsBlock) else 2)
            self.put(index, block)

    def paint_frame(self, painter: QPainter, look: Look) -> None:
        """The box and its sign."""
        px = look.px
        is_error = self._notice.level == "error"
        box = QRectF(0.5, px(6) + 0.5, self.width - 1, self.height - 2 * px(6) - 1)
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
