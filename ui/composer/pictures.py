"""Pictures on their way into a message: as the person attached them, and as they will be sent."""

import math
import stat
from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QMimeData, QSize, Qt
from PySide6.QtGui import QImage, QImageReader, QImageWriter

from desktop_agent.vocabulary.errors import ImageRefused

if TYPE_CHECKING:
    from desktop_agent.conversation.picture_intake import ImportedPicture
    from desktop_agent.vocabulary.blocks import Image

SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".avif", ".heic", ".svg")
# Read no file that is certainly too large: the intake has its own, tighter limit.
MAX_FILE_SIZE = 100_000_000
_RAW_FORMATS = ("image/png", "image/jpeg", "image/webp", "image/gif")


@dataclass(frozen=True, slots=True)
class PendingPicture:
    """A picture that is ready to be sent, and what the person knows it by. `server` of tools that it came from."""

    name: str
    taken: "ImportedPicture"
    server: str = ""
    server_id: str = ""

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.taken.data)

    @property
    def tokens(self) -> int:
        """About how many tokens it will cost."""
        return estimated_tokens(self.taken.width, self.taken.height)


@dataclass(frozen=True, slots=True)
class UnreadablePicture:
    """A picture that was attached before, and whose file cannot be read now."""

    image: "Image"


class PictureIntake(Protocol):
    """Checks a picture, frees it of metadata and scales it. Raises ImageRefused."""

    def __call__(self, data: bytes, name: str) -> "Awaitable[ImportedPicture]":
        """The picture as it will be sent."""
        ...


def estimated_tokens(width: int, height: int) -> int:
    """OpenAI's rule for high detail: fit into 2048², shorter side to 768, then 170 for each tile of 512² and 85 more.

    Other providers count differently but land in the same range (developers.openai.com, "Images and vision").
    """
    scale = min(1.0, 2048 / max(width, height))
    scale *= min(1.0, 768 / max(1.0, min(width, height) * scale))
    tiles = math.ceil(width * scale / 512) * math.ceil(height * scale / 512)
    return 85 + 170 * tiles


def looks_like_picture(path: Path) -> bool:
    """By its name only: good enough to tell a dropped photo from a dropped text."""
    return path.suffix.lower() in SUFFIXES


def read_picture_file(path: Path) -> bytes:
    """The bytes of a picture file; blocks. Raises ImageRefused, also for what is no regular file."""
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise ImageRefused.unsupported(path.name)
        if about.st_size > MAX_FILE_SIZE:
            raise ImageRefused.too_large(path.name, "100 MB")
        return path.read_bytes()
    except OSError as error:
        raise ImageRefused.not_read(path.name, error) from error


def picture_from_mime(mime: QMimeData) -> bytes | QImage | None:
    """The picture on a clipboard: the bytes where the format can be sent, else the decoded image."""
    for name in _RAW_FORMATS:
        if mime.hasFormat(name):
            data = mime.data(name).data()
            if data:
                return bytes(data)
    image = mime.imageData()
    return image if isinstance(image, QImage) and not image.isNull() else None


def encode_png(image: QImage) -> bytes:
    """Encode; takes tens of milliseconds, so call it in a thread."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    QImageWriter(buffer, QByteArray(b"png")).write(image)
    return bytes(buffer.data().data())


def thumbnail(data: bytes, side: int) -> QImage:
    """The picture, cut to a square of `side` pixels; null if it cannot be drawn. Decodes: call it in a thread."""
    from desktop_agent.vocabulary.images import detect_media_type

    source = QBuffer()
    source.setData(QByteArray(data))
    source.open(QIODevice.OpenModeFlag.ReadOnly)
    # Told what it is: some of what Qt would find out by itself reads other files.
    reader = QImageReader(source, QByteArray((detect_media_type(data) or "").rpartition("/")[2].encode()))
    reader.setAutoDetectImageFormat(False)
    whole = reader.size()
    if whole.isValid():
        reader.setScaledSize(whole.scaled(QSize(side, side), Qt.AspectRatioMode.KeepAspectRatioByExpanding))
    image = reader.read()
    left, top = (image.width() - side) // 2, (image.height() - side) // 2
    return image if image.isNull() else image.copy(max(left, 0), max(top, 0), side, side)
