"""Icons: our SVG files in a theme's colours, sharp at 1x, 2x and 3x."""

from functools import lru_cache

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from resources import resource_path
from ui.look.theme import Theme

ICON_SIZE = 18
RATIOS = (1, 2, 3)


def icon(name: str, colour: str, disabled: str | None = None, size: int = ICON_SIZE) -> QIcon:
    """The icon resources/icons/NAME.svg in `colour` (#rrggbb), and in `disabled` where a control is disabled."""
    made = QIcon()
    for ratio in RATIOS:
        made.addPixmap(pixmap(name, colour, size, ratio), QIcon.Mode.Normal)
        made.addPixmap(pixmap(name, disabled or colour, size, ratio), QIcon.Mode.Disabled)
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


def _renderer(name: str, colour: str) -> QSvgRenderer:
    source = resource_path("icons", f"{name}.svg").read_text(encoding="utf-8").replace("currentColor", colour)
    return QSvgRenderer(QByteArray(source.encode("utf-8")))
