"""A picture that a text points to: named, and loaded when the person says so. A text causes no network traffic."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QCoreApplication, QPoint, QPointF, QRect, QRectF, QSize, Qt, QUrl
from PySide6.QtGui import QFontMetricsF, QPainterPath, QPen, QPixmap

from desktop_agent.vocabulary.errors import Sentence, join_remedy
from ui.transcript.blocks.block import Control, MenuAction, PaintContext
from ui.transcript.blocks.buttons import framed_button_width, paint_focus_ring, paint_framed_button
from ui.transcript.blocks.flow import TextLayout
from ui.transcript.blocks.inline_object import selection_overlay_color
from ui.transcript.blocks.picture.whole_picture import WholeImageBlock
from ui.transcript.look import RenderStyle
from ui.transcript.markdown.inline import Line, RemoteImage, link_tooltip
from ui.transcript.markdown.inline.hosts import display_host
from ui.transcript.pictures import InMemoryImage
from ui.transcript.remote_pictures import LoadState, RemoteImages, RemoteImageState

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
