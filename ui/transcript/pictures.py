"""Pictures at the size they are shown, read and scaled in a worker thread, kept in a bounded cache."""

import base64
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QSize
from PySide6.QtGui import QImage, QImageReader, QPixmap

from desktop_agent.vocabulary.images import Base64Source, StoredSource, UrlSource
from ui.transcript.workshop import Workshop

_KEPT_BYTES = 64 * 1024 * 1024
_ALLOWED_MB = 512

Shown = QPixmap | None
"""None: it cannot be read."""


class PictureSource(Protocol):
    """Where stored pictures lie."""

    def path_of(self, source: StoredSource) -> Path:
        """The file of a stored picture."""
        ...


class Thumbnails:
    """Asked for a picture, it answers from its cache, or later through the callback."""

    def __init__(self, pictures: PictureSource, workshop: Workshop) -> None:
        self._pictures = pictures
        self._workshop = workshop
        self._kept: OrderedDict[tuple[str, int, int], Shown] = OrderedDict()
        self._size = 0

    def get(self, source: StoredSource | Base64Source, size: QSize, then: Callable[[], None]) -> tuple[bool, Shown]:
        """Whether it is there, and the picture. When it is not, `then` is called once it is."""
        key = (_key(source), size.width(), size.height())
        if key in self._kept:
            self._kept.move_to_end(key)
            return True, self._kept[key]
        where = self._pictures.path_of(source) if isinstance(source, StoredSource) else source.data

        def arrived(image: QImage) -> None:
            self._keep(key, None if image.isNull() else QPixmap.fromImage(image))
            then()

        self._workshop.do(("picture", *key), lambda: _read(where, size), arrived)
        return False, None

    def _keep(self, key: tuple[str, int, int], picture: Shown) -> None:
        self._kept[key] = picture
        self._size += _bytes(picture)
        while self._size > _KEPT_BYTES and len(self._kept) > 1:
            _, old = self._kept.popitem(last=False)
            self._size -= _bytes(old)


def size_of(source: StoredSource | Base64Source | UrlSource) -> QSize:
    """In its own pixels; an invalid size where that is not known without decoding."""
    if isinstance(source, StoredSource):
        return QSize(source.width, source.height)
    if isinstance(source, Base64Source):
        # The head of every supported format names the size; 64 KiB hold it even behind a JPEG's metadata.
        device = _device(base64.b64decode(source.data[:87384]))
        return QImageReader(device).size()
    return QSize()


def _key(source: StoredSource | Base64Source) -> str:
    return source.digest if isinstance(source, StoredSource) else f"{len(source.data)}-{hash(source.data)}"


def _bytes(picture: Shown) -> int:
    return picture.width() * picture.height() * 4 if picture else 0


def _device(data: bytes) -> QBuffer:
    device = QBuffer()
    device.setData(QByteArray(data))
    device.open(QIODevice.OpenModeFlag.ReadOnly)
    return device


def _read(where: Path | str, size: QSize) -> QImage:
    """In the worker: decode straight to the wanted size. A null image when it cannot be read."""
    if isinstance(where, Path):
        reader = QImageReader(str(where))
        device = None
    else:
        device = _device(base64.b64decode(where))
        reader = QImageReader(device)
    # What a picture is is told by its first bytes; names lie.
    reader.setDecideFormatFromContent(True)
    reader.setAutoTransform(True)
    reader.setScaledSize(size)
    image = reader.read()
    del device
    return image
