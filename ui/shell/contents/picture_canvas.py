"""One picture, moved and zoomed. At 100 % a pixel of the picture is a pixel of the screen."""

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
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

from ui.look.theme import ThemeSource
from ui.shell.contents.decoding import DecodedPicture
from ui.shell.contents.framing import ZOOM_STEP, PanZoom

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
"""Enlarged so far, pixels are shown as the squares that they are."""


class PictureCanvas(QWidget):
    """`zoomed` says that the zoom changed. The wheel zooms at the pointer, everything else at the middle.

    Arrow keys move what is larger than the view; of anything else they are left to the window.
    """

    zoomed = Signal()

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._levels: list[QImage] = []
        self._words = ""
        self._pan_zoom = PanZoom()
        self._dragged: QPointF | None = None
        self.setMinimumSize(160, 120)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        themes.changed.connect(self.update)

    @property
    def zoom(self) -> float:
        """Pixels of the screen for each pixel of the picture."""
        return self._pan_zoom.zoom

    @property
    def fits(self) -> bool:
        """Whether all of it is seen, whatever the window's size."""
        return self._pan_zoom.fits

    @property
    def image(self) -> QImage | None:
        """The picture."""
        return self._levels[0] if self._levels else None

    @property
    def words(self) -> str:
        """What is said instead of a picture."""
        return self._words

    def show_picture(self, decoded: DecodedPicture) -> None:
        """All of it."""
        self._levels, self._words = decoded.levels, ""
        self._pan_zoom.show(decoded.size)
        self._update_view()

    def show_words(self, words: str) -> None:
        """Instead of a picture."""
        self._levels, self._words = [], words
        self._update_view()

    def fit(self) -> None:
        """Show all of it; a small one is not enlarged."""
        self._pan_zoom.fits = True
        self._update_view()

    def zoom_to(self, zoom: float, at: QPointF | None = None) -> None:
        """This zoom, with the point `at` of the view staying where it is."""
        if self._levels:
            self._pan_zoom.zoom_to(zoom, at)
            self._update_view()

    def zoom_by(self, steps: float, at: QPointF | None = None) -> None:
        """So many steps closer."""
        self.zoom_to(self.zoom * ZOOM_STEP**steps, at)

    def _update_view(self) -> None:
        self._pan_zoom.set_view(self.size(), self.devicePixelRatioF())
        if self._dragged is not None:
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
        else:
            can_move = bool(self._levels) and self._pan_zoom.can_move
            self.setCursor(Qt.CursorShape.OpenHandCursor if can_move else Qt.CursorShape.ArrowCursor)
        self.update()
        self.zoomed.emit()

    def paintEvent(self, event: QPaintEvent) -> None:
        """The part that is seen, or the words."""
        painter = QPainter(self)
        theme = self._themes.theme
        painter.fillRect(event.rect(), QColor(theme.sidebar))
        if self._levels:
            # A screen of another sharpness tells nobody.
            self._pan_zoom.set_view(self.size(), self.devicePixelRatioF())
            self._paint_picture(painter)
        elif self._words:
            painter.setPen(QColor(theme.muted))
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(self.rect().adjusted(32, 32, -32, -32), flags, self._words)
        painter.end()

    def _paint_picture(self, painter: QPainter) -> None:
        """From the level whose pixels are nearest to those of the screen."""
        zoom, level = self.zoom, 0
        while level + 1 < len(self._levels) and zoom * (1 << (level + 1)) <= 1:
            level += 1
        image, whole = self._levels[level], self._pan_zoom.picture_rect()
        seen = whole.intersected(QRectF(self.rect()))
        if image.hasAlphaChannel():
            painter.fillRect(seen, _checkerboard(QColor(self._themes.theme.window), QColor(self._themes.theme.hover)))
        across, down = image.width() / whole.width(), image.height() / whole.height()
        left, top = (seen.left() - whole.left()) * across, (seen.top() - whole.top()) * down
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, zoom < _CRISP_ZOOM and zoom != 1)
        painter.drawImage(seen, image, QRectF(left, top, seen.width() * across, seen.height() * down))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """What fitted still fits."""
        super().resizeEvent(event)
        self._update_view()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Closer or further, at the pointer."""
        self.zoom_by(event.angleDelta().y() / _WHEEL_NOTCH, event.position())
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Take hold of it."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._dragged = event.position()
            self._update_view()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Move it."""
        if self._dragged is not None and self._levels and self._pan_zoom.can_move:
            self._pan_zoom.move_by(event.position() - self._dragged)
            self._dragged = event.position()
            self._update_view()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Let go."""
        del event
        self._dragged = None
        self._update_view()

    def event(self, event: QEvent) -> bool:
        """An arrow key moves it; it is taken before the window makes a shortcut of it."""
        way = _pan_of_key(event) if self._levels and self._pan_zoom.can_move else None
        if way is None:
            return super().event(event)
        if event.type() == QEvent.Type.KeyPress:
            self._pan_zoom.move_by(way)
            self._update_view()
        event.accept()
        return True

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Between all of it and every pixel of it."""
        if self.fits and self.zoom < 1:
            self.zoom_to(1.0, event.position())
        else:
            self.fit()


def _pan_of_key(event: QEvent) -> QPointF | None:
    """Where a key moves the picture."""
    if not isinstance(event, QKeyEvent) or event.type() not in {QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress}:
        return None
    held = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
    return _ARROWS.get(event.key()) if held == Qt.KeyboardModifier.NoModifier else None


def _checkerboard(light: QColor, dark: QColor) -> QPixmap:
    """What shows through the holes of a picture."""
    tiles = QPixmap(16, 16)
    tiles.fill(light)
    painter = QPainter(tiles)
    for x, y in ((0, 0), (8, 8)):
        painter.fillRect(x, y, 8, 8, dark)
    painter.end()
    return tiles
