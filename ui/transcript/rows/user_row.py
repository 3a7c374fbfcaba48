"""What the person said: a soft bubble at the right."""

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QCoreApplication, QRect, QSize, Qt
from PySide6.QtGui import QPainter, QPixmap

from desktop_agent.conversation.items import UserItem
from desktop_agent.vocabulary.blocks import Image
from desktop_agent.vocabulary.images import UrlSource
from ui.transcript.blocks.block import Block
from ui.transcript.blocks.text_block import TextBlock
from ui.transcript.blocks.thumbnails_block import ThumbnailsBlock
from ui.transcript.look import Look
from ui.transcript.markdown.inline import LINE_BREAK, Line
from ui.transcript.markdown.pieces import pieces
from ui.transcript.pictures import size_of
from ui.transcript.rows.row import Row
from ui.transcript.rows.stage import Stage


class UserRow(Row):
    """Text as it was typed, and the pictures that came with it."""

    def __init__(self, item: UserItem, stage: Stage) -> None:
        super().__init__(item, stage)
        self._said = item
        px = stage.look.px
        self._pad = px(14)
        self.above, self.below = px(16) + px(9), px(10) + px(9)
        self._bubble = 0

    @property
    def label(self) -> str:
        """The accessible name."""
        return QCoreApplication.translate("Transcript", "You said")

    def build(self) -> None:
        """Pictures first, as they are above the text in most messengers."""
        blocks: list[Block] = []
        if self._said.images:
            blocks.append(self._pictures())
        # Long text is several blocks, so that only what is seen of it is laid out.
        for joint, piece in pieces(self._said.text) if self._said.text else ():
            block = TextBlock(Line(piece.replace("\n", LINE_BREAK)))
            block.joint = joint
            block.gap = self.stage.look.px(8) if len(blocks) == bool(self._said.images) and blocks else 0
            blocks.append(block)
        for index, block in enumerate(blocks):
            self.put(index, block)

    def _pictures(self) -> Block:
        facts = self.stage.facts
        changed = partial(facts.changed.emit, self.item.id)
        return ThumbnailsBlock(self._said.images, _measure, self._load, facts.image_opened.emit, changed)

    def _load(self, image: Image, size: QSize, then: Callable[[], None]) -> tuple[bool, QPixmap | None]:
        if isinstance(image.source, UrlSource):
            return True, None
        return self.stage.thumbnails.get(image.source, size, then)

    def place(self, width: int) -> None:
        """At most four fifths of the column, and no wider than the text: short messages get short bubbles."""
        if width == self.width:
            return
        super().place(width)
        self.right = self._pad
        most = int(width * 0.8)
        self.left = width - most + self._pad
        if len(self.blocks) <= 3:
            look = self.stage.look
            for block in self.blocks:
                block.lay(self.room(block), look)
            wanted = max((block.natural_width() for block in self.blocks), default=0)
            self.left = width - min(most - 2 * self._pad, max(wanted, look.px(12))) - self._pad
        for block in self.blocks:
            block.forget()

    def paint_frame(self, painter: QPainter, look: Look) -> None:
        """The bubble."""
        px = look.px
        box = QRect(self.left - self._pad, self.above - px(9), self.width - self.left + self._pad, 0)
        box.setBottom(self.height - self.below + px(9))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(look.color("user_bubble"))
        painter.drawRoundedRect(box, px(14), px(14))

    def source(self) -> str:
        """As it was typed."""
        return self._said.text


def _measure(image: Image) -> QSize:
    return size_of(image.source)
