"""Colours that a formula names, made readable: what was meant for white paper may stand on a dark screen."""

import re
from functools import lru_cache

from PySide6.QtGui import QColor

_MIN_CONTRAST = 4.5
"""Contrast to the background (WCAG 2.2, 1.4.3)."""

_LIGHT_BACKGROUND, _DARK_BACKGROUND = "#ffffff", "#1c1d20"
_COLOR = re.compile(r'(fill|stroke)="([^"]+)"')
_NO_COLORS = {"none", "transparent"}


def with_readable_colors(svg: str, text: str) -> str:
    """The drawing with each colour as light or dark as it must be beside text of the colour `text` (#rrggbb)."""
    paper = _DARK_BACKGROUND if _luminance(QColor(text)) > 0.4 else _LIGHT_BACKGROUND
    return _COLOR.sub(lambda found: f'{found[1]}="{_readable_color(found[2], paper, text)}"', svg)


@lru_cache(maxsize=256)
def _readable_color(name: str, paper: str, text: str) -> str:
    if name in _NO_COLORS or name == text:
        return name
    color = QColor.fromString(name)
    if not color.isValid():
        return text
    hue, saturation, lightness = color.hslHueF(), color.hslSaturationF(), color.lightnessF()
    step = 0.04 if paper == _DARK_BACKGROUND else -0.04
    while _contrast(color, QColor(paper)) < _MIN_CONTRAST and 0 < lightness + step < 1:
        lightness += step
        color = QColor.fromHslF(max(0.0, hue), saturation, lightness)
    return color.name()


def _contrast(one: QColor, other: QColor) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(color: QColor) -> float:
    parts = (color.redF(), color.greenF(), color.blueF())
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
