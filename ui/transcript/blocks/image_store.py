"""Images of a conversation: thumbnails in a bounded cache, and remote images that the person asked for."""

import base64
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol
from weakref import WeakKeyDictionary

from PySide6.QtCore import QBuffer, QObject, QSize, Signal
from PySide6.QtGui import QImage, QImageIOHandler, QImageReader, QPixmap

from desktop_agent.types.blocks import Base64Source, StoredSource, UrlSource
from ui.style.image_reader import image_reader
from ui.transcript.words import tr
from ui.transcript.workers import JobQueue

_MAX_THUMBNAIL_BYTES = 64 * 1024 * 1024
# Memory for decoding one image.
_DECODER_LIMIT_MB = 512

MAX_PIXELS = 120_000_000
"""Larger images are not decoded: four bytes for each pixel must fit into the memory limit."""

OptionalPixmap = QPixmap | None
"""None for an image that cannot be read."""


class ImageFiles(Protocol):
    """The files of stored images."""

    def path_of(self, source: StoredSource) -> Path: ...


@dataclass(frozen=True, slots=True)
class InMemoryImage:
    """An image that exists in memory only, as the bytes of its file. Equal keys mean equal images."""

    key: str
    name: str
    data: bytes = field(repr=False, compare=False)


ViewableImage = StoredSource | Base64Source | InMemoryImage
"""Images that can be decoded here."""


class ThumbnailCache:
    """Thumbnails in a bounded cache; missing ones are decoded in a worker."""

    def __init__(self, pictures: ImageFiles, job_queue: JobQueue) -> None:
        self.pictures = pictures
        self._job_queue = job_queue
        self._cache: OrderedDict[tuple[str, int, int], OptionalPixmap] = OrderedDict()
        self._size = 0

    def get(self, source: ViewableImage, size: QSize, then: Callable[[], None]) -> tuple[bool, OptionalPixmap]:
        """Return whether the image is cached, and the image. `then` is called once a missing one is."""
        key = (_key(source), size.width(), size.height())
        if key in self._cache:
            self._cache.move_to_end(key)
            return True, self._cache[key]
        location = locate_image(source, self.pictures)

        def on_decoded(image: QImage) -> None:
            # A block asks at every paint, and each of these calls comes here.
            if key not in self._cache:
                self._cache_thumbnail(key, None if image.isNull() else QPixmap.fromImage(image))
            then()

        self._job_queue.submit(("picture", *key), lambda: decode_image(location, size), on_decoded)
        return False, None

    def _cache_thumbnail(self, key: tuple[str, int, int], picture: OptionalPixmap) -> None:
        self._cache[key] = picture
        self._size += _pixmap_bytes(picture)
        while self._size > _MAX_THUMBNAIL_BYTES and len(self._cache) > 1:
            _, old = self._cache.popitem(last=False)
            self._size -= _pixmap_bytes(old)


def locate_image(source: ViewableImage, pictures: ImageFiles) -> Path | str | bytes:
    """Return the file, the base64 text or the bytes of an image."""
    return pictures.path_of(source) if isinstance(source, StoredSource) else source.data


def image_size(source: ViewableImage | UrlSource) -> QSize:
    """Return the size in pixels, invalid if it is unknown without decoding."""
    if isinstance(source, StoredSource):
        return QSize(source.width, source.height)
    if isinstance(source, Base64Source):
        # The header of every supported format has the size; 64 KiB include it even after a JPEG's metadata.
        return encoded_image_size(base64.b64decode(source.data[:87384]))
    if isinstance(source, InMemoryImage):
        return encoded_image_size(source.data)
    return QSize()


def encoded_image_size(data: bytes) -> QSize:
    """Return the displayed width and height, from the header of a file."""
    device = QBuffer()
    reader = image_reader(data, device)
    if reader is None:
        return QSize()
    size = reader.size()
    is_rotated = reader.transformation() & QImageIOHandler.Transformation.TransformationRotate90
    # The reader does not keep its device alive.
    del reader, device
    return size.transposed() if is_rotated else size


def _key(source: ViewableImage) -> str:
    if isinstance(source, InMemoryImage):
        return source.key
    return source.digest if isinstance(source, StoredSource) else f"{len(source.data)}-{hash(source.data)}"


def _pixmap_bytes(picture: OptionalPixmap) -> int:
    return picture.width() * picture.height() * 4 if picture else 0


def read_image_bytes(location: Path | str | bytes) -> bytes:
    """Return the bytes of an image. Raises OSError and ValueError."""
    if isinstance(location, Path):
        return location.read_bytes()
    return location if isinstance(location, bytes) else base64.b64decode(location)


