"""The pictures of a message, side by side, at their own proportions."""

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QCoreApplication, QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainterPath, QPixmap

from desktop_agent.vocabulary.blocks import Image
from desktop_agent.vocabulary.images import UrlSource
from ui.look.visible_text import show_hidden
from ui.transcript.blocks.block import WHOLE_TEXT, Control, MenuAction, PaintContext
from ui.transcript.blocks.buttons import paint_focus_ring
from ui.transcript.blocks.inline_object import selection_overlay_color
from ui.transcript.blocks.listed.listed_block import ItemListBlock
from ui.transcript.look import RenderStyle
from ui.transcript.markdown.inline import LINE_BREAK, Line, parse_inline, slice_utf16
from ui.transcript.pictures import ViewableImage, image_size

MAX_THUMBNAIL_HEIGHT = 320
"""Pixels at 100 %."""

LoadThumbnail = Callable[[Image, QSize, Callable[[], None]], tuple[bool, QPixmap | None]]


class ThumbnailsBlock(ItemListBlock):
    """Places are reserved from the sizes that are known, so that nothing jumps when the pictures arrive."""

    def __init__(
        self,
        images: Sequence[Image],
        load: LoadThumbnail,
        open_image: Callable[[Image], None],
        changed: Callable[[], None],
    ) -> None:
        self._images = images
        self._names = [show_hidden(" ".join((image.name or "").split())) for image in images]
        self._load, self._open, self._changed = load, open_image, changed
        self._boxes: list[QRect] = []
        self._controls: list[Control] = []
        self._sizes: list[QSize] = []

    def _size(self, index: int, width: int, style: RenderStyle) -> QSize:
        """Its own proportions, not higher than the limit, not larger than it is, not wider than the column."""
        if not self._sizes:
            self._sizes = [image_size(image.source) for image in self._images]
        own = self._sizes[index]
        if not own.isValid():
            return QSize(min(width, style.px(260)), style.px(54))
        highest = style.px(MAX_THUMBNAIL_HEIGHT) if len(self._images) == 1 else style.px(160)
        scale = min(1.0, highest / own.height(), width / own.width())
        return QSize(max(1, round(own.width() * scale)), max(1, round(own.height() * scale)))

    def estimate(self, width: int, style: RenderStyle) -> int:
        """Exact."""
        return self._arrange(width, style)

    def layout(self, width: int, style: RenderStyle) -> int:
        """Side by side, on more lines when needed."""
        self.is_laid_out = True
        height = self._arrange(width, style)
        words = QCoreApplication.translate("Transcript", "Open image: {0}")
        self._controls = [
            Control(words.format(name or number), box, partial(self._open, image))
            for number, (image, name, box) in enumerate(
                zip(self._images, self._names, self._boxes, strict=True), start=1
            )
        ]
        return height

    def forget(self) -> None:
        """Their sizes stay known."""
        self._controls, self.is_laid_out = [], False

    def _arrange(self, width: int, style: RenderStyle) -> int:
        self._boxes = []
        x = y = tallest = 0
        gap = style.px(8)
        for index in range(len(self._images)):
            size = self._size(index, width, style)
            if x and x + size.width() > width:
                x, y, tallest = 0, y + tallest + gap, 0
            self._boxes.append(QRect(x, y, size.width(), size.height()))
            x += size.width() + gap
            tallest = max(tallest, size.height())
        return y + tallest

    def paint(self, context: PaintContext) -> None:
        """What has arrived; a quiet box for the others."""
        selected = self.selected_items(*context.selection) if context.selection else ()
        for number, (box, control) in enumerate(zip(self._boxes, self._controls, strict=True)):
            if not box.intersects(context.clip):
                continue
            context.painter.save()
            path = QPainterPath()
            path.addRoundedRect(QRectF(box), 8, 8)
            context.painter.setRenderHint(context.painter.RenderHint.SmoothPixmapTransform)
            context.painter.setClipPath(path, Qt.ClipOperation.IntersectClip)
            self._paint_thumbnail(context, number, box)
            if number in selected:
                context.painter.fillRect(box, selection_overlay_color(context.style))
            context.painter.restore()
            if context.focused == control.name:
                paint_focus_ring(context.painter, context.style, box)

    def _paint_thumbnail(self, context: PaintContext, number: int, box: QRect) -> None:
        there, picture = self._load(self._images[number], box.size() * context.ratio, self._changed)
        if picture is not None:
            context.painter.drawPixmap(box, picture)
            return
        context.painter.fillRect(box, context.style.color("hover"))
        if there:
            self._paint_words(context, self._names[number], box)

    def _paint_words(self, context: PaintContext, name: str, box: QRect) -> None:
        style = context.style
        name = name or QCoreApplication.translate("Transcript", "Picture")
        text = QCoreApplication.translate("Transcript", "{0} cannot be shown").format(name)
        font = style.small
        context.painter.setFont(font)
        context.painter.setPen(style.color("muted"))
        inner = box.adjusted(style.px(10), 0, -style.px(10), 0)
        shown = QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideMiddle, inner.width())
        context.painter.drawText(inner, Qt.AlignmentFlag.AlignVCenter, shown)

    def natural_width(self) -> int:
        """Up to the right edge of the last one."""
        return max((box.right() + 1 for box in self._boxes), default=0)

    def item_texts(self) -> Sequence[str]:
        """What stands for each where only text can stand."""
        return [f"[{words}]" for words in self._words()]

    def item_rects(self) -> Sequence[QRect]:
        """Where they are."""
        return self._boxes

    def markdown(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """The same, as it stands where that reads as text."""
        text = slice_utf16(self.plain(), start, end)
        is_text = parse_inline(text) == Line(text.replace("\n", LINE_BREAK))
        return text if is_text else super().markdown(start, end)

    def _words(self) -> list[str]:
        named, unnamed = (
            QCoreApplication.translate("Transcript", "Image: {0}"),
            QCoreApplication.translate("Transcript", "Image"),
        )
        return [named.format(name) if name else unnamed for name in self._names]

    def spoken_text(self) -> str:
        """The names."""
        return ", ".join(self._words())

    def controls(self) -> Sequence[Control]:
        """Each opens its picture."""
        return self._controls

    def image_at(self, point: QPoint) -> ViewableImage | None:
        """The picture under a point, if it is one that can be decoded."""
        for image, box in zip(self._images, self._boxes, strict=True):
            if box.contains(point):
                return None if isinstance(image.source, UrlSource) else image.source
        return None

    def actions(self, point: QPoint) -> Sequence[MenuAction]:
        """For the picture under the point."""
        words = QCoreApplication.translate("Transcript", "Open image")
        return [MenuAction(words, each.press) for each in self._controls if each.box.contains(point)]
