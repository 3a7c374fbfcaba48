"""The rows of notices and errors, of steps that the provider took on its servers, and of unknown items."""

import json
from functools import partial

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter

from desktop_agent.conversation.items import NoticeItem, ServerStepItem, ToolCallItem, UnknownItem
from desktop_agent.types.errors import RemedyAction
from ui.style.text import join_sentences, one_line, translate_sentence, translated
from ui.style.tool_labels import server_step_title
from ui.transcript.blocks.buttons import Button, ButtonRowBlock, Header, HeaderBlock
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.blocks.text_block import BODY, SMALL, TextBlock
from ui.transcript.markdown.inline import Line
from ui.transcript.rows.call_arguments import MAX_SUMMARY_LENGTH
from ui.transcript.rows.markdown_body import MarkdownBody
from ui.transcript.rows.render_context import RenderContext
from ui.transcript.rows.row import Row
from ui.transcript.style import RenderStyle
from ui.transcript.words import tr


class NoticeRow(Row):
    """A notice, or an error in a red box. A longer text is folded at first; its header unfolds it."""

    is_copied = False

    def __init__(self, item: NoticeItem, render_context: RenderContext) -> None:
        super().__init__(item, render_context)
        self._notice = item
        px, gap = render_context.style.px, render_context.style.gap
        self._outer_gap = gap(6)
        self.stack.above = self.stack.below = self._outer_gap + gap(12)
        self.stack.left, self.stack.right = px(44), px(16)

    @property
    def label(self) -> str:
        """The accessible name."""
        if self._notice.level == "error":
            return tr("Error")
        return tr("Notice")

    def _is_unfolded_by_default(self) -> bool:
        return False

    def build(self) -> None:
        notice = self._notice
        self.add(TextBlock(Line(translate_sentence(notice.sentence)), BODY, "text"))
        # In one block: after another failure the block of the buttons keeps its number, and Retry the focus.
        failures = tr("Failed {0} times.").format(notice.times)
        remedy = translate_sentence(notice.remedy) if notice.remedy else ""
        if words := join_sentences((failures if notice.times > 1 else "", remedy)):
            self.add(TextBlock(Line(words), SMALL, "muted"), 2, is_fixed=False)
        buttons: list[Button] = []
        signals = self.render_context.signals
        if label := remedy_label(notice.action):
            buttons.append(Button(label, partial(signals.remedy_requested.emit, notice.id, notice.action)))
        # Changes of a single call are redone on its card.
        if notice.can_be_redone and not self._is_of_one_call():
            buttons.append(Button(tr("Redo"), partial(signals.redo_requested.emit, notice.id)))
        if notice.detail:
            buttons.append(Button(tr("Copy details"), partial(signals.details_copied.emit, notice.detail)))
        if buttons:
            self.add(ButtonRowBlock(buttons), 10, is_fixed=False)
        if notice.folded:
            self._add_folded()

    def _is_of_one_call(self) -> bool:
        redos = self._notice.redos.keys()
        calls = (item for item in self.render_context.items if isinstance(item, ToolCallItem))
        return len(redos) == 1 or any(redos <= call.redos.keys() for call in calls)

    def _add_folded(self) -> None:
        self.add(HeaderBlock(Header(tr("Details"), is_open=self.unfolded, control=tr("Show details")), self._toggle), 2)
        if self.unfolded:
            text = "\n".join(map(translated, self._notice.folded))
            MarkdownBody(self, len(self.blocks), "muted", SMALL).show(text, finished=True)

    def paint_frame(self, painter: QPainter, style: RenderStyle) -> None:
        px = style.px
        is_error = self._notice.level == "error"
        box = QRectF(0.5, self._outer_gap + 0.5, self.stack.width - 1, self.stack.height - 2 * self._outer_gap - 1)
        edge = "danger" if style.theme.outline else "danger_background"
        fill, border = ("danger_background", edge) if is_error else ("surface", "border")
        style.paint_box(painter, box, px(10), fill, border)
        name, color = ("error", "danger") if is_error else ("info", "muted")
        ratio = painter.device().devicePixelRatio()
        painter.drawPixmap(px(15), self.stack.above + (style.line - px(18)) // 2, style.icon(name, color, 18, ratio))


def remedy_label(action: RemedyAction) -> str:
    """Return the label of the button in the current language, or "" where there is none."""
    labels = {
        RemedyAction.RETRY: tr("Retry"),
        RemedyAction.OPEN_SETTINGS: tr("Open settings"),
        RemedyAction.CONTINUE: tr("Continue"),
        RemedyAction.GO_ON: tr("Ask anyway"),
        RemedyAction.CHOOSE_MODEL: tr("Choose model"),
    }
    return labels.get(action, "")


class UnknownRow(Row):
    """A sentence and the raw content as JSON."""

    def __init__(self, item: UnknownItem, render_context: RenderContext) -> None:
        super().__init__(item, render_context)
        self._unknown = item

    @property
    def label(self) -> str:
        return tr("Unknown content")

    def build(self) -> None:
        text = json.dumps(self._unknown.raw, ensure_ascii=False, indent=2, default=str)
        self.add(TextBlock(Line(tr("This version cannot show this content. It is saved unchanged.")), SMALL, "muted"))
        self.add(CodeBlock(text, "json", self.render_context.code_callbacks(self.item.id, "wrap")), 6)


_MAX_NAME_LENGTH = MAX_SUMMARY_LENGTH * 3


class ServerStepRow(Row):
    """One quiet line and the beginning of the text; the header unfolds the rest."""

    is_copied = False

    def __init__(self, item: ServerStepItem, render_context: RenderContext) -> None:
        super().__init__(item, render_context)
        self._step = item
        self.stack.above = self.stack.below = render_context.style.gap(6)
        # The text is below the words of the header.
        self.stack.body_indent = render_context.style.px(24)

    @property
    def label(self) -> str:
        return tr("Server step: {0}").format(self._title)

    @property
    def _title(self) -> str:
        return one_line(server_step_title(self._step.name), _MAX_NAME_LENGTH)

    def _is_unfolded_by_default(self) -> bool:
        return False

    def build(self) -> None:
        """Make all blocks: the item never changes."""
        text = self._step.text.strip()
        title = self._title or tr("Server step")
        short = one_line(text, MAX_SUMMARY_LENGTH * 3)
        if len(short) <= MAX_SUMMARY_LENGTH and len(text) <= MAX_SUMMARY_LENGTH * 3:
            self.add(HeaderBlock(Header(title, icon="globe")))
        else:
            control = tr("Show details")
            self.add(HeaderBlock(Header(title, icon="globe", is_open=self.unfolded, control=control), self._toggle))
            short = short[: MAX_SUMMARY_LENGTH - 1] + "…"
        if text and self.unfolded:
            self.add(CodeBlock(text, "", self.render_context.code_callbacks(self.item.id, "wrap")), 2)
        elif text:
            self.add(TextBlock(Line(short), SMALL, "muted"), 2)

    def spoken_text(self) -> str:
        """Return the whole text, folded or not."""
        return f"{self._title}\n{self._step.text}".strip()
