"""A picture that a text points to: named, and loaded when the person says so. A text causes no network traffic."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QCoreApplication, QPoint, QPointF, QRect, QRectF, QSize, Qt, QUrl
from PySide6.QtGui import QFontMetricsF, QPainterPath, QPen, QPixmap

from desktop_agent.vocabulary.errors import Sentence, with_remedy
from ui.transcript.blocks.block import Action, Brush, Control
from ui.transcript.blocks.buttons import focus_ring, framed_button, framed_width
from ui.transcript.blocks.flow import Flow
from ui.transcript.blocks.inline_object import veil
from ui.transcript.blocks.picture.whole_picture import WholePicture
from ui.transcript.look import Look
from ui.transcript.markdown.inline import Line, RemoteImage, tip_of
from ui.transcript.markdown.inline.hosts import shown_host
from ui.transcript.pictures import HeldPicture
from ui.transcript.remote_pictures import Progress, Remote, RemotePictures

HIGHEST = 420
"""Pixels at 100 %."""


@dataclass(frozen=True, slots=True)
class RemoteHost:
    """Whom such a block talks to. `thumbnail` answers as Thumbnails.get does."""

    pictures: RemotePictures
    thumbnail: Callable[[HeldPicture, QSize, Callable[[], None]], tuple[bool, QPixmap | None]]
    open: Callable[[HeldPicture], None]
    arrived: Callable[[], None]


class RemoteBlock(WholePicture):
    """What it shows, where it lies, and a button; then the picture itself. Without a host it is named only."""

    def __init__(self, image: RemoteImage, host: RemoteHost | None = None) -> None:
        super().__init__(image)
        self._host = host if image.target.lower().startswith(("http://", "https://")) else None
        self._height = 0
        self._controls: list[Control] = []
        self._words: list[str] = []
        self._problem: Flow | None = None
        self._picture: QRect | None = None
        if self._host:
            self._host.pictures.watch(image.target, self)

    def _remote(self) -> Remote:
        return self._host.pictures.of(self._image.target) if self._host else Remote()

    def on_remote_change(self) -> None:
        """It is loading, there, or cannot be had."""
        self.laid = False
        if self._host:
            self._host.arrived()

    def estimate(self, width: int, look: Look) -> int:
        """Exact, but for what could not be loaded."""
        size = _picture_size(self._remote(), width, look)
        return size.height() if size else look.px(54)

    def lay(self, width: int, look: Look) -> int:
        """The box, or the picture."""
        self.laid, self.dirty_from = True, 0
        self._controls, self._words, self._problem, self._picture = [], [], None, None
        remote = self._remote()
        size = _picture_size(remote, width, look)
        if size:
            self._width, self._height = size.width(), size.height()
            self._picture = QRect(QPoint(0, 0), size)
            name = QCoreApplication.translate("Transcript", "Open image: {0}").format(self.label())
            self._controls = [Control(name, self._picture, self._press_open)]
        else:
            self._width, self._height = min(width, look.px(520)), look.px(54)
            self._lay_box(remote, look)
        return self._height

    def _lay_box(self, remote: Remote, look: Look) -> None:
        buttons = self._buttons(remote)
        if remote.progress is Progress.FAILED:
            words = str(with_remedy(Sentence(remote.sentence), Sentence(remote.remedy))).strip()
            room = self._width - look.px(60)
            self._problem = Flow(Line(words), look.small, look, room, look.line_of(look.small))
            x, y = look.px(48), look.px(54) + self._problem.height
            self._height = y + (look.px(42) if buttons else look.px(8))
        else:
            wide = sum(framed_width(look, words) + look.px(8) for words, _ in buttons)
            x, y = self._width - wide - look.px(4), look.px(12)
        for words, press in buttons:
            box = QRect(x, y, framed_width(look, words), look.px(30))
            self._controls.append(Control(words, box, press))
            self._words.append(words)
            x += box.width() + look.px(8)

    def _buttons(self, remote: Remote) -> list[tuple[str, Callable[[], None]]]:
        translate = QCoreApplication.translate
        if self._host is None:
            return []
        pictures, target = self._host.pictures, self._image.target
        if remote.progress is Progress.LOADING:
            return [(translate("Transcript", "Stop loading"), partial(pictures.cancel, target))]
        if remote.progress is Progress.FAILED and remote.may_insist:
            return [(translate("Transcript", "Load anyway"), partial(pictures.load, target, insists=True))]
        if remote.progress is Progress.FAILED:
            return [(translate("Transcript", "Try again"), partial(pictures.load, target))]
        return [(translate("Transcript", "Load image"), partial(pictures.load, target))]

    def paint(self, brush: Brush) -> None:
        """The picture, or the box."""
        picture = self._remote().picture
        if self._picture and picture:
            self._paint_picture(brush, picture, self._picture)
        else:
            self._paint_box(brush)
        if brush.selection:
            brush.painter.fillRect(QRect(0, 0, self._width, self._height), veil(brush.look))

    def _paint_picture(self, brush: Brush, held: HeldPicture, box: QRect) -> None:
        there, picture = True, None
        if self._host:
            there, picture = self._host.thumbnail(held, box.size() * brush.ratio, self._host.arrived)
        painter = brush.painter
        painter.save()
        path = QPainterPath()
        path.addRoundedRect(QRectF(box), 8, 8)
        painter.setRenderHint(painter.RenderHint.SmoothPixmapTransform)
        painter.setClipPath(path, Qt.ClipOperation.IntersectClip)
        if picture is not None:
            painter.drawPixmap(box, picture)
        else:
            painter.fillRect(box, brush.look.color("hover"))
        if there and picture is None:
            painter.setPen(brush.look.color("muted"))
            painter.setFont(brush.look.small)
            words = QCoreApplication.translate("Transcript", "{0} cannot be shown").format(self.label())
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, words)
        painter.restore()
        if self._controls and brush.focused == self._controls[0].name:
            focus_ring(painter, brush.look, box)

    def _paint_box(self, brush: Brush) -> None:
        painter, look = brush.painter, brush.look
        painter.setPen(QPen(look.color("border"), 1, Qt.PenStyle.DashLine))
        painter.setBrush(look.color("surface"))
        painter.drawRoundedRect(QRectF(0.5, 0.5, self._width - 1, self._height - 1), 8, 8)
        painter.drawPixmap(look.px(14), look.px(16), look.icon("picture", "muted", 22, brush.ratio))
        left = look.px(48)
        aside = self._controls and not self._problem
        room = (self._controls[0].box.left() - look.px(8) if aside else self._width - look.px(12)) - left
        for y, text, color in ((7, self.label(), "text"), (27, self._where(), "muted")):
            painter.setFont(look.small)
            painter.setPen(look.color(color))
            shown = QFontMetricsF(look.small).elidedText(text, Qt.TextElideMode.ElideMiddle, room)
            painter.drawText(QRect(left, look.px(y), room, look.px(20)), Qt.AlignmentFlag.AlignVCenter, shown)
        if self._problem:
            self._problem.draw(painter, look, QPointF(left, look.px(50)), "danger")
        for control, words in zip(self._controls, self._words, strict=True):
            framed_button(brush, control, words)

    def _where(self) -> str:
        """Its host, in letters that cannot pass for others; whatever stands there where it has none."""
        host = QUrl(self._image.target).host() if self._host else ""
        where = shown_host(host) if host else tip_of(self._image.target)
        if self._remote().progress is Progress.LOADING:
            return QCoreApplication.translate("Transcript", "Loading from {0}…").format(where)
        return where

    def spoken(self) -> str:
        """What it shows, where it lies, and how it stands."""
        remote = self._remote()
        words = QCoreApplication.translate("Transcript", "Image: {0}").format(self.label())
        return ", ".join(part for part in (words, self._where(), remote.sentence) if part)

    def link_at(self, point: QPoint) -> str:
        """The address, while the picture is not there."""
        inside = QRect(0, 0, self._width, self._height).contains(point)
        return self._image.target if inside and self._host and not self._picture else ""

    def tip_at(self, point: QPoint) -> str:
        """The whole address, with nothing hidden."""
        del point
        return tip_of(self._image.target)

    def controls(self) -> Sequence[Control]:
        """Its buttons, or the picture."""
        return self._controls

    def picture_at(self, point: QPoint) -> HeldPicture | None:
        """The picture, once it is there."""
        return self._remote().picture if self._picture and self._picture.contains(point) else None

    def actions(self, point: QPoint) -> Sequence[Action]:
        """What its buttons do."""
        del point
        opens = QCoreApplication.translate("Transcript", "Open image")
        return [Action(opens if self._picture else control.name, control.press) for control in self._controls]

    def _press_open(self) -> None:
        picture = self._remote().picture
        if self._host and picture:
            self._host.open(picture)


def _picture_size(remote: Remote, width: int, look: Look) -> QSize | None:
    """At its own proportions, not larger than it is; None while there is nothing to show."""
    if remote.progress is not Progress.THERE or remote.picture is None:
        return None
    own = remote.size
    scale = min(1.0, look.px(HIGHEST) / own.height(), width / own.width())
    return QSize(max(1, round(own.width() * scale)), max(1, round(own.height() * scale)))
