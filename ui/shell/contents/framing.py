"""Which part of a picture is seen, and how large: arithmetic alone."""

from PySide6.QtCore import QPointF, QRectF, QSize, QSizeF

ZOOM_STEP = 1.25
MAX_ZOOM = 16.0
MIN_ZOOM = 0.02


class PanZoom:
    """A picture of `size` pixels behind a view of so many pixels, each of which is `ratio` pixels of the screen.

    Zoom is pixels of the screen for each pixel of the picture. Points of the view count from its upper left corner.
    """

    def __init__(self) -> None:
        self.size = QSize()
        self.fits = True
        self._view = QSizeF()
        self._ratio = 1.0
        self._zoom = 1.0
        self._centre = QPointF()

    def show(self, size: QSize) -> None:
        """Another picture, all of it."""
        self.size, self.fits = size, True

    def set_view(self, view: QSize, ratio: float) -> None:
        """A view of this size; what fitted still fits."""
        self._view, self._ratio = QSizeF(view), ratio
        self._clamp_centre()

    @property
    def zoom(self) -> float:
        """As it is now."""
        return self._fit_zoom() if self.fits else self._zoom

    def _fit_zoom(self) -> float:
        """All of it is seen; a small one is not enlarged."""
        if self.size.isEmpty() or self._view.isEmpty():
            return 1.0
        across = self._view.width() * self._ratio / self.size.width()
        return min(1.0, across, self._view.height() * self._ratio / self.size.height())

    @property
    def can_move(self) -> bool:
        """Whether some of it is not seen."""
        seen = self._visible_size()
        return self.size.width() > seen.width() + 0.5 or self.size.height() > seen.height() + 0.5

    def zoom_to(self, zoom: float, at: QPointF | None = None) -> None:
        """This zoom, with the point `at` of the view, or its middle, staying where it is."""
        middle = QPointF(self._view.width() / 2, self._view.height() / 2)
        away = QPointF() if at is None else at - middle
        fixed = self._middle() + away * (self._ratio / self.zoom)
        self._zoom, self.fits = max(min(MIN_ZOOM, self._fit_zoom()), min(MAX_ZOOM, zoom)), False
        self._centre = fixed - away * (self._ratio / self._zoom)
        self._clamp_centre()

    def move_by(self, delta: QPointF) -> None:
        """Move the picture by pixels of the view; of one that fits all is seen."""
        if not self.fits:
            self._centre -= delta * (self._ratio / self._zoom)
            self._clamp_centre()

    def picture_rect(self) -> QRectF:
        """Where the whole picture stands. Its corner is on a pixel of the screen, or all of it would be blurred."""
        scale, middle = self.zoom / self._ratio, self._middle()
        left = self._view.width() / 2 - middle.x() * scale
        top = self._view.height() / 2 - middle.y() * scale
        left, top = (round(each * self._ratio) / self._ratio for each in (left, top))
        return QRectF(left, top, self.size.width() * scale, self.size.height() * scale)

    def _middle(self) -> QPointF:
        """The point of the picture in the middle of the view."""
        return QPointF(self.size.width() / 2, self.size.height() / 2) if self.fits else self._centre

    def _visible_size(self) -> QSizeF:
        """How much of a picture has room in the view."""
        return self._view * (self._ratio / self.zoom)

    def _clamp_centre(self) -> None:
        """No empty room beside a picture that is larger than the view; a smaller one stands in the middle."""
        seen = self._visible_size()
        sides = (
            (self._centre.x(), self.size.width(), seen.width()),
            (self._centre.y(), self.size.height(), seen.height()),
        )
        x, y = (whole / 2 if whole <= room else max(room / 2, min(whole - room / 2, at)) for at, whole, room in sides)
        self._centre = QPointF(x, y)
