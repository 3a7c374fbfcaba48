"""Icons: our SVG files in a theme's colours, sharp at 1x and 2x, and at 3x where there is such a screen."""

from functools import lru_cache

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QGuiApplication, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from resources import resource_path
from ui.look.theme import Theme

ICON_SIZE = 18


def icon(name: str, colour: str, disabled: str | None = None, size: int = ICON_SIZE) -> QIcon:
    """The icon resources/icons/NAME.svg in `colour` (#rrggbb), and in `disabled` where a control is disabled."""
    made = QIcon()
    for mode, shade in ((QIcon.Mode.Normal, colour), (QIcon.Mode.Disabled, disabled or colour)):
        for ratio in _device_pixel_ratios():
            made.addPixmap(pixmap(name, shade, size, ratio), mode)
    return made


def themed_icon(name: str, theme: Theme, size: int = ICON_SIZE) -> QIcon:
    """The icon in the colour of text, muted when disabled."""
    return icon(name, theme.text, theme.muted, size)


def app_icon() -> QIcon:
    """The program's own icon."""
    made = QIcon()
    for size in (16, 24, 32, 48, 64, 128, 256):
        made.addPixmap(pixmap("desktop-agent", "#000000", size, 1))
    return made


@lru_cache(maxsize=512)
def pixmap(name: str, colour: str, size: int, ratio: int = 1) -> QPixmap:
    """One drawing: `size` in device-independent pixels, `ratio` device pixels for each. Raises FileNotFoundError."""
    drawing = QPixmap(size * ratio, size * ratio)
    drawing.fill(Qt.GlobalColor.transparent)
    painter = QPainter(drawing)
    _renderer(name, colour).render(painter, QRectF(0, 0, size * ratio, size * ratio))
    painter.end()
    drawing.setDevicePixelRatio(ratio)
    return drawing


@lru_cache(maxsize=1)
def _renderer(name: str, colour: str) -> QSvgRenderer:
    # One icon is drawn for several screens, one after the other.
    return QSvgRenderer(QByteArray(_source(name).replace("currentColor", colour).encode("utf-8")))


@lru_cache(maxsize=128)
def _source(name: str) -> str:
    return resource_path("icons", f"{name}.svg").read_text(encoding="utf-8")


def _device_pixel_ratios() -> tuple[int, ...]:
    """Each is drawn for each icon at the start, so the largest only where a screen shows it."""
    finest = max((screen.devicePixelRatio() for screen in QGuiApplication.screens()), default=1.0)
    return (1, 2) if finest <= 2 else (1, 2, 3)
