"""Images of a conversation: scaled thumbnails in a bounded cache, and images of the web that the person asked for."""

import base64
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol
from weakref import WeakKeyDictionary

from PySide6.QtCore import QBuffer, QByteArray, QCoreApplication, QIODevice, QObject, QSize, Signal
from PySide6.QtGui import QImage, QImageIOHandler, QImageReader, QPixmap

from desktop_agent.types.blocks import Base64Source, StoredSource, UrlSource, detect_media_type
from ui.transcript.workers import JobQueue

_MAX_THUMBNAIL_BYTES = 64 * 1024 * 1024
_DECODER_LIMIT_MB = 512
"""Of memory for one picture while it is decoded."""

MAX_PIXELS = 120_000_000
"""Larger ones are not decoded at all: four bytes each must fit into what is allowed."""

OptionalPixmap = QPixmap | None
"""None: it cannot be read."""


class ImageFiles(Protocol):
    """Where stored pictures lie."""

    def path_of(self, source: StoredSource) -> Path:
        """The file of a stored picture."""
        ...


@dataclass(frozen=True, slots=True)
class InMemoryImage:
    """A picture that lies in memory only, as the bytes of its file. Those with the same key are the same."""

    key: str
    name: str
    data: bytes = field(repr=False, compare=False)


ViewableImage = StoredSource | Base64Source | InMemoryImage
"""What can be decoded here."""


class ThumbnailCache:
    """Asked for a picture, it answers from its cache, or later through the callback."""

    def __init__(self, pictures: ImageFiles, job_queue: JobQueue) -> None:
        self.pictures = pictures
        self._job_queue = job_queue
        self._cache: OrderedDict[tuple[str, int, int], OptionalPixmap] = OrderedDict()
        self._size = 0

    def get(self, source: ViewableImage, size: QSize, then: Callable[[], None]) -> tuple[bool, OptionalPixmap]:
        """Whether it is there, and the picture. When it is not, `then` is called once it is."""
        key = (_key(source), size.width(), size.height())
        if key in self._cache:
            self._cache.move_to_end(key)
            return True, self._cache[key]
        where = locate_image(source, self.pictures)

        def arrived(image: QImage) -> None:
            self._cache_thumbnail(key, None if image.isNull() else QPixmap.fromImage(image))
            then()

        self._job_queue.submit(("picture", *key), lambda: decode_image(where, size), arrived)
        return False, None

    def _cache_thumbnail(self, key: tuple[str, int, int], picture: OptionalPixmap) -> None:
        self._cache[key] = picture
        self._size += _pixmap_bytes(picture)
        while self._size > _MAX_THUMBNAIL_BYTES and len(self._cache) > 1:
            _, old = self._cache.popitem(last=False)
            self._size -= _pixmap_bytes(old)


def locate_image(source: ViewableImage, pictures: ImageFiles) -> Path | str | bytes:
    """Where its bytes are: a file, base64, or here."""
    return pictures.path_of(source) if isinstance(source, StoredSource) else source.data


def image_size(source: ViewableImage | UrlSource) -> QSize:
    """In its own pixels; an invalid size where that is not known without decoding."""
    if isinstance(source, StoredSource):
        return QSize(source.width, source.height)
    if isinstance(source, Base64Source):
        # The head of every supported format names the size; 64 KiB hold it even behind a JPEG's metadata.
        return encoded_image_size(base64.b64decode(source.data[:87384]))
    if isinstance(source, InMemoryImage):
        return encoded_image_size(source.data)
    return QSize()


def encoded_image_size(data: bytes) -> QSize:
    """Width and height as it is shown, from the head of a file."""
    device = _device(data)
    reader = _reader(device, data)
    if reader is None:
        return QSize()
    size = reader.size()
    turned = reader.transformation() & QImageIOHandler.Transformation.TransformationRotate90
    # The reader does not keep its device alive.
    del reader, device
    return size.transposed() if turned else size


def _key(source: ViewableImage) -> str:
    if isinstance(source, InMemoryImage):
        return source.key
    return source.digest if isinstance(source, StoredSource) else f"{len(source.data)}-{hash(source.data)}"


def _pixmap_bytes(picture: OptionalPixmap) -> int:
    return picture.width() * picture.height() * 4 if picture else 0


def _device(data: bytes) -> QBuffer:
    device = QBuffer()
    device.setData(QByteArray(data))
    device.open(QIODevice.OpenModeFlag.ReadOnly)
    return device


def _reader(device: QBuffer, data: bytes) -> QImageReader | None:
    """For the kinds of pictures that messages hold, told by their first bytes; Qt would read any that it knows.

    Among those is SVG, which names further files, and Qt opens them.
    """
    kind = detect_media_type(data)
    if kind is None:
        return None
    reader = QImageReader(device, QByteArray(kind.removeprefix("image/").encode()))
    reader.setAutoDetectImageFormat(False)
    return reader


def read_image_bytes(where: Path | str | bytes) -> bytes:
    """Raises OSError and ValueError."""
    if isinstance(where, Path):
        return where.read_bytes()
    return where if isinstance(where, bytes) else base64.b64decode(where)


