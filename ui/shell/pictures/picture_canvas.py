"""One picture at full size: decode it in a worker, pan and zoom it. At 100 % a pixel is a pixel of the screen."""

from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPixmap,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QWidget

from ui.style.theme import ThemeSource
from ui.transcript.blocks.image_store import (
    InMemoryImage,
    ViewableImage,
    decode_image,
    encoded_image_size,
    read_image_bytes,
)

ZOOM_STEP = 1.25
MAX_ZOOM = 16.0
MIN_ZOOM = 0.02


class PanZoom:
    """A picture of `size` pixels in a view; each pixel of the view is `ratio` pixels of the screen.

    Zoom is screen pixels for each pixel of the picture. Points of the view count from its upper left corner.
    """

    def __init__(self) -> None:
        self.size = QSize()
        self.fits = True
        self._view = QSizeF()
        self._ratio = 1.0
        self._zoom = 1.0
        self._centre = QPointF()

    def show(self, size: QSize) -> None:
        """Show all of another picture."""
        self.size, self.fits = size, True

    def set_view(self, view: QSize, ratio: float) -> None:
        """Set the size of the view; a fitted picture stays fitted."""
        self._view, self._ratio = QSizeF(view), ratio
        self._clamp_centre()

    @property
    def zoom(self) -> float:
        return self._fit_zoom() if self.fits else self._zoom

    def _fit_zoom(self) -> float:
        """Return the zoom at which all is visible; small pictures are not enlarged."""
        if self.size.isEmpty() or self._view.isEmpty():
            return 1.0
        across = self._view.width() * self._ratio / self.size.width()
        return min(1.0, across, self._view.height() * self._ratio / self.size.height())

    @property
    def can_move(self) -> bool:
        """Whether some of it is out of view."""
        visible = self._visible_size()
        return self.size.width() > visible.width() + 0.5 or self.size.height() > visible.height() + 0.5

    def zoom_to(self, zoom: float, anchor: QPointF | None = None) -> None:
        """Zoom; the point `anchor` of the view, or its middle, stays in place."""
        middle = QPointF(self._view.width() / 2, self._view.height() / 2)
        offset = QPointF() if anchor is None else anchor - middle
        fixed_point = self._middle() + offset * (self._ratio / self.zoom)
        self._zoom, self.fits = max(min(MIN_ZOOM, self._fit_zoom()), min(MAX_ZOOM, zoom)), False
        self._centre = fixed_point - offset * (self._ratio / self._zoom)
        self._clamp_centre()

    def move_by(self, delta: QPointF) -> None:
        """Pan by pixels of the view."""
        if not self.fits:
            self._centre -= delta * (self._ratio / self._zoom)
            self._clamp_centre()

    def picture_rect(self) -> QRectF:
        """Return the area of the whole picture. Its corner is on a screen pixel, or all of it would be blurred."""
        scale, middle = self.zoom / self._ratio, self._middle()
        left = self._view.width() / 2 - middle.x() * scale
        top = self._view.height() / 2 - middle.y() * scale
        left, top = (round(edge * self._ratio) / self._ratio for edge in (left, top))
        return QRectF(left, top, self.size.width() * scale, self.size.height() * scale)

    def _middle(self) -> QPointF:
        return QPointF(self.size.width() / 2, self.size.height() / 2) if self.fits else self._centre

    def _visible_size(self) -> QSizeF:
        return self._view * (self._ratio / self.zoom)

    def _clamp_centre(self) -> None:
        """Leave no margin beside a picture that is larger than the view; centre a smaller one."""
        visible = self._visible_size()
        sides = (
            (self._centre.x(), self.size.width(), visible.width()),
            (self._centre.y(), self.size.height(), visible.height()),
        )
        x, y = (
            whole / 2 if whole <= length else max(length / 2, min(whole - length / 2, centre))
            for centre, whole, length in sides
        )
        self._centre = QPointF(x, y)


MAX_SHOWN_PIXELS = 40_000_000
"""Pixels kept in memory; a larger picture is scaled down."""

_MIN_LEVEL_SIDE = 512
_STRIP_ROWS = 128


