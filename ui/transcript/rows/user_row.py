"""What the person said: a soft bubble at the right."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QCoreApplication, QRect, Qt
from PySide6.QtGui import QPainter

from desktop_agent.conversation.items import UserItem
from desktop_agent.vocabulary.text.hidden_characters import find_deceptive
from ui.transcript.blocks.block import MenuAction
from ui.transcript.blocks.text_block import TextBlock
from ui.transcript.copying.passage import CopyExtract
from ui.transcript.look import RenderStyle
from ui.transcript.markdown.inline import LINE_BREAK, Line
from ui.transcript.markdown.inline.spelling import spell_out_hidden
from ui.transcript.markdown.pieces import split_long_text
from ui.transcript.markdown.stream import parse_leaves
from ui.transcript.rows.row import Row
from ui.transcript.rows.stage import RenderContext

_FENCE = re.compile(r"(?m)^\s*(?:```|~~~|\$\$)")


class UserRow(Row):
    """Text as it was typed, and the pictures that came with it."""

    def __init__(self, item: UserItem, render_context: RenderContext) -> None:
        super().__init__(item, render_context)
        self._said = item
        px = render_context.style.px
        # As much beside pictures as above them.
        self._pad, self._over = (px(10), px(10)) if item.images else (px(14), px(9))
        self.above, self.below = render_context.style.gap(16) + self._over, render_context.style.gap(10) + self._over
        # What stands for the pictures in copies.
        self._pictures: list[str] = []

    @property
    def label(self) -> str:
        """The accessible name."""
        return QCoreApplication.translate("Transcript", "You said")

    def build(self) -> None:
        """Pictures first, as they are above the text in most messengers."""
        blocks = self.render_context.image_blocks(self._said.images, self.item.id)
        pictures = len(blocks)
        self._pictures = [block.plain() for block in blocks]
        for block in blocks[1:]:
            block.gap = self.render_context.style.px(8)
        # Long text is several blocks, so that only what is seen of it is laid out.
        text = self._said.text.replace("\r\n", "\n").replace("\r", "\n")
        for separator, piece in split_long_text(text) if text else ():
            block = TextBlock(_displayed_line(piece))
            block.separator = separator
            block.gap = self.render_context.style.px(8) if len(blocks) == pictures and blocks else 0
            blocks.append(block)
        for index, block in enumerate(blocks):
            self.set_block(index, block)

    def actions(self) -> Sequence[MenuAction]:
        """To undo what was changed from here on."""
        words = QCoreApplication.translate("Transcript", "Undo all changes since this message…")
        return (MenuAction(words, partial(self.render_context.signals.undo_since_requested.emit, self.item.id)),)

    def set_width(self, width: int) -> None:
        """At most four fifths of the column, and no wider than the text: short messages get short bubbles."""
        if width == self.width:
            return
        super().set_width(width)
        self.right = self._pad
        most = int(width * 0.8)
        self.left = width - most + self._pad
        if len(self.blocks) <= 3:
            style = self.render_context.style
            for block in self.blocks:
                block.layout(self.block_width(block), style)
            wanted = max((block.natural_width() for block in self.blocks), default=0)
            self.left = width - min(most - 2 * self._pad, max(wanted, style.px(12))) - self._pad
        for block in self.blocks:
            block.forget()

    def paint_frame(self, painter: QPainter, style: RenderStyle) -> None:
        """The bubble."""
        px = style.px
        box = QRect(self.left - self._pad, self.above - self._over, self.width - self.left + self._pad, 0)
        box.setBottom(self.height - self.below + self._over)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(style.color("user_bubble"))
        painter.drawRoundedRect(box, px(14), px(14))

    def extracts(self, start: tuple[int, int] = (0, 0), end: tuple[int, int] | None = None) -> Iterator[CopyExtract]:
        """Markdown as it was typed, unless code in it has no end: what follows would be code too."""
        for each in super().extracts(start, end):
            is_typed = each.text not in self._pictures and (
                not _FENCE.search(each.text) or _has_closed_blocks(each.text)
            )
            yield replace(each, markdown=replace(each.markdown, text=each.text)) if is_typed else each

    def source(self) -> str:
        """The pictures, and the text as it was typed."""
        pictures = [block.markdown() for block in self.render_context.image_blocks(self._said.images, self.item.id)]
        return "\n\n".join([*pictures, *([self._said.text] if self._said.text else [])])


def _displayed_line(text: str) -> Line:
    """As it was typed, with what hides something written out."""
    line, hidden = Line(text.replace("\n", LINE_BREAK)), list(find_deceptive(text))
    return spell_out_hidden(line, hidden) if hidden else line


def _has_closed_blocks(text: str) -> bool:
    """Whether a paragraph below is read as one."""
    last = parse_leaves(f"{text}\n\nword")[0][-1]
    return (last.kind, last.text) == ("paragraph", "word")
