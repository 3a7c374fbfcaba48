"""Prepares pictures: attached bytes are checked and stripped of metadata, and each is fitted to a model's limits.

Importing: a PNG, JPEG, WebP or still GIF that needs no change keeps its bytes. Metadata is removed by re-encoding. Of
an animation only the first frame is kept, as PNG, because most servers refuse moving pictures. BMP, TIFF and AVIF
become PNG. Fitting: the same bytes and limits always give the same result, and results are cached: what a server has
read already must not change from turn to turn, or its prompt cache is lost.
"""

import asyncio
import hashlib
import warnings
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from desktop_agent.conversation.picture_processing import (
    DECODE_ERRORS,
    encode_picture,
    fitted_size,
    has_metadata,
    has_transparency,
    is_animated,
    open_picture,
    pillow_lock,
    resize_picture,
    rotate_upright,
)
from desktop_agent.types.blocks import MediaType, detect_media_type
from desktop_agent.types.errors import ImageRefused, Sentence
from desktop_agent.types.providers import ImageLimits

if TYPE_CHECKING:
    from PIL.Image import Image


MAX_FILE_BYTES = 50_000_000
MAX_EDGE = 2048


@dataclass(frozen=True, slots=True)
class ImportedPicture:
    """A picture ready to be stored and sent. Width and height in pixels; `notes` say what was changed and why."""

    data: bytes = field(repr=False)
    media_type: MediaType
    width: int
    height: int
    notes: tuple[Sentence, ...] = ()


def import_picture(data: bytes, name: str = "", *, max_edge: int = MAX_EDGE) -> ImportedPicture:
    """Check and prepare a picture; its type is read from the content, `name` is only for sentences. Raises
    ImageRefused.

    Takes from milliseconds to seconds: call it in a thread, or use `import_picture_async`.
    """
    if len(data) > MAX_FILE_BYTES:
        raise ImageRefused.too_large(name, f"{MAX_FILE_BYTES // 1_000_000} MB")
    with pillow_lock, warnings.catch_warnings():
        # Pillow also warns about what it refuses or repairs; the person gets one sentence, from here.
        warnings.simplefilter("ignore")
        with open_picture(data, name) as image:
            try:
                return _prepare(image, data, max_edge)
            except DECODE_ERRORS as error:
                raise ImageRefused.unreadable(name) from error


async def import_picture_async(data: bytes, name: str = "") -> ImportedPicture:
    """Check and prepare a picture in a worker thread."""
    return await asyncio.to_thread(import_picture, data, name)


def _prepare(image: "Image", data: bytes, max_edge: int) -> ImportedPicture:
    """Decode all of it, and re-encode it only where something must change."""
    media_type = detect_media_type(data)
    notes: list[Sentence] = []
    if is_animated(image):
        media_type = None
        notes.append(Sentence("Only the first of several frames is kept."))
    elif media_type is None:
        notes.append(
            Sentence("Converted from {format} to PNG.", {"format": image.format or Sentence("another format")})
        )
    image.load()
    if media_type is not None and has_metadata(data, media_type):
        notes.append(Sentence("Hidden information about place, camera and time was removed."))
    changed = _scale_down(_turn_upright(image, notes), max_edge, notes)
    if media_type is not None and not notes:
        return ImportedPicture(data, media_type, image.width, image.height)
    target: MediaType = "image/png" if media_type is None or media_type == "image/gif" else media_type
    return ImportedPicture(encode_picture(changed, target, image), target, changed.width, changed.height, tuple(notes))


def _turn_upright(image: "Image", notes: list[Sentence]) -> "Image":
    turned = rotate_upright(image)
    if turned is None:
        return image
    notes.append(Sentence("Turned upright, as the camera noted."))
    return turned


def _scale_down(image: "Image", max_edge: int, notes: list[Sentence]) -> "Image":
    size = fitted_size(image.size, max_edge)
    if size == image.size:
        return image
    before, after = f"{image.width} x {image.height}", f"{size[0]} x {size[1]}"
    values = {"before": before, "after": after, "limit": str(max_edge)}
    notes.append(
        Sentence("Scaled from {before} to {after} pixels: models take up to {limit} pixels on the longer edge.", values)
    )
    return resize_picture(image, size)


