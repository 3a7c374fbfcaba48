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
        self._host = host if image.target.lower().startswith(("http://", "https://")) else None
        self._height = 0
        self._controls: list[Control] = []
        self._words: list[str] = []
        self._error: TextLayout | None = None
        self._picture: QRect | None = None
        if self._host:
            self._host.pictures.watch(image.target, self)

    def _remote(self) -> RemoteImageState:
        return self._host.pictures.state_of(self._image.target) if self._host else RemoteImageState()

    def on_remote_image_change(self) -> None:
        """It is loading, there, or cannot be had."""
        self.is_laid_out = False
        if self._host:
            self._host.on_arrived()

    def estimate(self, width: int, look: RenderStyle) -> int:
        """Exact, but for what could not be loaded."""
        size = _image_size(self._remote(), width, look)
        return size.height() if size else look.px(54)

    def layout(self, width: int, look: RenderStyle) -> int:
        """The box, or the picture."""
        self.is_laid_out, self.dirty_from = True, 0
        self._controls, self._words, self._error, self._picture = [], [], None, None
        remote = self._remote()
        size = _image_size(remote, width, look)
        if size:
            self._width, self._height = size.width(), size.height()
            self._picture = QRect(QPoint(0, 0), size)
            name = QCoreApplication.translate("Transcript", "Open image: {0}").format(self.label())
            self._controls = [Control(name, self._picture, self._open_image)]
        else:
            self._width, self._height = min(width, look.px(520)), look.px(54)
            self._layout_box(remote, look)
        return self._height

    def _layout_box(self, remote: RemoteImageState, look: RenderStyle) -> None:
        buttons = self._buttons(remote)
        if remote.progress is LoadState.FAILED:
            words = str(join_remedy(Sentence(remote.sentence), Sentence(remote.remedy))).strip()
            room = self._width - look.px(60)
            self._error = TextLayout(Line(words), look.small, look, room, look.line_of(look.small))
            x, y = look.px(48), look.px(54) + self._error.height
            self._height = y + (look.px(42) if buttons else look.px(8))
        else:
            wide = sum(framed_button_width(look, words) + look.px(8) for words, _ in buttons)
            x, y = self._width - wide - look.px(4), look.px(12)
        for words, press in buttons:
            box = QRect(x, y, framed_button_width(look, words), look.px(30))
            self._controls.append(Control(words, box, press))
            self._words.append(words)
            x += box.width() + look.px(8)

    def _buttons(self, remote: RemoteImageState) -> list[tuple[str, Callable[[], None]]]:
        translate = QCoreApplication.translate
        if self._host is None:
            return []
        pictures, target = self._host.pictures, self._image.target
        if remote.progress is LoadState.LOADING:
            return [(translate("Transcript", "Stop loading"), partial(pictures.cancel, target))]
        if remote.progress is LoadState.FAILED and remote.may_insist:
            return [(translate("Transcript", "Load anyway"), partial(pictures.load, target, insists=True))]
        if remote.progress is LoadState.FAILED:
            return [(translate("Transcript", "Try again"), partial(pictures.load, target))]
        return [(translate("Transcript", "Load image"), partial(pictures.load, target))]

    def paint(self, brush: PaintContext) -> None:
        """The picture, or the box."""
        picture = self._remote().picture
        if self._picture and picture:
            self._paint_picture(brush, picture, self._picture)
        else:
            self._paint_box(brush)
        if brush.selection:
            brush.painter.fillRect(QRect(0, 0, self._width, self._height), selection_overlay_color(brush.style))

    def _paint_picture(self, brush: PaintContext, held: InMemoryImage, box: QRect) -> None:
        there, picture = True, None
        if self._host:
            there, picture = self._host.thumbnail(held, box.size() * brush.ratio, self._host.on_arrived)
        painter = brush.painter
        painter.save()
        path = QPainterPath()
        path.addRoundedRect(QRectF(box), 8, 8)
        painter.setRenderHint(painter.RenderHint.SmoothPixmapTransform)
        painter.setClipPath(path, Qt.ClipOperation.IntersectClip)
        if picture is not None:
            painter.drawPixmap(box, picture)
        else:
            painter.fillRect(box, brush.style.color("hover"))
        if there and picture is None:
            painter.setPen(brush.style.color("muted"))
            painter.setFont(brush.style.small)
            words = QCoreApplication.translate("Transcript", "{0} cannot be shown").format(self.label())
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, words)
        painter.restore()
        if self._controls and brush.focused == self._controls[0].name:
            paint_focus_ring(painter, brush.style, box)

    def _paint_box(self, brush: PaintContext) -> None:
        painter, look = brush.painter, brush.style
        painter.setPen(QPen(look.color("border"), 1, Qt.PenStyle.DashLine))
        painter.setBrush(look.color("surface"))
        painter.drawRoundedRect(QRectF(0.5, 0.5, self._width - 1, self._height - 1), 8, 8)
        painter.drawPixmap(look.px(14), look.px(16), look.icon("picture", "muted", 22, brush.ratio))
        left = look.px(48)
        aside = self._controls and not self._error
        room = (self._controls[0].box.left() - look.px(8) if aside else self._width - look.px(12)) - left
        for y, text, color in ((7, self.label(), "text"), (27, self._displayed_host(), "muted")):
            painter.setFont(look.small)
            painter.setPen(look.color(color))
            shown = QFontMetricsF(look.small).elidedText(text, Qt.TextElideMode.ElideMiddle, room)
            painter.drawText(QRect(left, look.px(y), room, look.px(20)), Qt.AlignmentFlag.AlignVCenter, shown)
        if self._error:
            self._error.draw(painter, look, QPointF(left, look.px(50)), "danger")
        for control, words in zip(self._controls, self._words, strict=True):
            paint_framed_button(brush, control, words)

    def _displayed_host(self) -> str:
        """Its host, in letters that cannot pass for others; whatever stands there where it has none."""
        host = QUrl(self._image.target).host() if self._host else ""
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
        return self._image.target if inside and self._host and not self._picture else ""

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
        if self._host and picture:
            self._host.open(picture)


def _image_size(remote: RemoteImageState, width: int, look: RenderStyle) -> QSize | None:
    """At its own proportions, not larger than it is; None while there is nothing to show."""
    if remote.progress is not LoadState.LOADED or remote.picture is None:
        return None
    own = remote.size
    scale = min(1.0, look.px(MAX_REMOTE_HEIGHT) / own.height(), width / own.width())
    return QSize(max(1, round(own.width() * scale)), max(1, round(own.height() * scale)))