def decode_image(location: Path | str | bytes, size: QSize | None = None, most: int = 0) -> QImage:
    """Decode to a size, or else to the image's own, scaled down to `most` pixels if that is not 0.

    Return a null image if it cannot be read.
    """
    try:
        data = read_image_bytes(location)
    except (OSError, ValueError):
        return QImage()
    QImageReader.setAllocationLimit(_DECODER_LIMIT_MB)
    device = QBuffer()
    reader = image_reader(data, device)
    if reader is None:
        return QImage()
    reader.setAutoTransform(True)
    natural_size = reader.size()
    pixels = natural_size.width() * natural_size.height()
    if pixels > MAX_PIXELS:
        return QImage()
    if size is None and most and pixels > most:
        size = natural_size * (most / pixels) ** 0.5
    elif size is not None and reader.transformation() & QImageIOHandler.Transformation.TransformationRotate90:
        size = size.transposed()
    # Enlarging is left to painting, which is smooth.
    if size is not None and not natural_size.isEmpty() and size.width() < natural_size.width():
        reader.setScaledSize(size)
    image = reader.read()
    del reader, device
    return image


_MAX_REMOTE_BYTES = 128 * 1024 * 1024


class LoadState(StrEnum):
    """The loading state of a remote image."""

    UNASKED = "unasked"
    LOADING = "loading"
    FAILED = "failed"
    LOADED = "there"


@dataclass(frozen=True, slots=True)
class RemoteImageState:
    """The state of a remote image; `size` is in its own pixels.

    With `may_insist` it was refused because of its address, and the person may load it anyway.
    """

    progress: LoadState = LoadState.UNASKED
    picture: InMemoryImage | None = None
    sentence: str = ""
    remedy: str = ""
    may_insist: bool = False
    size: QSize = field(default_factory=QSize)


class RemoteImageObserver(Protocol):
    """Displays a remote image, and is notified when its state changes."""

    def on_remote_image_change(self) -> None: ...


class RemoteImages(QObject):
    """The remote images of the window. `wanted` and `unwanted` ask for a download and for its end.

    `wanted` carries an address, and whether private hosts are allowed. The receiver answers with `arrived`, `failed` or
    `cancelled`.
    """

    wanted = Signal(str, bool)
    unwanted = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._states: OrderedDict[str, RemoteImageState] = OrderedDict()
        self._observers: WeakKeyDictionary[RemoteImageObserver, str] = WeakKeyDictionary()
        self._size = 0

    def state_of(self, address: str) -> RemoteImageState:
        """Return the state of an image."""
        remote = self._states.get(address)
        if remote is None:
            return RemoteImageState()
        self._states.move_to_end(address)
        return remote

    def loaded(self) -> list[str]:
        """Return the addresses of all loaded images."""
        return [address for address, remote in self._states.items() if remote.progress is LoadState.LOADED]

    def watch(self, address: str, observer: RemoteImageObserver) -> None:
        """Notify the observer of changes of the one address it displays, for as long as it lives."""
        self._observers[observer] = address

    def load(self, address: str, *, insists: bool = False) -> None:
        """Load an image on request of the person."""
        if self.state_of(address).progress not in {LoadState.LOADING, LoadState.LOADED}:
            self._set(address, RemoteImageState(LoadState.LOADING))
            self.wanted.emit(address, insists)

    def cancel(self, address: str) -> None:
        """Cancel loading."""
        if self.state_of(address).progress is LoadState.LOADING:
            self.cancelled(address)
            self.unwanted.emit(address)

    def arrived(self, address: str, data: bytes, name: str) -> None:
        """Store a loaded image; one without a readable size counts as failed."""
        if self.state_of(address).progress is not LoadState.LOADING:
            return
        size = encoded_image_size(data)
        if size.isEmpty():
            sentence = tr("This picture is damaged: its size cannot be read.")
            remedy = tr("Try again, or open its address in a browser.")
            self._set(address, RemoteImageState(LoadState.FAILED, None, sentence, remedy))
        else:
            self._set(address, RemoteImageState(LoadState.LOADED, InMemoryImage(address, name, data), size=size))

    def failed(self, address: str, sentence: str, remedy: str, *, may_insist: bool = False) -> None:
        """Store why an image cannot be displayed, and the remedy."""
        if self.state_of(address).progress is LoadState.LOADING:
            self._set(address, RemoteImageState(LoadState.FAILED, None, sentence, remedy, may_insist))

    def cancelled(self, address: str) -> None:
        """Reset an image that is no longer being loaded."""
        if self.state_of(address).progress is LoadState.LOADING:
            self._set(address, RemoteImageState())

    def _set(self, address: str, remote: RemoteImageState) -> None:
        self._size -= _image_bytes(self._states.pop(address, None))
        if remote.progress is not LoadState.UNASKED:
            self._states[address] = remote
        self._size += _image_bytes(remote)
        self._notify(address)
        # Only loaded images take memory; one that is loading would lose its download.
        for oldest in [other for other in self.loaded() if other != address]:
            if self._size <= _MAX_REMOTE_BYTES:
                break
            self._size -= _image_bytes(self._states.pop(oldest))
            self._notify(oldest)

    def _notify(self, address: str) -> None:
        for observer in [watcher for watcher, watched in self._observers.items() if watched == address]:
            observer.on_remote_image_change()


def _image_bytes(remote: RemoteImageState | None) -> int:
    return len(remote.picture.data) if remote and remote.picture else 0
