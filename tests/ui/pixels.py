"""The colours of a picture, counted at once: asked pixel by pixel, a window takes a second."""

from collections import Counter

from PySide6.QtGui import QImage


def colors_of(image: QImage) -> Counter[str]:
    """Return how many pixels have each colour, as `QColor.name` writes it. For pictures without transparent parts."""
    # Its lines are without padding: four bytes for each pixel. They are gone with the image that has them.
    converted = image.convertToFormat(QImage.Format.Format_ARGB32)
    pixels = memoryview(converted.constBits()).cast("I")
    colors = Counter[str]()
    for pixel, count in Counter(pixels).items():
        colors[f"#{pixel & 0xFFFFFF:06x}"] += count
    return colors