@dataclass(frozen=True, slots=True)
class DecodedPicture:
    """A picture: `levels` holds it at full size, half, a quarter, and so on; empty if it cannot be read.

    `original_size` is its size in its file.
    """

    original_size: QSize
    levels: list[QImage] = field(default_factory=list[QImage])

    @property
    def size(self) -> QSize:
        return self.levels[0].size() if self.levels else QSize()

    @property
    def megapixels(self) -> float:
        return self.original_size.width() * self.original_size.height() / 1_000_000


@dataclass(frozen=True, slots=True)
class ViewerPicture:
    """A picture to view, with its name for the person."""

    source: ViewableImage
    name: str

    @property
    def suffix(self) -> str:
        """The suffix of its file type."""
        if isinstance(self.source, InMemoryImage):
            return _SUFFIXES.get(self.source.data[:3], "png")
        return self.source.media_type.partition("/")[2].replace("jpeg", "jpg")

    @property
    def file_name(self) -> str:
        """The suggested file name."""
        stem = self.name.rpartition(".")[0] if "." in self.name[1:] else self.name
        return f"{stem or 'picture'}.{self.suffix}"


_SUFFIXES = {b"\xff\xd8\xff": "jpg", b"GIF": "gif", b"RIF": "webp"}


def decode_picture(location: Path | str | bytes) -> DecodedPicture:
    """Decode a picture, in a worker; takes seconds for the largest."""
    try:
        data = read_image_bytes(location)
    except (OSError, ValueError):
        return DecodedPicture(QSize())
    original_size = encoded_image_size(data)
    image = decode_image(data, most=MAX_SHOWN_PIXELS)
    if image.isNull():
        return DecodedPicture(original_size)
    has_alpha = image.hasAlphaChannel()
    image_format = QImage.Format.Format_ARGB32_Premultiplied if has_alpha else QImage.Format.Format_RGB32
    levels = [image.convertToFormat(image_format)]
    del image
    while min(levels[-1].width(), levels[-1].height()) > _MIN_LEVEL_SIDE:
        levels.append(_halve(levels[-1]))
    return DecodedPicture(original_size, levels)


def _halve(image: QImage) -> QImage:
    """Scale in strips: the whole at once would block the window's thread."""
    half = QImage(image.width() // 2, image.height() // 2, image.format())
    half.fill(0)
    painter = QPainter(half)
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
    painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_Source)
    for top in range(0, half.height(), _STRIP_ROWS):
        rows = min(_STRIP_ROWS, half.height() - top)
        painter.drawImage(QRect(0, top, half.width(), rows), image, QRect(0, 2 * top, 2 * half.width(), 2 * rows))
    painter.end()
    return half


_WHEEL_NOTCH = 120
_PAN_STEP = 64
"""Pixels of the view that an arrow key moves."""

_ARROWS: dict[int, QPointF] = {
    Qt.Key.Key_Left: QPointF(_PAN_STEP, 0),
    Qt.Key.Key_Right: QPointF(-_PAN_STEP, 0),
    Qt.Key.Key_Up: QPointF(0, _PAN_STEP),
    Qt.Key.Key_Down: QPointF(0, -_PAN_STEP),
}
_CRISP_ZOOM = 3.0
"""From this zoom on, pixels are drawn as squares."""