CACHE_BYTES = 64_000_000
_QUALITIES = (85, 70, 55)
_SHRINK_FACTOR = 0.7
_MIN_EDGE = 64


@dataclass(frozen=True, slots=True)
class FittedPicture:
    """The picture to send. `reasons` say what had to be changed and why; lossless changes have none."""

    data: bytes = field(repr=False)
    media_type: MediaType
    reasons: tuple[Sentence, ...] = ()


@dataclass(frozen=True, slots=True)
class FitLimits:
    """What a picture must fit: a model's limits, and whether it is one of many."""

    limits: ImageLimits
    crowded: bool = False

    @property
    def max_edge(self) -> int | None:
        """Return the longest edge that is accepted, in pixels."""
        edges = (self.limits.max_edge, self.limits.many_images_max_edge if self.crowded else None)
        return min((edge for edge in edges if edge is not None), default=None)

    @property
    def needs_check(self) -> bool:
        """Return whether any picture at all could be refused."""
        return self != FitLimits(ImageLimits(max_count=self.limits.max_count, many_images=self.limits.many_images))

    def accepts(self, media_type: MediaType, size: int, width: int, height: int) -> bool:
        """Return whether a still picture can be sent as it is. `size` in bytes, edges in pixels."""
        limits = self.limits
        edges = (self.max_edge, limits.downscale_edge)
        return (
            media_type in limits.media_types
            and (limits.max_bytes is None or size <= limits.max_bytes)
            and all(edge is None or max(width, height) <= edge for edge in edges)
        )


def fit_picture(data: bytes, media_type: MediaType, fit: FitLimits, name: str = "") -> FittedPicture:
    """Change what must be changed. Raises ImageRefused for what is damaged or cannot be made small enough.

    Takes from milliseconds to seconds: call it in a thread, or use PictureFitter.
    """
    with pillow_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with open_picture(data, name) as image:
            is_moving = is_animated(image) and not fit.limits.accepts_animated
            if not is_moving and fit.accepts(media_type, len(data), *image.size):
                return FittedPicture(data, media_type)
            try:
                image.load()
                return _FittingWork(image, data, media_type, fit, name).result(is_moving=is_moving)
            except ImageRefused:
                raise
            except DECODE_ERRORS as error:
                raise ImageRefused.unreadable(name) from error


