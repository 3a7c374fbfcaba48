"""From attached bytes to a picture that may be sent: checked, upright, without metadata, not too large.

What happens to which picture: a PNG, JPEG, WebP or still GIF that needs nothing keeps its bytes. Metadata is removed by
writing the picture anew. Of an animation only the first frame is kept, as PNG, because most servers refuse moving
pictures. BMP, TIFF and AVIF become PNG.
"""

import asyncio
import io
import math
import struct
import threading
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from desktop_agent.conversation.picture_metadata import has_metadata
from desktop_agent.vocabulary.errors import ImageRefused, Sentence
from desktop_agent.vocabulary.images import MediaType, media_type_of

if TYPE_CHECKING:
    from PIL.Image import Image

FILE_LIMIT = 50_000_000
PIXEL_LIMIT = 100_000_000
MAX_EDGE = 2048
JPEG_QUALITY = 90

# Nothing that starts another program (EPS). Pillow was perhaps built without the last ones.
_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "DIB", "TIFF", "WEBP", "AVIF")
_ORIENTATION = 0x0112
# A hundred megapixels take 400 MB while they are decoded. Also, catching warnings is not safe in two threads at once.
_one_at_a_time = threading.Lock()
# A colour profile fits only pixels of its own kind.
_COLOUR = frozenset({"RGB", "RGBA", "P", "PA"})
_NO_PROFILE = frozenset({"CMYK", "YCbCr", "LAB", "HSV"})


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
    with _one_at_a_time, warnings.catch_warnings():
        # Pillow also warns about what it refuses or repairs; the person gets one sentence, from here.
        warnings.simplefilter("ignore")
        with _opened(data, name) as image:
            if image.width * image.height > PIXEL_LIMIT:
                raise _too_many_pixels(name)
            try:
                return _prepared(image, data, max_edge)
            except _DAMAGED as error:
                raise ImageRefused.unreadable(name) from error


async def take(data: bytes, name: str = "", *, max_edge: int = MAX_EDGE) -> TakenPicture:
    """The same in a worker thread."""
    return await asyncio.to_thread(take_picture, data, name, max_edge=max_edge)


def tokens_estimate(width: int, height: int) -> int:
    """About how many tokens a picture costs, by the tiles of OpenAI's high detail; other models count differently.

    It is scaled to fit 2048 x 2048 and then to a short edge of 768; each tile of 512 x 512 costs 170, the whole 85.
    """
    scale = min(1.0, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height))
    tiles = math.ceil(width * scale / 512) * math.ceil(height * scale / 512)
    return 85 + 170 * tiles


# Pillow's plugins let these out of damaged files, each at its own place.
_DAMAGED = (OSError, SyntaxError, ValueError, EOFError, IndexError, KeyError, TypeError, OverflowError, struct.error)


def _opened(data: bytes, name: str) -> "Image":
    # Imported when the first picture comes: the window must not wait for it.
    from PIL import Image, UnidentifiedImageError

    Image.init()
    formats = [each for each in _FORMATS if each in Image.OPEN]
    try:
        return Image.open(io.BytesIO(data), formats=formats)
    except Image.DecompressionBombError as error:
        raise _too_many_pixels(name) from error
    except UnidentifiedImageError as error:
        if media_type_of(data) is None:
            raise ImageRefused.unsupported(name) from error
        raise ImageRefused.unreadable(name) from error
    except _DAMAGED as error:
        raise ImageRefused.unreadable(name) from error


def _too_many_pixels(name: str) -> ImageRefused:
    return ImageRefused.too_large(name, f"{PIXEL_LIMIT // 1_000_000} megapixels")


def _prepared(image: "Image", data: bytes, max_edge: int) -> TakenPicture:
    """Decode all of it, and write it anew only where something must change."""
    found = media_type_of(data)
    notes: list[Sentence] = []
    # MPO, a JPEG of some phones, holds the same picture twice (for depth or 3D) and does not move.
    if getattr(image, "is_animated", False) and image.format != "MPO":
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
    return TakenPicture(_written(changed, kept, image), kept, changed.width, changed.height, tuple(notes))


def _upright(image: "Image", notes: list[Sentence]) -> "Image":
    from PIL import ImageOps

    try:
        orientation = image.getexif().get(_ORIENTATION, 1)
    except _DAMAGED:
        # The pixels are good; only the note about them is not.
        orientation = 1
    if orientation not in range(2, 9):
        return image
    notes.append(Sentence("Turned upright, as the camera noted."))
    return ImageOps.exif_transpose(image)


def _scaled(image: "Image", max_edge: int, notes: list[Sentence]) -> "Image":
    longest = max(image.size)
    if longest <= max_edge:
        return image
    width, height = (max(1, round(edge * max_edge / longest)) for edge in image.size)
    before, after = f"{image.width} x {image.height}", f"{width} x {height}"
    values = {"before": before, "after": after, "limit": str(max_edge)}
    notes.append(
        Sentence("Scaled from {before} to {after} pixels: models take up to {limit} pixels on the longer edge.", values)
    )
    from PIL.Image import Resampling

    plain = _in_plain_mode(image)
    return plain.resize((width, height), Resampling.LANCZOS, reducing_gap=3.0)  # pyright: ignore[reportUnknownMemberType]  # Pillow's stub names a numpy type


def _in_plain_mode(image: "Image") -> "Image":
    """Grey or colours of 8 bits, with or without transparency: what every writer and every scaler takes."""
    if image.mode in {"L", "LA", "RGB", "RGBA"}:
        return image
    if image.mode[0] in "IF":
        return _in_8_bits(image)
    if image.has_transparency_data:
        return image.convert("RGBA")
    return image.convert("L" if image.mode == "1" else "RGB")


def _in_8_bits(image: "Image") -> "Image":
    """Deep grey scaled down; Pillow's own conversion would clip it to white."""
    from PIL import ImageMath

    brightest = 65535 if image.mode.startswith("I;16") else max(255, cast("tuple[float, float]", image.getextrema())[1])
    scaled = ImageMath.lambda_eval(lambda given: given["deep"] * 255 / brightest, deep=image.convert("F"))
    return cast("Image", scaled).convert("L")


def _written(image: "Image", media_type: MediaType, original: "Image") -> bytes:
    """Pixels and colour profile, and nothing else."""
    plain = _in_plain_mode(image)
    same_kind = (plain.mode in _COLOUR) == (original.mode in _COLOUR) and original.mode not in _NO_PROFILE
    profile = original.info.get("icc_profile") if same_kind else None
    # Pillow writes some of what it finds here back into the file, a comment for example.
    plain = plain.copy()
    plain.info = {}
    out = io.BytesIO()
    match media_type:
        case "image/jpeg":
            opaque = plain.convert("RGB") if plain.mode in {"LA", "RGBA"} else plain
            opaque.save(out, "JPEG", quality=JPEG_QUALITY, icc_profile=profile, exif=b"")
        case "image/webp":
            plain.save(out, "WEBP", quality=JPEG_QUALITY, icc_profile=profile or b"", exif=b"")
        case _:
            plain.save(out, "PNG", icc_profile=profile)
    return out.getvalue()
