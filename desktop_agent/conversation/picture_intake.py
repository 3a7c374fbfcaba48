"""From attached bytes to a picture that may be sent: checked, upright, without metadata, not too large.

What happens to which picture: a PNG, JPEG, WebP or still GIF that needs nothing keeps its bytes. Metadata is removed by
writing the picture anew. Of an animation only the first frame is kept, as PNG, because most servers refuse moving
pictures. BMP, TIFF and AVIF become PNG.
"""

import asyncio
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from desktop_agent.conversation.picture_metadata import has_metadata
from desktop_agent.conversation.picture_pixels import (
    DECODE_ERRORS,
    encode_picture,
    fitted_size,
    is_animated,
    open_picture,
    pillow_lock,
    resize_picture,
    rotate_upright,
)
from desktop_agent.vocabulary.errors import ImageRefused, Sentence
from desktop_agent.vocabulary.images import MediaType, detect_media_type

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
    """Check and prepare a picture; content decides what it is, `name` is only for sentences. Raises ImageRefused.

    Takes from milliseconds to seconds: call it in a thread, or use `take`.
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


async def import_picture_async(data: bytes, name: str = "", *, max_edge: int = MAX_EDGE) -> ImportedPicture:
    """The same in a worker thread."""
    return await asyncio.to_thread(import_picture, data, name, max_edge=max_edge)


def _prepare(image: "Image", data: bytes, max_edge: int) -> ImportedPicture:
    """Decode all of it, and write it anew only where something must change."""
    found = detect_media_type(data)
    notes: list[Sentence] = []
    if is_animated(image):
        found = None
        notes.append(Sentence("Only the first of several frames is kept."))
    elif found is None:
        notes.append(Sentence("Converted from {format} to PNG.", {"format": image.format or "another format"}))
    image.load()
    if found is not None and has_metadata(data, found):
        notes.append(Sentence("Hidden information about place, camera and time was removed."))
    changed = _scale_down(_turn_upright(image, notes), max_edge, notes)
    if found is not None and not notes:
        return ImportedPicture(data, found, image.width, image.height)
    kept: MediaType = "image/png" if found is None or found == "image/gif" else found
    return ImportedPicture(encode_picture(changed, kept, image), kept, changed.width, changed.height, tuple(notes))


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
