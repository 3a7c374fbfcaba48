"""Blocks of images: thumbnails of a message, and remote images, which are loaded only on request."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, QSize, Qt, QUrl
from PySide6.QtGui import QPainter, QPainterPath, QPen, QPixmap

from desktop_agent.markdown.link_targets import safe_target
from desktop_agent.types.blocks import Image, UrlSource
from desktop_agent.types.errors import Sentence, join_remedy
from ui.style.text import join_names, show_hidden
from ui.transcript.blocks.block import WHOLE_TEXT, Block, Control, ItemListBlock, MenuAction, PaintContext
from ui.transcript.blocks.buttons import Button, framed_button_width, paint_focus_ring, paint_framed_button
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
from ui.transcript.markdown.misleading_links import display_host, link_tooltip
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.style import RenderStyle
from ui.transcript.words import tr

MAX_THUMBNAIL_HEIGHT = 320
"""Pixels at 100 %."""

LoadThumbnail = Callable[[ViewableImage, QSize, Callable[[], None]], tuple[bool, QPixmap | None]]
"""The signature of ThumbnailCache.get."""


class ThumbnailsBlock(ItemListBlock):
    """Thumbnails side by side. Their rectangles follow from known sizes, so that nothing moves when images arrive."""

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
        self._sizes: list[QSize] = []

    def _size(self, index: int, width: int, style: RenderStyle) -> QSize:
        if not self._sizes:
            self._sizes = [image_size(image.source) for image in self._images]
        natural_size = self._sizes[index]
        if not natural_size.isValid():
            return QSize(min(width, style.px(260)), style.px(54))
        return _fit_size(natural_size, width, style.px(MAX_THUMBNAIL_HEIGHT if len(self._images) == 1 else 160))

    def estimate(self, width: int, style: RenderStyle) -> int:
        return self._arrange(width, style)

    def layout(self, width: int, style: RenderStyle) -> int:
        """Place the images side by side, on several lines if needed."""
        self.is_laid_out = True
        height = self._arrange(width, style)
        words = tr("Open picture: {0}")
        parts = enumerate(zip(self._images, self._names, self._boxes, strict=True), start=1)
        self._controls = [
            Control(words.format(name or number), box, partial(self._open, image))
            for number, (image, name, box) in parts
        ]
        return height

    def forget(self) -> None:
        """Drop the layout, keep the image sizes."""
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
        """Paint the images that have arrived, and placeholders for the others."""
        selected = self.selected_items(*context.selection) if context.selection else ()
        for number, (box, control) in enumerate(zip(self._boxes, self._controls, strict=True)):
            if not box.intersects(context.clip):
                continue
            context.painter.save()
            _clip_rounded(context.painter, box)
            self._paint_thumbnail(context, number, box)
            if number in selected:
                context.painter.fillRect(box, selection_overlay_color(context.style))
            context.painter.restore()
            if context.focused == control.name:
                paint_focus_ring(context.painter, context.style, box)

    def _paint_thumbnail(self, context: PaintContext, number: int, box: QRect) -> None:
        source = self._images[number].source
        is_loaded, picture = True, None
        if not isinstance(source, UrlSource):
            is_loaded, picture = self._load(source, box.size() * context.ratio, self._changed)
        if picture is not None:
            context.painter.drawPixmap(box, picture)
            return
        context.painter.fillRect(box, context.style.color("hover"))
        if is_loaded:
            name = self._names[number] or tr("Picture")
            text = tr("{0} cannot be shown").format(name)
            inner = box.adjusted(context.style.px(10), 0, -context.style.px(10), 0)
            context.style.draw_text(context.painter, inner, text, "muted", elide=Qt.TextElideMode.ElideMiddle)

    def natural_width(self) -> int:
        return max((box.right() + 1 for box in self._boxes), default=0)

    def item_texts(self) -> Sequence[str]:
        """Return the names in brackets, for use in plain text."""
        return [f"[{words}]" for words in self._words()]

    def item_rects(self) -> Sequence[QRect]:
        return self._boxes

    def markdown(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """Return the text unescaped where it parses as plain text."""
        text = slice_utf16(self.plain(), start, end)
        is_text = parse_inline(text) == Line(text.replace("\n", LINE_BREAK))
        return text if is_text else super().markdown(start, end)

    def _words(self) -> list[str]:
        return [tr("Picture: {0}").format(name) if name else tr("Picture") for name in self._names]

    def spoken_text(self) -> str:
        return join_names(self._words())

    def image_at(self, point: QPoint) -> ViewableImage | None:
        """Return the image at a point, if it can be decoded here."""
        for image, box in zip(self._images, self._boxes, strict=True):
            if box.contains(point):
                return None if isinstance(image.source, UrlSource) else image.source
        return None

    def actions(self, point: QPoint) -> Sequence[MenuAction]:
        words = tr("Open picture")
        return [MenuAction(words, control.press) for control in self._controls if control.box.contains(point)]


MAX_REMOTE_HEIGHT = 420
"""Pixels at 100 %."""


@dataclass(frozen=True, slots=True)
class RemoteImageCallbacks:
    """The services of a remote image block."""

    pictures: RemoteImages
    thumbnail: LoadThumbnail
    open: Callable[[InMemoryImage], None]
    on_arrived: Callable[[], None]


class RemoteImageBlock(Block):
    """A placeholder with description, host and buttons, or the loaded image. Without callbacks there are no buttons."""

    def __init__(self, image: RemoteImage, callbacks: RemoteImageCallbacks | None = None) -> None:
        self._image = image
        self._width = 0
        self._callbacks = callbacks if image.target.lower().startswith(("http://", "https://")) else None
        self._height = 0
        self._buttons: list[Button] = []
        self._error: TextLayout | None = None
        self._picture: QRect | None = None
        if self._callbacks:
            self._callbacks.pictures.watch(image.target, self)

    def label(self) -> str:
        """Return the description of the image with hidden characters spelled out."""
        return show_hidden(self._image.label or tr("Picture"))

    def plain(self) -> str:
        return f"{self._image.label} ({self._image.target})" if self._image.label else self._image.target

    def markdown(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """Return the whole image as Markdown, whatever part is selected."""
        del start, end
        label = self._image.label.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
        return f"![{label}](<{self._image.target}>)"

    def html(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """Return a link, so that pasting it fetches nothing."""
        del start, end
        label, target = escape(self.label()), safe_target(self._image.target)
        return f'<p><a href="{escape(target)}">{label}</a></p>' if target else f"<p>{label}</p>"

    def offset_at(self, point: QPoint) -> int:
        """Return the start or the end of the text: the image is selected as a whole."""
        return 0 if point.x() < self._width / 2 else utf16_length(self.plain())

    def caret_stop_at(self, offset: int) -> int:
        return utf16_length(self.plain()) if offset else 0

    def natural_width(self) -> int:
        return self._width

    def _remote(self) -> RemoteImageState:
        return self._callbacks.pictures.state_of(self._image.target) if self._callbacks else RemoteImageState()

    def on_remote_image_change(self) -> None:
        """Lay out again after the image was loaded, failed or was cancelled."""
        self.is_laid_out = False
        if self._callbacks:
            self._callbacks.on_arrived()

    def estimate(self, width: int, style: RenderStyle) -> int:
        """Return the exact height, except for errors."""
        size = _image_size(self._remote(), width, style)
        return size.height() if size else style.px(54)

    def layout(self, width: int, style: RenderStyle) -> int:
        self.is_laid_out, self.dirty_from = True, 0
        self._buttons, self._error, self._picture = [], None, None
        remote = self._remote()
        size = _image_size(remote, width, style)
        if size:
            self._width, self._height = size.width(), size.height()
            self._picture = QRect(QPoint(0, 0), size)
            self._controls = [Control(tr("Open picture: {0}").format(self.label()), self._picture, self._open_image)]
        else:
            self._width, self._height = min(width, style.px(520)), style.px(54)
            self._layout_box(remote, style)
        return self._height

    def _layout_box(self, remote: RemoteImageState, style: RenderStyle) -> None:
        buttons = self._buttons = self._make_buttons(remote)
        self._controls = []
        if remote.progress is LoadState.FAILED:
            words = str(join_remedy(Sentence(remote.sentence), Sentence(remote.remedy))).strip()
            room = self._width - style.px(60)
            self._error = TextLayout(Line(words), style.small, style, room, style.line_of(style.small))
            x, y = style.px(48), style.px(54) + self._error.height
            self._height = y + (style.px(42) if buttons else style.px(8))
        else:
            buttons_width = sum(framed_button_width(style, button.text) + style.px(8) for button in buttons)
            x, y = self._width - buttons_width - style.px(4), style.px(12)
        for button in buttons:
            box = QRect(x, y, framed_button_width(style, button.text), style.px(30))
            self._controls.append(button.control(box))
            x += box.width() + style.px(8)

    def _make_buttons(self, remote: RemoteImageState) -> list[Button]:
        if self._callbacks is None:
            return []
        pictures, target = self._callbacks.pictures, self._image.target
        if remote.progress is LoadState.LOADING:
            return [Button(tr("Stop loading"), partial(pictures.cancel, target))]
        if remote.progress is LoadState.FAILED and remote.may_insist:
            return [Button(tr("Load anyway"), partial(pictures.load, target, insists=True))]
        if remote.progress is LoadState.FAILED:
            return [Button(tr("Try again"), partial(pictures.load, target))]
        return [Button(tr("Load picture"), partial(pictures.load, target))]

    def paint(self, context: PaintContext) -> None:
        picture = self._remote().picture
        if self._picture and picture:
            self._paint_picture(context, picture, self._picture)
        else:
            self._paint_box(context)
        if context.selection:
            context.painter.fillRect(QRect(0, 0, self._width, self._height), selection_overlay_color(context.style))

    def _paint_picture(self, context: PaintContext, image: InMemoryImage, box: QRect) -> None:
        is_loaded, picture = True, None
        if self._callbacks:
            size, arrived = box.size() * context.ratio, self._callbacks.on_arrived
            is_loaded, picture = self._callbacks.thumbnail(image, size, arrived)
        painter = context.painter
        painter.save()
        _clip_rounded(painter, box)
        if picture is not None:
            painter.drawPixmap(box, picture)
        else:
            painter.fillRect(box, context.style.color("hover"))
        if is_loaded and picture is None:
            words = tr("{0} cannot be shown").format(self.label())
            context.style.draw_text(painter, box, words, "muted", align=Qt.AlignmentFlag.AlignCenter)
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
        has_buttons_beside = self._controls and not self._error
        room = (self._controls[0].box.left() - style.px(8) if has_buttons_beside else self._width - style.px(12)) - left
        for y, text, color in ((7, self.label(), "text"), (27, self._displayed_host(), "muted")):
            line = QRect(left, style.px(y), room, style.px(20))
            style.draw_text(painter, line, text, color, elide=Qt.TextElideMode.ElideMiddle)
        if self._error:
            self._error.draw(painter, style, QPointF(left, style.px(50)), "danger")
        for control, button in zip(self._controls, self._buttons, strict=True):
            paint_framed_button(context, control, button.text)

    def _displayed_host(self) -> str:
        """Return the host in unambiguous letters, or the whole target if it has none."""
        host = QUrl(self._image.target).host() if self._callbacks else ""
        origin = display_host(host) if host else link_tooltip(self._image.target)
        if self._remote().progress is LoadState.LOADING:
            return tr("Loading from {0}…").format(origin)
        return origin

    def spoken_text(self) -> str:
        remote = self._remote()
        words = tr("Picture: {0}").format(self.label())
        return join_names(part for part in (words, self._displayed_host(), remote.sentence) if part)

    def link_at(self, point: QPoint) -> str:
        """Return the address while the image is not loaded."""
        is_inside = QRect(0, 0, self._width, self._height).contains(point)
        return self._image.target if is_inside and self._callbacks and not self._picture else ""

    def tooltip_at(self, point: QPoint) -> str:
        """Return the whole address with hidden characters spelled out."""
        del point
        return link_tooltip(self._image.target)

    def image_at(self, point: QPoint) -> InMemoryImage | None:
        """Return the image, once it is loaded."""
        return self._remote().picture if self._picture and self._picture.contains(point) else None

    def actions(self, point: QPoint) -> Sequence[MenuAction]:
        del point
        open_label = tr("Open picture")
        return [MenuAction(open_label if self._picture else control.name, control.press) for control in self._controls]

    def _open_image(self) -> None:
        picture = self._remote().picture
        if self._callbacks and picture:
            self._callbacks.open(picture)


def _image_size(remote: RemoteImageState, width: int, style: RenderStyle) -> QSize | None:
    if remote.progress is not LoadState.LOADED or remote.picture is None:
        return None
    return _fit_size(remote.size, width, style.px(MAX_REMOTE_HEIGHT))


def _fit_size(size: QSize, width: int, height: int) -> QSize:
    """Return the size scaled down in proportion to fit; it is never enlarged."""
    scale = min(1.0, height / size.height(), width / size.width())
    return QSize(max(1, round(size.width() * scale)), max(1, round(size.height() * scale)))


def _clip_rounded(painter: QPainter, box: QRect) -> None:
    path = QPainterPath()
    path.addRoundedRect(QRectF(box), 8, 8)
    painter.setRenderHint(painter.RenderHint.SmoothPixmapTransform)
    painter.setClipPath(path, Qt.ClipOperation.IntersectClip)