class PictureCanvas(QWidget):
    """`zoomed` is emitted when the zoom changed. The wheel zooms at the pointer, everything else at the middle.

    Arrow keys pan a picture that is larger than the view; otherwise the window gets them.
    """

    zoomed = Signal()

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._themes = themes
        self._levels: list[QImage] = []
        self.words = ""
        """The text in place of a picture."""
        self._pan_zoom = PanZoom()
        self._drag_position: QPointF | None = None
        self.setProperty("isGraphic", True)
        self.setMinimumSize(160, 120)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        themes.changed.connect(self.update)

    @property
    def zoom(self) -> float:
        """Screen pixels for each pixel of the picture."""
        return self._pan_zoom.zoom

    @property
    def fits(self) -> bool:
        return self._pan_zoom.fits

    @property
    def image(self) -> QImage | None:
        return self._levels[0] if self._levels else None

    def show_picture(self, decoded: DecodedPicture) -> None:
        """Show all of a picture."""
        self._levels, self.words = decoded.levels, ""
        self._pan_zoom.show(decoded.size)
        self._update_view()

    def show_words(self, words: str) -> None:
        """Show a text in place of a picture."""
        self._levels, self.words = [], words
        self._update_view()

    def fit(self) -> None:
        """Show all of it; a small picture is not enlarged."""
        self._pan_zoom.fits = True
        self._update_view()

    def zoom_to(self, zoom: float, anchor: QPointF | None = None) -> None:
        """Zoom; the point `anchor` of the view, or its middle, stays in place."""
        if self._levels:
            self._pan_zoom.zoom_to(zoom, anchor)
            self._update_view()

    def zoom_by(self, steps: float, anchor: QPointF | None = None) -> None:
        """Zoom in by so many steps."""
        self.zoom_to(self.zoom * ZOOM_STEP**steps, anchor)

    def _update_view(self) -> None:
        self._pan_zoom.set_view(self.size(), self.devicePixelRatioF())
        if self._drag_position is not None:
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
        else:
            can_move = bool(self._levels) and self._pan_zoom.can_move
            self.setCursor(Qt.CursorShape.OpenHandCursor if can_move else Qt.CursorShape.ArrowCursor)
        self.update()
        self.zoomed.emit()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        theme = self._themes.theme
        painter.fillRect(event.rect(), QColor(theme.sidebar))
        if self._levels:
            # Qt does not report a move to a screen with another pixel ratio.
            self._pan_zoom.set_view(self.size(), self.devicePixelRatioF())
            self._paint_picture(painter)
        elif self.words:
            painter.setPen(QColor(theme.muted))
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(self.rect().adjusted(32, 32, -32, -32), flags, self.words)
        painter.end()

    def _paint_picture(self, painter: QPainter) -> None:
        """Paint from the level whose pixels are nearest to those of the screen."""
        zoom, level = self.zoom, 0
        while level + 1 < len(self._levels) and zoom * (1 << (level + 1)) <= 1:
            level += 1
        image, whole = self._levels[level], self._pan_zoom.picture_rect()
        visible = whole.intersected(QRectF(self.rect()))
        if image.hasAlphaChannel():
            painter.fillRect(
                visible, _checkerboard(QColor(self._themes.theme.window), QColor(self._themes.theme.hover))
            )
        x_scale, y_scale = image.width() / whole.width(), image.height() / whole.height()
        left, top = (visible.left() - whole.left()) * x_scale, (visible.top() - whole.top()) * y_scale
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, zoom < _CRISP_ZOOM and zoom != 1)
        painter.drawImage(visible, image, QRectF(left, top, visible.width() * x_scale, visible.height() * y_scale))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._update_view()

    def wheelEvent(self, event: QWheelEvent) -> None:
        self.zoom_by(event.angleDelta().y() / _WHEEL_NOTCH, event.position())
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._drag_position = event.position()
            self._update_view()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._drag_position is not None and self._levels and self._pan_zoom.can_move:
            self._pan_zoom.move_by(event.position() - self._drag_position)
            self._drag_position = event.position()
            self._update_view()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        del event
        self._drag_position = None
        self._update_view()

    def event(self, event: QEvent) -> bool:
        """Pan by an arrow key before the window takes it for a shortcut."""
        delta = _pan_of_key(event) if self._levels and self._pan_zoom.can_move else None
        if delta is None:
            return super().event(event)
        if event.type() == QEvent.Type.KeyPress:
            self._pan_zoom.move_by(delta)
            self._update_view()
        event.accept()
        return True

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if self.fits and self.zoom < 1:
            self.zoom_to(1.0, event.position())
        else:
            self.fit()


def _pan_of_key(event: QEvent) -> QPointF | None:
    if not isinstance(event, QKeyEvent) or event.type() not in {QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress}:
        return None
    modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
    return _ARROWS.get(event.key()) if modifiers == Qt.KeyboardModifier.NoModifier else None


def _checkerboard(light: QColor, dark: QColor) -> QPixmap:
    """Return the brush behind transparent pixels."""
    tiles = QPixmap(16, 16)
    tiles.fill(light)
    painter = QPainter(tiles)
    for x, y in ((0, 0), (8, 8)):
        painter.fillRect(x, y, 8, 8, dark)
    painter.end()
    return tiles
