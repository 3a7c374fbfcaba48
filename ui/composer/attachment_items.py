"""What can be attached to a message: pictures, resources of MCP servers, and fetches still under way.

Also the notices about pictures that the model in use cannot read as they are.
"""

import math
import stat
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from PySide6.QtCore import QBuffer, QByteArray, QCoreApplication, QIODevice, QMimeData, QSize, Qt
from PySide6.QtGui import QImage, QImageWriter

from desktop_agent.types.errors import AgentError, ImageRefused
from desktop_agent.types.messages import AttachedText
from ui.style.image_reader import image_reader
from ui.style.text import format_bytes, format_number

if TYPE_CHECKING:
    import asyncio

    from desktop_agent.conversation.picture_preparation import ImportedPicture
    from desktop_agent.types.blocks import Image
    from desktop_agent.types.providers import ImageLimits


SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".avif", ".heic", ".svg")
# Do not read a file that is certainly too large: the intake has its own, tighter limit.
MAX_FILE_SIZE = 100_000_000
_MAX_MAGIC_BYTES = 64
_RAW_FORMATS = ("image/png", "image/jpeg", "image/webp", "image/gif")


@dataclass(frozen=True, slots=True)
class PendingPicture:
    """A picture that is ready to be sent. `server` is the MCP server that it came from."""

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
        """An estimate."""
        return estimated_tokens(self.taken.width, self.taken.height)


@dataclass(frozen=True, slots=True)
class UnreadablePicture:
    """A picture attached before whose file cannot be read now."""

    image: "Image"


class PictureIntake(Protocol):
    """Checks a picture, removes its metadata and scales it. Raises ImageRefused."""

    def __call__(self, data: bytes, name: str) -> "Awaitable[ImportedPicture]": ...


def estimated_tokens(width: int, height: int) -> int:
    """Return OpenAI's count for high detail: fit into 2048², shorter side to 768, then 170 a tile of 512² and 85 more.

    Other providers count differently but land in the same range (developers.openai.com, "Images and vision").
    """
    scale = min(1.0, 2048 / max(width, height))
    scale *= min(1.0, 768 / max(1.0, min(width, height) * scale))
    tiles = math.ceil(width * scale / 512) * math.ceil(height * scale / 512)
    return 85 + 170 * tiles


def looks_like_picture(path: Path) -> bool:
    """Guess by the suffix: good enough to tell a dropped photo from a dropped text."""
    return path.suffix.lower() in SUFFIXES


def read_picture_file(path: Path) -> bytes:
    """Read a picture file; blocks. Raises ImageRefused, also if it is not a regular file."""
    try:
        file_stat = path.stat()
        if not stat.S_ISREG(file_stat.st_mode):
            raise ImageRefused.unsupported(path.name)
        if file_stat.st_size > MAX_FILE_SIZE:
            raise ImageRefused.too_large(path.name, "100 MB")
        return path.read_bytes()
    except OSError as error:
        raise ImageRefused.not_read(path.name, error) from error


def read_other_file(path: Path) -> "AttachedText | ServerPicture":
    """Read a file whose name is not that of a picture; blocks. Raises ImageRefused and WrongUse."""
    # Late: nothing is attached when the window is drawn first.
    from ui.bridge.desktop.links import read_text_file

    if _begins_like_picture(path):
        return ServerPicture("", path.name, read_picture_file(path))
    # Without its folder: a model has no use for it.
    return AttachedText(path.name, read_text_file(path))


def _begins_like_picture(path: Path) -> bool:
    from desktop_agent.types.blocks import detect_media_type

    try:
        # Opening a named pipe would wait for a writer.
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return detect_media_type(file.read(_MAX_MAGIC_BYTES)) is not None
    except OSError:
        return False


def picture_from_mime(mime: QMimeData) -> bytes | QImage | None:
    """Return the picture on a clipboard: the bytes where the format can be sent, else the decoded image."""
    for name in _RAW_FORMATS:
        if mime.hasFormat(name):
            data = mime.data(name).data()
            if data:
                return bytes(data)
    image = mime.imageData()
    return image if isinstance(image, QImage) and not image.isNull() else None


