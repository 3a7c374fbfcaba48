"""The rows of messages: what the person wrote, the answer of the model, and its reasoning."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QRect
from PySide6.QtGui import QPainter

from desktop_agent.conversation.items import AnswerItem, PictureItem, ThinkingItem, UserItem
from desktop_agent.markdown.long_text import split_long_text
from desktop_agent.types.hidden_characters import find_deceptive
from desktop_agent.types.messages import AttachedText, split_attached
from ui.style.text import format_bytes, show_hidden
from ui.transcript.blocks.block import Block, MenuAction, PaintContext
from ui.transcript.blocks.buttons import Header, HeaderBlock
from ui.transcript.blocks.sources_block import SourcesBlock, cited_sources, sources_markdown
from ui.transcript.blocks.text_block import SMALL, TextBlock
from ui.transcript.clipboard import CopyExtract
from ui.transcript.markdown.inline import LINE_BREAK, Line, spell_out_hidden
from ui.transcript.markdown.serializer import code_markdown
from ui.transcript.markdown.stream import parse_leaves
from ui.transcript.rows.markdown_body import MarkdownBody
from ui.transcript.rows.render_context import RenderContext
from ui.transcript.rows.row import UNFOLDED_KEY, Row
from ui.transcript.style import RenderStyle
from ui.transcript.words import tr


class AnswerRow(Row):
    """Markdown as it arrives, its sources at the end, and a mark when it was interrupted."""

    def __init__(self, item: AnswerItem, render_context: RenderContext) -> None:
        super().__init__(item, render_context)
        self._answer = item
        self._body = MarkdownBody(self)
        self._has_end = False
        self.stack.above, self.stack.below = render_context.style.gap(8), render_context.style.gap(12)

    @property
    def label(self) -> str:
        return tr("Assistant said")

    @property
    def is_open(self) -> bool:
        return not self._answer.finished

    @property
    def closed(self) -> int:
        """The number of blocks that are final."""
        return len(self.blocks) if self._answer.finished else self._body.closed

    def build(self) -> None:
        self._body, self._has_end = MarkdownBody(self), False
        self._body.show(str(self._answer.text), finished=self._answer.finished)
        self._add_end()

    def refresh(self, what: str) -> int:
        del what
        first = self._body.show(str(self._answer.text), finished=self._answer.finished)
        self._add_end()
        if first >= len(self.blocks):
            return self.stack.height
        top = self.stack.block_top(first)
        if not self.blocks[first].is_laid_out:
            self.stack.settle_block(first)
        return top + (self.stack.gap(first, self.blocks[first]) if first else 0) + self.blocks[first].dirty_from

    def _add_end(self) -> None:
        """Add the sources and the mark of an interrupted answer, once it is finished."""
        if not self._answer.finished or self._has_end:
            return
        self._has_end = True
        sources = cited_sources(self._answer.citations)
        if sources:
            is_chosen = self.render_context.choices.get(self.item.id, "sources", default=False)
            is_folded = SourcesBlock.is_long(sources) and not is_chosen
            opened = self.render_context.signals.link_activated.emit
            self.add(SourcesBlock(sources, opened, self._show_sources if is_folded else None), 14)
        if self._answer.interrupted:
            self.add(TextBlock(Line(tr("Not finished")), SMALL, "muted"), 8)

    def _show_sources(self) -> None:
        self.render_context.choices.set(self.item.id, "sources", True)
        super().refresh("state")
        self.restore_footer()
        self.render_context.signals.changed.emit(self.item.id)

    def source(self) -> str:
        """Return the Markdown as the model wrote it, with the sources as a list."""
        sources = cited_sources(self._answer.citations)
        return "\n\n".join([str(self._answer.text), *([sources_markdown(sources)] if sources else [])])


class PictureRow(Row):
    """A picture that the model made."""

    def __init__(self, item: PictureItem, render_context: RenderContext) -> None:
        super().__init__(item, render_context)
        self._picture = item
        self.stack.above, self.stack.below = render_context.style.gap(8), render_context.style.gap(12)

    @property
    def label(self) -> str:
        return tr("Assistant said")

    def build(self) -> None:
        for block in self.render_context.image_blocks((self._picture.image,), self.item.id):
            self.add(block)

    def source(self) -> str:
        images = self.render_context.image_blocks((self._picture.image,), self.item.id)
        return "\n\n".join(block.markdown() for block in images)


class ThinkingRow(Row):
    """Reasoning: unfolded while it runs and folded when it is done, unless the person chose."""

    is_copied = False

    def __init__(self, item: ThinkingItem, render_context: RenderContext) -> None:
        super().__init__(item, render_context)
        self._thinking = item
        self._body: MarkdownBody | None = None
        self.stack.above = self.stack.below = render_context.style.gap(6)
        # The text is below the words of the header.
        self.stack.body_indent = render_context.style.px(24)

    @property
    def label(self) -> str:
        return tr("Thinking")

    @property
    def is_open(self) -> bool:
        return not self._thinking.finished

    def _is_unfolded_by_default(self) -> bool:
        return not self._thinking.finished

    def build(self) -> None:
        self.stack.set_block(0, HeaderBlock(self._header(), self._toggle))
        self._body = None
        if self.unfolded:
            self._show_text()

    def refresh(self, what: str) -> int:
        head = self.blocks[0]
        before = head.is_laid_out
        if isinstance(head, HeaderBlock):
            head.set_header(self._header())
        if not self.unfolded:
            self.stack.truncate(1)
            self._body = None
            return 0
        first = self._show_text()
        if (before and not head.is_laid_out) or what == "state":
            return 0
        return self.stack.block_top(min(first, len(self.blocks) - 1))

    def _show_text(self) -> int:
        if self._body is None:
            self.stack.truncate(1)
            self._body = MarkdownBody(self, 1, "muted", SMALL)
        first = self._body.show(str(self._thinking.text), finished=self._thinking.finished)
        if len(self.blocks) > 1:
            self.blocks[1].set_gap(self.render_context.style, 4, is_fixed=True)
        return first

    def _header(self) -> Header:
        seconds = self._thinking.seconds
        if not self._thinking.finished:
            title = tr("Thinking…")
        elif seconds is None:
            title = tr("Thought")
        else:
            title = tr("Thought for {0}").format(duration_text(seconds))
        return Header(title, icon="thought", is_open=self.unfolded, control=tr("Show thinking"))

    def paint_frame(self, painter: QPainter, style: RenderStyle) -> None:
        top = self.stack.above + style.px(30)
        if self.body_bottom > top:
            painter.fillRect(QRect(style.px(7), top, style.px(2), self.body_bottom - top), style.color("border"))

    def source(self) -> str:
        return str(self._thinking.text)

    def spoken_text(self) -> str:
        """Return the whole text, folded or not."""
        return f"{self._header().title}\n{self._thinking.text}"


def duration_text(seconds: float) -> str:
    """Return how long something took, in whole seconds."""
    minutes, rest = divmod(max(1, round(seconds)), 60)
    if not minutes:
        return tr("{0} s").format(rest)
    return tr("{0} min {1} s").format(minutes, rest)


_GAP_BELOW_EDITOR = 16
"""Pixels at 100 %: as much as the buttons below a message take otherwise."""
_FENCE = re.compile(r"(?m)^\s*(?:```|~~~|\$\$)")


class _EditedTextBlock(Block):
    """The room for the editor that replaces a message. The text of the message is still found, copied and read."""

    spans_row = True

    def __init__(self, text: str, height: int) -> None:
        self._text = text
        self._height = height

    def estimate(self, width: int, style: RenderStyle) -> int:
        del width, style
        return self._height

    def layout(self, width: int, style: RenderStyle) -> int:
        self.is_laid_out = True
        return self.estimate(width, style)

    def paint(self, context: PaintContext) -> None:
        """Leave it to the editor."""

    def plain(self) -> str:
        return self._text


class UserRow(Row):
    """The text as it was typed, with images and folded texts attached to it; or the room of the editor for them."""

    footer_gap = 12

    def __init__(self, item: UserItem, render_context: RenderContext) -> None:
        super().__init__(item, render_context)
        self._message = item
        self._typed, self._attached = split_attached(item.text)
        px = render_context.style.px
        # As much space beside images as above them.
        self._pad_x, self._pad_y = (px(10), px(10)) if item.images else (px(14), px(9))
        gap, has_footer = render_context.style.gap, render_context.message_actions is not None
        # The footer of the answer above is seldom visible, and its room looks like a gap.
        self.stack.above = gap(8 if has_footer else 16) + self._pad_y
        self.stack.below = gap(2) if has_footer else gap(10) + self._pad_y
        # The text of the images in copies.
        self._image_texts: list[str] = []

    @property
    def label(self) -> str:
        return tr("You said")

    def build(self) -> None:
        """Put the images above the text, as most messengers do."""
        if self.render_context.is_edited(self._message):
            height = self.render_context.editor_height + self.render_context.style.px(_GAP_BELOW_EDITOR)
            self.add(_EditedTextBlock("\n\n".join(self._texts()), height))
            return
        images = self.render_context.image_blocks(self._message.images, self.item.id)
        self._image_texts = [block.plain() for block in images]
        for block in images:
            self.add(block, 8)
        self._add_text(self._typed)
        for number, attached in enumerate(self._attached):
            header = self._attached_header(attached, is_open=self._shows_attached(number))
            self.add(HeaderBlock(header, partial(self._toggle_attached, number)), 8)
            if header.is_open:
                self._add_text(attached.text)

    def _add_text(self, text: str) -> None:
        # Long text is several blocks, so that only the visible ones are laid out.
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        for separator, piece in split_long_text(text) if text else ():
            block = TextBlock(_displayed_line(piece))
            block.separator = separator
            self.add(block, 0 if separator is not None else 8)

    def _is_unfolded_by_default(self) -> bool:
        return not self._attached

    def _shows_attached(self, number: int) -> bool:
        return self.unfolded or self.render_context.choices.get(self.item.id, f"attached {number}", default=False)

    def _toggle_attached(self, number: int) -> None:
        choices, item_id = self.render_context.choices, self.item.id
        shown = [self._shows_attached(other) ^ (other == number) for other in range(len(self._attached))]
        choices.set(item_id, UNFOLDED_KEY, False)
        for other, is_shown in enumerate(shown):
            choices.set(item_id, f"attached {other}", is_shown)
        self.refresh("state")
        self.restore_footer()
        self.render_context.signals.changed.emit(item_id)

    @staticmethod
    def _attached_header(attached: AttachedText, *, is_open: bool) -> Header:
        title, text = show_hidden(attached.title), attached.text
        size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        control = tr("Show “{0}”").format(title)
        return Header(f"{title} · {format_bytes(size)}", "document", "text", is_open=is_open, control=control)

    def restore_footer(self) -> None:
        """Offer nothing below the message while it is being edited."""
        if not self.render_context.is_edited(self._message):
            super().restore_footer()

    def actions(self) -> Sequence[MenuAction]:
        """Offer to undo the changes since this message."""
        words = tr("Undo all changes since this message…")
        return (MenuAction(words, partial(self.render_context.signals.undo_since_requested.emit, self.item.id)),)

    def set_width(self, width: int) -> None:
        """Take at most four fifths of the column, and no more than the text needs: short messages get short bubbles."""
        if width == self.stack.width:
            return
        super().set_width(width)
        self.stack.right = self._pad_x
        max_width = int(width * 0.8)
        self.stack.left = width - max_width + self._pad_x
        blocks = [block for block in self.blocks if block is not self.footer]
        if len(blocks) <= 3:
            style = self.render_context.style
            for block in blocks:
                block.layout(self.stack.block_width(block), style)
            text_width = max((block.natural_width() for block in blocks), default=0)
            self.stack.left = width - min(max_width - 2 * self._pad_x, max(text_width, style.px(12))) - self._pad_x
        for block in self.blocks:
            block.forget()

    def paint_frame(self, painter: QPainter, style: RenderStyle) -> None:
        if self.render_context.is_edited(self._message):
            return
        stack, pad = self.stack, self._pad_x
        box = QRect(stack.left - pad, stack.above - self._pad_y, stack.width - stack.left + pad, 0)
        box.setBottom(self.body_bottom + self._pad_y)
        style.paint_box(painter, box, style.px(14), "user_bubble", "outline" if style.theme.outline else "")

    def extracts(self, start: tuple[int, int] = (0, 0), end: tuple[int, int] | None = None) -> Iterator[CopyExtract]:
        """Copy the Markdown as it was typed, unless it leaves code open: what follows would become code too."""
        for extract in super().extracts(start, end):
            is_closed = not _FENCE.search(extract.text) or _has_closed_blocks(extract.text)
            is_typed = is_closed and extract.text not in self._image_texts
            yield replace(extract, markdown=replace(extract.markdown, text=extract.text)) if is_typed else extract

    def source(self) -> str:
        """Return the images, the text as it was typed, and what is attached in fences below its names."""
        images = [block.markdown() for block in self.render_context.image_blocks(self._message.images, self.item.id)]
        return "\n\n".join([*images, *self._texts()])

    def _texts(self) -> Iterator[str]:
        if self._typed:
            yield self._typed
        for file in self._attached:
            yield file.title
            yield code_markdown(file.text, "")


def _displayed_line(text: str) -> Line:
    line, hidden = Line(text.replace("\n", LINE_BREAK)), list(find_deceptive(text))
    return spell_out_hidden(line, hidden) if hidden else line


def _has_closed_blocks(text: str) -> bool:
    last = parse_leaves(f"{text}\n\nword")[0][-1]
    return (last.kind, last.text) == ("paragraph", "word")
