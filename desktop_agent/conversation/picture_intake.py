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
    DAMAGED,
    fitted_size,
    moves,
    one_at_a_time,
    opened,
    scaled,
    upright,
    written,
)
from desktop_agent.vocabulary.errors import ImageRefused, Sentence
from desktop_agent.vocabulary.images import MediaType, media_type_of

if TYPE_CHECKING:
    from PIL.Image import Image

FILE_LIMIT = 50_000_000
MAX_EDGE = 2048


@dataclass(frozen=True, slots=True)
class TakenPicture:
    """A picture ready to be stored and sent. Width and height in pixels; `notes` say what was changed and why."""

    data: bytes = field(repr=False)
    media_type: MediaType
    width: int
    height: int
    notes: tuple[Sentence, ...] = ()


def take_picture(data: bytes, name: str = "", *, max_edge: int = MAX_EDGE) -> TakenPicture:
    """Check and prepare a picture; content decides what it is, `name` is only for sentences. Raises ImageRefused.

    Takes from milliseconds to seconds: call it in a thread, or use `take`.
    """
    if len(data) > FILE_LIMIT:
        raise ImageRefused.too_large(name, f"{FILE_LIMIT // 1_000_000} MB")
    with one_at_a_time, warnings.catch_warnings():
        # Pillow also warns about what it refuses or repairs; the person gets one sentence, from here.
        warnings.simplefilter("ignore")
        with opened(data, name) as image:
            try:
                return _prepared(image, data, max_edge)
            except DAMAGED as error:
                raise ImageRefused.unreadable(name) from error


async def take(data: bytes, name: str = "", *, max_edge: int = MAX_EDGE) -> TakenPicture:
    """The same in a worker thread."""
    return await asyncio.to_thread(take_picture, data, name, max_edge=max_edge)


def _prepared(image: "Image", data: bytes, max_edge: int) -> TakenPicture:
    """Decode all of it, and write it anew only where something must change."""
    found = media_type_of(data)
    notes: list[Sentence] = []
    if moves(image):
        found = None
        notes.append(Sentence("Only the first of several frames is kept."))
    elif found is None:
        notes.append(Sentence("Converted from {format} to PNG.", {"format": image.format or "another format"}))
    image.load()
    if found is not None and has_metadata(data, found):
        notes.append(Sentence("Hidden information about place, camera and time was removed."))
    changed = _scaled(_upright(image, notes), max_edge, notes)
    if found is not None and not notes:
        return TakenPicture(data, found, image.width, image.height)
    kept: MediaType = "image/png" if found is None or found == "image/gif" else found
    return TakenPicture(written(changed, kept, image), kept, changed.width, changed.height, tuple(notes))


def _upright(image: "Image", notes: list[Sentence]) -> "Image":
    turned = upright(image)
    if turned is None:
        return image
    notes.append(Sentence("Turned upright, as the camera noted."))
    return turned


def _scaled(image: "Image", max_edge: int, notes: list[Sentence]) -> "Image":
    size = fitted_size(image.size, max_edge)
    if size == image.size:
        return image
    before, after = f"{image.width} x {image.height}", f"{size[0]} x {size[1]}"
    values = {"before": before, "after": after, "limit": str(max_edge)}
    notes.append(
        Sentence("Scaled from {before} to {after} pixels: models take up to {limit} pixels on the longer edge.", values)
    )
    return scaled(image, size)
