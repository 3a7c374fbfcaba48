"""Pictures at full size, read in a worker: as large as memory allows, and in halves for a quick look from afar."""

from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import QRect, QSize
from PySide6.QtGui import QImage, QPainter

from ui.transcript.pictures import InMemoryImage, ViewableImage, decode_image, encoded_image_size, read_image_bytes

MAX_SHOWN_PIXELS = 40_000_000
"""Pixels that are kept of one picture; a larger one is shown smaller."""

_MIN_LEVEL_SIDE = 512
_STRIP_ROWS = 128


@dataclass(frozen=True, slots=True)
class DecodedPicture:
    """A picture: `levels` are itself, half of it, a quarter, and so on; empty when it cannot be read.

    `original_size` is its size in its file.
    """

    original_size: QSize
    levels: list[QImage] = field(default_factory=list[QImage])

    @property
    def size(self) -> QSize:
        """As it was decoded."""
        return self.levels[0].size() if self.levels else QSize()

    @property
    def megapixels(self) -> float:
        """Of the file."""
        return self.original_size.width() * self.original_size.height() / 1_000_000


@dataclass(frozen=True, slots=True)
class ViewerPicture:
    """A picture that can be looked at, by the name that the person knows."""

    source: ViewableImage
    name: str

    @property
    def suffix(self) -> str:
        """Of a file that holds it."""
        if isinstance(self.source, InMemoryImage):
            return _SUFFIXES.get(self.source.data[:3], "png")
        return self.source.media_type.partition("/")[2].replace("jpeg", "jpg")

    @property
    def file_name(self) -> str:
        """What it is called when it is saved."""
        stem = self.name.rpartition(".")[0] if "." in self.name[1:] else self.name
        return f"{stem or 'picture'}.{self.suffix}"


_SUFFIXES = {b"\xff\xd8\xff": "jpg", b"GIF": "gif", b"RIF": "webp"}


def decode_picture(where: Path | str | bytes) -> DecodedPicture:
    """In a worker; takes seconds for the largest."""
    try:
        data = read_image_bytes(where)
    except (OSError, ValueError):
        return DecodedPicture(QSize())
    original_size = encoded_image_size(data)
    image = decode_image(data, most=MAX_SHOWN_PIXELS)
    if image.isNull():
        return DecodedPicture(original_size)
    has_holes = image.hasAlphaChannel()
    form = QImage.Format.Format_ARGB32_Premultiplied if has_holes else QImage.Format.Format_RGB32
    levels = [image.convertToFormat(form)]
    del image
    while min(levels[-1].width(), levels[-1].height()) > _MIN_LEVEL_SIDE:
        levels.append(_halve(levels[-1]))
    return DecodedPicture(original_size, levels)


def _halve(image: QImage) -> QImage:
    """In strips: the whole at once would hold up the thread of the window."""
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