class _FittingWork:
    def __init__(self, image: "Image", data: bytes, media_type: MediaType, fit: FitLimits, name: str) -> None:
        self._original = image
        self._image = rotate_upright(image) or image
        self._data = data
        self._source_type: MediaType = media_type
        self._target_type: MediaType = media_type  # the type that is written
        self._fit = fit
        self._name = name
        self._about = Sentence("The picture “{name}”", {"name": name[:200]}) if name else Sentence("A picture")
        self._reasons: list[Sentence] = []

    def result(self, *, is_moving: bool) -> FittedPicture:
        before = self._image.size
        self._choose_type(is_moving=is_moving)
        self._scale(self._fit.max_edge)
        if self._image.size != before:
            values = {"picture": self._about, "before": _pixels(before), "after": _pixels(self._image.size)}
            self._reasons.append(
                Sentence("{picture} is sent with {after} instead of {before} pixels: this model takes no more.", values)
            )
        kind, encoded = self._source_type, self._data
        if self._reasons:
            kind, encoded = self._target_type, encode_picture(self._image, self._target_type, self._original)
        kind, encoded = self._reduce_to_useful(kind, encoded)
        limit = self._fit.limits.max_bytes
        if limit is not None and len(encoded) > limit:
            kind, encoded = self._reduce_bytes(limit)
        return FittedPicture(encoded, kind, tuple(self._reasons))

    def _choose_type(self, *, is_moving: bool) -> None:
        types = self._fit.limits.media_types
        writable: list[MediaType] = [media_type for media_type in types if media_type != "image/gif"] or ["image/png"]
        still: MediaType = "image/png" if "image/png" in writable else writable[0]
        if is_moving:
            values = {"picture": self._about}
            self._reasons.append(
                Sentence("{picture} is sent without its movement: this model reads still pictures only.", values)
            )
        elif self._source_type not in types:
            values = {"picture": self._about, "before": _type_name(self._source_type), "after": _type_name(still)}
            self._reasons.append(Sentence("{picture} is sent as {after}: this model does not read {before}.", values))
        if is_moving or self._source_type not in writable:
            self._target_type = still

    def _reduce_to_useful(self, kind: MediaType, encoded: bytes) -> tuple[MediaType, bytes]:
        """Reduce to as many pixels as the provider uses, where that saves bytes: it would scale it the same way."""
        before = self._image
        self._scale(self._fit.limits.downscale_edge)
        if self._image is before:
            return kind, encoded
        small = encode_picture(self._image, self._target_type, self._original)
        if len(small) < len(encoded):
            return self._target_type, small
        self._image = before
        return kind, encoded

    def _scale(self, edge: int | None) -> None:
        size = self._image.size if edge is None else fitted_size(self._image.size, edge)
        if size != self._image.size:
            self._image = resize_picture(self._image, size)

    def _reduce_bytes(self, limit: int) -> tuple[MediaType, bytes]:
        """Reduce quality until the file is small enough, and pixels where that is not enough."""
        kind: MediaType = self._lossy_type()
        while max(self._image.size) >= _MIN_EDGE:
            for quality in _QUALITIES:
                encoded = encode_picture(self._image, kind, self._original, quality)
                if len(encoded) <= limit:
                    values = {"picture": self._about, "limit": _megabytes(limit), "size": _megabytes(len(encoded))}
                    self._reasons.append(
                        Sentence("{picture} is sent with less detail, in {size}: this model takes {limit}.", values)
                    )
                    return kind, encoded
            self._scale(int(max(self._image.size) * _SHRINK_FACTOR))
        raise ImageRefused.too_large(self._name, _megabytes(limit))

    def _lossy_type(self) -> MediaType:
        lossy: list[MediaType] = ["image/jpeg", "image/webp"]
        if has_transparency(self._image):
            lossy.reverse()
        accepted: list[MediaType] = [media_type for media_type in lossy if media_type in self._fit.limits.media_types]
        return accepted[0] if accepted else self._target_type


class PictureFitter:
    """Fits pictures in worker threads and caches the results, up to CACHE_BYTES."""

    def __init__(self, room: int = CACHE_BYTES) -> None:
        self._room = room
        self._cache: OrderedDict[tuple[str, FitLimits, str], FittedPicture | None] = OrderedDict()
        self._size = 0

    async def fit(self, data: bytes, media_type: MediaType, fit: FitLimits, name: str = "") -> FittedPicture:
        """Return the picture as it is sent to this model. Raises ImageRefused."""
        if not fit.needs_check:
            return FittedPicture(data, media_type)
        key = (hashlib.sha256(data).hexdigest(), fit, name)
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key] or FittedPicture(data, media_type)
        fitted = await asyncio.to_thread(fit_picture, data, media_type, fit, name)
        # Another task may have fitted it meanwhile.
        if key not in self._cache:
            self._cache_result(key, fitted, data)
        return fitted

    def _cache_result(self, key: tuple[str, FitLimits, str], fitted: FittedPicture, data: bytes) -> None:
        self._cache[key] = None if fitted.data is data else fitted
        self._size += 0 if fitted.data is data else len(fitted.data)
        while self._size > self._room and len(self._cache) > 1:
            _, oldest = self._cache.popitem(last=False)
            self._size -= 0 if oldest is None else len(oldest.data)


def _pixels(size: tuple[int, int]) -> str:
    return f"{size[0]} x {size[1]}"


def _type_name(media_type: MediaType) -> str:
    return media_type.removeprefix("image/").upper()


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:.3g} MB"