def encode_png(image: QImage) -> bytes:
    """Encode as PNG. Takes tens of milliseconds: call it in a thread."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    QImageWriter(buffer, QByteArray(b"png")).write(image)
    return bytes(buffer.data().data())


def thumbnail(data: bytes, side: int) -> QImage:
    """Decode and crop to a square of `side` pixels; null if it cannot be decoded. Call it in a thread."""
    device = QBuffer()
    reader = image_reader(data, device)
    if reader is None:
        return QImage()
    size = reader.size()
    if size.isValid():
        reader.setScaledSize(size.scaled(QSize(side, side), Qt.AspectRatioMode.KeepAspectRatioByExpanding))
    image = reader.read()
    left, top = (image.width() - side) // 2, (image.height() - side) // 2
    return image if image.isNull() else image.copy(max(left, 0), max(top, 0), side, side)


def picture_notices(
    pictures: Sequence[PendingPicture], limits: "ImageLimits | None", *, can_see: bool | None
) -> list[str]:
    """Return a sentence for each thing that will be changed about the pictures, in the person's language.

    Pictures are made to fit when they are sent: another format, fewer pixels, a smaller file; of too
    many, only the last ones.
    """
    translate = QCoreApplication.translate
    if can_see is False:
        return [
            translate(
                "Pictures",
                "This model cannot see pictures. Choose another model, or remove them before you send.",
            )
        ]
    # Late: nothing is attached when the window is drawn first.
    from desktop_agent.types.providers import ImageLimits

    limits = limits or ImageLimits()
    notices = [words for picture in pictures if (words := _conversion_notice(picture, limits))]
    if limits.max_count is not None and len(pictures) > limits.max_count:
        words = translate("Pictures", "This model takes at most {0} pictures: the first of these are left out.")
        notices.append(words.format(limits.max_count))
    return notices + _scaling_notices(pictures, limits)


def _conversion_notice(picture: PendingPicture, limits: "ImageLimits") -> str:
    translate = QCoreApplication.translate
    if picture.taken.media_type not in limits.media_types:
        kind = picture.taken.media_type.removeprefix("image/").upper()
        words = translate("Pictures", "“{0}” is sent in another format: this model does not read {1}.")
        return words.format(picture.name, kind)
    if limits.max_bytes is not None and picture.size > limits.max_bytes:
        words = translate("Pictures", "“{0}” is made smaller: this model takes at most {1}.")
        return words.format(picture.name, format_bytes(limits.max_bytes))
    return ""


def _scaling_notices(pictures: Sequence[PendingPicture], limits: "ImageLimits") -> list[str]:
    crowded = limits.many_images is not None and len(pictures) > limits.many_images
    edges = [limits.max_edge, limits.downscale_edge, limits.many_images_max_edge if crowded else None]
    max_edge = min((edge for edge in edges if edge is not None), default=None)
    names = [
        picture.name
        for picture in pictures
        if max_edge is not None and max(picture.taken.width, picture.taken.height) > max_edge
    ]
    translate = QCoreApplication.translate
    if max_edge is None or not names:
        return []
    if len(names) == 1:
        words = translate("Pictures", "“{0}” is scaled down: this model sees at most {1} pixels a side.")
        return [words.format(names[0], format_number(max_edge))]
    words = translate("Pictures", "{0} pictures are scaled down: this model sees at most {1} pixels a side.")
    return [words.format(len(names), format_number(max_edge))]


@dataclass(frozen=True, slots=True)
class ServerPicture:
    """A picture of an MCP server, or without a server of a file, as it came."""

    server: str
    title: str
    data: bytes
    server_id: str = ""


@dataclass(frozen=True, slots=True)
class FetchResult:
    """What was fetched, and why something was not. `folder` is the path of a folder that was dropped as a file."""

    items: Sequence[PendingPicture | AttachedText] = ()
    problems: Sequence[AgentError] = ()
    folder: str = ""


class AttachmentFetch:
    """A fetch that runs once, and goes on when the chip that showed it is gone."""

    def __init__(
        self, name: str, fetch: Callable[[], Coroutine[Any, Any, FetchResult]], *, is_picture: bool = False
    ) -> None:
        self.name = name
        self.is_picture = is_picture
        self._fetch = fetch
        self._task: asyncio.Task[FetchResult] | None = None

    async def result(self) -> FetchResult:
        """Start the fetch if need be, and wait for it. Raises whatever the fetch raises."""
        # Late: the window is drawn before the loop runs.
        import asyncio

        if self._task is None:
            self._task = asyncio.create_task(self._fetch())
        return await asyncio.shield(self._task)

    def cancel(self) -> None:
        """Cancel the fetch."""
        if self._task is not None:
            self._task.cancel()
