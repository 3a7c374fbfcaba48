"""Blocks of images: thumbnails of a message, and remote images, which are loaded only when the person says so."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QCoreApplication, QPoint, QPointF, QRect, QRectF, QSize, Qt, QUrl
from PySide6.QtGui import QFontMetricsF, QPainterPath, QPen, QPixmap

from desktop_agent.types.blocks import Image, UrlSource
from desktop_agent.types.errors import Sentence, join_remedy
from ui.style.text import show_hidden
from ui.transcript.blocks.block import (
    WHOLE_TEXT,
    Control,
    ImageSourceBlock,
    ItemListBlock,
    MenuAction,
    PaintContext,
    TextRange,
)
from ui.transcript.blocks.buttons import framed_button_width, paint_focus_ring, paint_framed_button
from ui.transcript.blocks.image_store import (
    InMemoryImage,
    LoadState,
    RemoteImages,
    RemoteImageState,
    ViewableImage,
    image_size,
)
from ui.transcript.blocks.text_layout import TextLayout, selection_overlay_color
from ui.transcript.markdown.inline import LINE_BREAK, Line, RemoteImage, parse_inline, slice_utf16
from ui.transcript.markdown.links import display_host, link_tooltip
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.style import RenderStyle

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


class WholeImageBlock(ImageSourceBlock):
    """Selected as a whole or not at all."""

    def __init__(self, image: RemoteImage) -> None:
        super().__init__(image)
        self._width = 0

    def offset_at(self, point: QPoint) -> int:
        """Before it or behind it."""
        return 0 if point.x() < self._width / 2 else utf16_length(self.plain())

    def caret_stop_at(self, offset: int) -> int:
        """It has no places inside."""
        return utf16_length(self.plain()) if offset else 0

    def paragraph_at(self, offset: int) -> TextRange:
        """All of it."""
        del offset
        return 0, utf16_length(self.plain())

    def label(self) -> str:
        """With whatever is hidden in it written out."""
        return show_hidden(super().label())

    def natural_width(self) -> int:
        """Of the box or the picture."""
        return self._width


MAX_REMOTE_HEIGHT = 420
"""Pixels at 100 %."""


@dataclass(frozen=True, slots=True)
class RemoteImageCallbacks:
    """Whom such a block talks to. `thumbnail` answers as Thumbnails.get does."""

    pictures: RemoteImages
    thumbnail: Callable[[InMemoryImage, QSize, Callable[[], None]], tuple[bool, QPixmap | None]]
    open: Callable[[InMemoryImage], None]
    on_arrived: Callable[[], None]


class RemoteImageBlock(WholeImageBlock):
    """What it shows, where it lies, and a button; then the picture itself. Without a host it is named only."""

    def __init__(self, image: RemoteImage, host: RemoteImageCallbacks | None = None) -> None:
        super().__init__(image)
        self._callbacks = host if image.target.lower().startswith(("http://", "https://")) else None
        self._height = 0
        self._controls: list[Control] = []
        self._words: list[str] = []
        self._error: TextLayout | None = None
        self._picture: QRect | None = None
        if self._callbacks:
            self._callbacks.pictures.watch(image.target, self)

    def _remote(self) -> RemoteImageState:
        return self._callbacks.pictures.state_of(self._image.target) if self._callbacks else RemoteImageState()

    def on_remote_image_change(self) -> None:
        """It is loading, there, or cannot be had."""
        self.is_laid_out = False
        if self._callbacks:
            self._callbacks.on_arrived()

    def estimate(self, width: int, style: RenderStyle) -> int:
        """Exact, but for what could not be loaded."""
        size = _image_size(self._remote(), width, style)
        return size.height() if size else style.px(54)

    def layout(self, width: int, style: RenderStyle) -> int:
        """The box, or the picture."""
        self.is_laid_out, self.dirty_from = True, 0
        self._controls, self._words, self._error, self._picture = [], [], None, None
        remote = self._remote()
        size = _image_size(remote, width, style)
        if size:
            self._width, self._height = size.width(), size.height()
            self._picture = QRect(QPoint(0, 0), size)
            name = QCoreApplication.translate("Transcript", "Open image: {0}").format(self.label())
            self._controls = [Control(name, self._picture, self._open_image)]
        else:
            self._width, self._height = min(width, style.px(520)), style.px(54)
            self._layout_box(remote, style)
        return self._height

    def _layout_box(self, remote: RemoteImageState, style: RenderStyle) -> None:
        buttons = self._buttons(remote)
        if remote.progress is LoadState.FAILED:
            words = str(join_remedy(Sentence(remote.sentence), Sentence(remote.remedy))).strip()
            room = self._width - style.px(60)
            self._error = TextLayout(Line(words), style.small, style, room, style.line_of(style.small))
            x, y = style.px(48), style.px(54) + self._error.height
            self._height = y + (style.px(42) if buttons else style.px(8))
        else:
            wide = sum(framed_button_width(style, words) + style.px(8) for words, _ in buttons)
            x, y = self._width - wide - style.px(4), style.px(12)
        for words, press in buttons:
            box = QRect(x, y, framed_button_width(style, words), style.px(30))
            self._controls.append(Control(words, box, press))
            self._words.append(words)
            x += box.width() + style.px(8)

    def _buttons(self, remote: RemoteImageState) -> list[tuple[str, Callable[[], None]]]:
        translate = QCoreApplication.translate
        if self._callbacks is None:
            return []
        pictures, target = self._callbacks.pictures, self._image.target
        if remote.progress is LoadState.LOADING:
            return [(translate("Transcript", "Stop loading"), partial(pictures.cancel, target))]
        if remote.progress is LoadState.FAILED and remote.may_insist:
            return [(translate("Transcript", "Load anyway"), partial(pictures.load, target, insists=True))]
        if remote.progress is LoadState.FAILED:
            return [(translate("Transcript", "Try again"), partial(pictures.load, target))]
        return [(translate("Transcript", "Load image"), partial(pictures.load, target))]

    def paint(self, context: PaintContext) -> None:
        """The picture, or the box."""
        picture = self._remote().picture
        if self._picture and picture:
            self._paint_picture(context, picture, self._picture)
        else:
            self._paint_box(context)
        if context.selection:
            context.painter.fillRect(QRect(0, 0, self._width, self._height), selection_overlay_color(context.style))

    def _paint_picture(self, context: PaintContext, held: InMemoryImage, box: QRect) -> None:
        there, picture = True, None
        if self._callbacks:
            there, picture = self._callbacks.thumbnail(held, box.size() * context.ratio, self._callbacks.on_arrived)
        painter = context.painter
        painter.save()
        path = QPainterPath()
        path.addRoundedRect(QRectF(box), 8, 8)
        painter.setRenderHint(painter.RenderHint.SmoothPixmapTransform)
        painter.setClipPath(path, Qt.ClipOperation.IntersectClip)
        if picture is not None:
            painter.drawPixmap(box, picture)
        else:
            painter.fillRect(box, context.style.color("hover"))
        if there and picture is None:
            painter.setPen(context.style.color("muted"))
            painter.setFont(context.style.small)
            words = QCoreApplication.translate("Transcript", "{0} cannot be shown").format(self.label())
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, words)
        painter.restore()
        if self._controls and context.focused == self._controls[0].name:
            paint_focus_ring(painter, context.style, box)

    def _paint_box(self, context: PaintContext) -> None:
        painter, style = context.painter, context.style
        painter.setPen(QPen(style.color("border"), 1, Qt.PenStyle.DashLine))
        painter.setBrush(style.color("surface"))
        painter.drawRoundedRect(QRectF(0.5, 0.5, self._width - 1, self._height - 1), 8, 8)
        painter.drawPixmap(style.px(14), style.px(16), style.icon("picture", "muted", 22, context.ratio))
        left = style.px(48)
        aside = self._controls and not self._error
        room = (self._controls[0].box.left() - style.px(8) if aside else self._width - style.px(12)) - left
        for y, text, color in ((7, self.label(), "text"), (27, self._displayed_host(), "muted")):
            painter.setFont(style.small)
            painter.setPen(style.color(color))
            shown = QFontMetricsF(style.small).elidedText(text, Qt.TextElideMode.ElideMiddle, room)
            painter.drawText(QRect(left, style.px(y), room, style.px(20)), Qt.AlignmentFlag.AlignVCenter, shown)
        if self._error:
            self._error.draw(painter, style, QPointF(left, style.px(50)), "danger")
        for control, words in zip(self._controls, self._words, strict=True):
            paint_framed_button(context, control, words)

    def _displayed_host(self) -> str:
        """Its host, in letters that cannot pass for others; whatever stands there where it has none."""
        host = QUrl(self._image.target).host() if self._callbacks else ""
        where = display_host(host) if host else link_tooltip(self._image.target)
        if self._remote().progress is LoadState.LOADING:
            return QCoreApplication.translate("Transcript", "Loading from {0}…").format(where)
        return where

    def spoken_text(self) -> str:
        """What it shows, where it lies, and how it stands."""
        remote = self._remote()
        words = QCoreApplication.translate("Transcript", "Image: {0}").format(self.label())
        return ", ".join(part for part in (words, self._displayed_host(), remote.sentence) if part)

    def link_at(self, point: QPoint) -> str:
        """The address, while the picture is not there."""
        inside = QRect(0, 0, self._width, self._height).contains(point)
        return self._image.target if inside and self._callbacks and not self._picture else ""

    def tooltip_at(self, point: QPoint) -> str:
        """The whole address, with nothing hidden."""
        del point
        return link_tooltip(self._image.target)

    def controls(self) -> Sequence[Control]:
        """Its buttons, or the picture."""
        return self._controls

    def image_at(self, point: QPoint) -> InMemoryImage | None:
        """The picture, once it is there."""
        return self._remote().picture if self._picture and self._picture.contains(point) else None

    def actions(self, point: QPoint) -> Sequence[MenuAction]:
        """What its buttons do."""
        del point
        opens = QCoreApplication.translate("Transcript", "Open image")
        return [MenuAction(opens if self._picture else control.name, control.press) for control in self._controls]

    def _open_image(self) -> None:
        picture = self._remote().picture
        if self._callbacks and picture:
            self._callbacks.open(picture)


def _image_size(remote: RemoteImageState, width: int, style: RenderStyle) -> QSize | None:
    """At its own proportions, not larger than it is; None while there is nothing to show."""
    if remote.progress is not LoadState.LOADED or remote.picture is None:
        return None
    own = remote.size
    scale = min(1.0, style.px(MAX_REMOTE_HEIGHT) / own.height(), width / own.width())
    return QSize(max(1, round(own.width() * scale)), max(1, round(own.height() * scale)))