def decode_image(where: Path | str | bytes, size: QSize | None = None, most: int = 0) -> QImage:
    """In a worker: decode to the wanted size, or to its own with at most so many pixels. Null: it cannot be read."""
    try:
        data = read_image_bytes(where)
    except (OSError, ValueError):
        return QImage()
    QImageReader.setAllocationLimit(_DECODER_LIMIT_MB)
    device = _device(data)
    reader = _reader(device, data)
    if reader is None:
        return QImage()
    reader.setAutoTransform(True)
    own = reader.size()
    pixels = own.width() * own.height()
    if pixels > MAX_PIXELS:
        return QImage()
    if size is None and most and pixels > most:
        size = own * (most / pixels) ** 0.5
    elif size is not None and reader.transformation() & QImageIOHandler.Transformation.TransformationRotate90:
        size = size.transposed()
    # Enlarging is left to painting, which does it smoothly.
    if size is not None and not own.isEmpty() and size.width() < own.width():
        reader.setScaledSize(size)
    image = reader.read()
    del reader, device
    return image


_MAX_REMOTE_BYTES = 128 * 1024 * 1024


class LoadState(StrEnum):
    """How far a picture is."""

    UNASKED = "unasked"
    LOADING = "loading"
    FAILED = "failed"
    LOADED = "there"


@dataclass(frozen=True, slots=True)
class RemoteImageState:
    """A picture of the web as it stands; `size` is in its own pixels.

    `may_insist`: it was refused for where it lies, and the person may insist.
    """

    progress: LoadState = LoadState.UNASKED
    picture: InMemoryImage | None = None
    sentence: str = ""
    remedy: str = ""
    may_insist: bool = False
    size: QSize = field(default_factory=QSize)


class RemoteImageObserver(Protocol):
    """What shows a picture of the web."""

    def on_remote_image_change(self) -> None:
        """It stands differently now."""
        ...


class RemoteImages(QObject):
    """`wanted` carries an address, and whether private machines are allowed; `unwanted` an address to give up.

    Whoever hears them answers with `arrived`, `failed` or `given_up`.
    """

    wanted = Signal(str, bool)
    unwanted = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._states: OrderedDict[str, RemoteImageState] = OrderedDict()
        self._observers: WeakKeyDictionary[RemoteImageObserver, str] = WeakKeyDictionary()
        self._size = 0

    def state_of(self, address: str) -> RemoteImageState:
        """How it stands."""
        found = self._states.get(address)
        if found is None:
            return RemoteImageState()
        self._states.move_to_end(address)
        return found

    def loaded(self) -> list[str]:
        """The addresses of the pictures that are there."""
        return [address for address, remote in self._states.items() if remote.progress is LoadState.LOADED]

    def watch(self, address: str, watcher: RemoteImageObserver) -> None:
        """Tell this one of every change of the one address that it shows, for as long as it lives."""
        self._observers[watcher] = address

    def load(self, address: str, *, insists: bool = False) -> None:
        """The person wants it."""
        if self.state_of(address).progress not in {LoadState.LOADING, LoadState.LOADED}:
            self._set(address, RemoteImageState(LoadState.LOADING))
            self.wanted.emit(address, insists)

    def cancel(self, address: str) -> None:
        """The person does not want it any more."""
        if self.state_of(address).progress is LoadState.LOADING:
            self._set(address, RemoteImageState())
            self.unwanted.emit(address)

    def arrived(self, address: str, data: bytes, name: str) -> None:
        """Here it is. One whose size cannot be read could never be shown."""
        if self.state_of(address).progress is not LoadState.LOADING:
            return
        size = encoded_image_size(data)
        if size.isEmpty():
            translate = QCoreApplication.translate
            sentence = translate("Transcript", "This picture is damaged: its size cannot be read.")
            remedy = translate("Transcript", "Try again, or open its address in a browser.")
            self._set(address, RemoteImageState(LoadState.FAILED, None, sentence, remedy))
        else:
            self._set(address, RemoteImageState(LoadState.LOADED, InMemoryImage(address, name, data), size=size))

    def failed(self, address: str, sentence: str, remedy: str, *, may_insist: bool = False) -> None:
        """It cannot be shown, and what to do about that."""
        if self.state_of(address).progress is LoadState.LOADING:
            self._set(address, RemoteImageState(LoadState.FAILED, None, sentence, remedy, may_insist))

    def cancelled(self, address: str) -> None:
        """Nobody is loading it any more."""
        if self.state_of(address).progress is LoadState.LOADING:
            self._set(address, RemoteImageState())

    def _set(self, address: str, remote: RemoteImageState) -> None:
        self._size -= _image_bytes(self._states.pop(address, None))
        if remote.progress is not LoadState.UNASKED:
            self._states[address] = remote
        self._size += _image_bytes(remote)
        self._notify(address)
        while self._size > _MAX_REMOTE_BYTES and len(self._states) > 1:
            oldest, gone = self._states.popitem(last=False)
            self._size -= _image_bytes(gone)
            self._notify(oldest)

    def _notify(self, address: str) -> None:
        for watcher in [each for each, shows in self._observers.items() if shows == address]:
            watcher.on_remote_image_change()


def _image_bytes(remote: RemoteImageState | None) -> int:
    return len(remote.picture.data) if remote and remote.picture else 0
