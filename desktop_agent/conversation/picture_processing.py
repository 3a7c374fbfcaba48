"""Pillow: opening, turning, scaling and encoding pictures, and finding metadata in their bytes.

Hold `pillow_lock` around all that uses Pillow. Pillow takes from milliseconds to seconds: use a thread.
"""

import io
import struct
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from desktop_agent.types.blocks import MediaType, detect_media_type
from desktop_agent.types.errors import ImageRefused, Sentence

if TYPE_CHECKING:
    from PIL.Image import Image


MAX_PIXELS = 100_000_000
JPEG_QUALITY = 90

# No format that starts another program, as EPS does. Pillow may be built without the last ones.
_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "DIB", "TIFF", "WEBP", "AVIF")
_ORIENTATION = 0x0112
# A hundred megapixels take 400 MB while they are decoded. Also, catching warnings is not safe in two threads at once.
pillow_lock = threading.Lock()
# A colour profile fits only pixels of its own kind.
_COLOUR_MODES = frozenset({"RGB", "RGBA", "P", "PA"})
_MODES_WITHOUT_PROFILE = frozenset({"CMYK", "YCbCr", "LAB", "HSV"})

# Pillow's plugins raise these for damaged files.
DECODE_ERRORS = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    IndexError,
    KeyError,
    TypeError,
    OverflowError,
    struct.error,
)


def open_picture(data: bytes, name: str) -> "Image":
    """Return the picture, not decoded. Raises ImageRefused for what is none, or has more than MAX_PIXELS pixels."""
    # Imported when the first picture comes: the window must not wait for it.
    from PIL import Image, UnidentifiedImageError

    Image.init()
    formats = [format_ for format_ in _FORMATS if format_ in Image.OPEN]
    try:
        image = Image.open(io.BytesIO(data), formats=formats)
    except Image.DecompressionBombError as error:
        raise _too_many_pixels(name) from error
    except UnidentifiedImageError as error:
        if detect_media_type(data) is None:
            raise ImageRefused.unsupported(name) from error
        raise ImageRefused.unreadable(name) from error
    except DECODE_ERRORS as error:
        raise ImageRefused.unreadable(name) from error
    if image.width * image.height > MAX_PIXELS:
        image.close()
        raise _too_many_pixels(name)
    return image


def is_animated(image: "Image") -> bool:
    """Return whether it is an animation."""
    # MPO, a JPEG of some phones, holds the same picture twice (for depth or 3D) and does not move.
    return bool(getattr(image, "is_animated", False)) and image.format != "MPO"


def _too_many_pixels(name: str) -> ImageRefused:
    limit = Sentence("{megapixels} megapixels", {"megapixels": str(MAX_PIXELS // 1_000_000)})
    return ImageRefused.too_large(name, limit)


def has_transparency(image: "Image") -> bool:
    """Return whether any pixel is transparent."""
    return image.has_transparency_data


def rotate_upright(image: "Image") -> "Image | None":
    """Return the picture turned as the camera noted; None where it is upright already."""
    from PIL import ImageOps

    try:
        orientation = image.getexif().get(_ORIENTATION, 1)
    except DECODE_ERRORS:
        # The pixels are good, only the orientation is damaged.
        orientation = 1
    return ImageOps.exif_transpose(image) if orientation in range(2, 9) else None


def fitted_size(size: tuple[int, int], max_edge: int) -> tuple[int, int]:
    """Return width and height with the longer edge at most `max_edge`."""
    longest = max(size)
    if longest <= max_edge:
        return size
    width, height = (max(1, round(edge * max_edge / longest)) for edge in size)
    return width, height


def resize_picture(image: "Image", size: tuple[int, int]) -> "Image":
    """Return the picture in another size."""
    from PIL.Image import Resampling

    plain = to_plain_mode(image)
    return plain.resize(size, Resampling.LANCZOS, reducing_gap=3.0)  # pyright: ignore[reportUnknownMemberType]  # Pillow's stub names a numpy type


def to_plain_mode(image: "Image") -> "Image":
    """Return grey or colours of 8 bits, with or without transparency: what every encoder and scaler accepts."""
    if image.mode in {"L", "LA", "RGB", "RGBA"}:
        return image
    if image.mode[0] in "IF":
        return _to_8_bits(image)
    if image.has_transparency_data:
        return image.convert("RGBA")
    return image.convert("L" if image.mode == "1" else "RGB")


def _to_8_bits(image: "Image") -> "Image":
    """Scale deep grey down; Pillow's own conversion would clip it to white."""
    from PIL import ImageMath

    brightest = 65535 if image.mode.startswith("I;16") else max(255, cast("tuple[float, float]", image.getextrema())[1])
    scaled = ImageMath.lambda_eval(lambda bands: bands["deep"] * 255 / brightest, deep=image.convert("F"))
    return cast("Image", scaled).convert("L")


def encode_picture(image: "Image", media_type: MediaType, original: "Image", quality: int = JPEG_QUALITY) -> bytes:
    """Return the encoded pixels and colour profile, and nothing else."""
    plain = to_plain_mode(image)
    same_kind = (plain.mode in _COLOUR_MODES) == (
        original.mode in _COLOUR_MODES
    ) and original.mode not in _MODES_WITHOUT_PROFILE
    profile = original.info.get("icc_profile") if same_kind else None
    # Pillow writes some of the metadata it finds back into the file, a comment for example.
    plain = plain.copy()
    plain.info = {}
    out = io.BytesIO()
    match media_type:
        case "image/jpeg":
            _on_white(plain).save(out, "JPEG", quality=quality, icc_profile=profile, exif=b"")
        case "image/webp":
            plain.save(out, "WEBP", quality=quality, icc_profile=profile or b"", exif=b"")
        case _:
            plain.save(out, "PNG", icc_profile=profile)
    return out.getvalue()


def _on_white(plain: "Image") -> "Image":
    """Return the picture on white, as paper is; pixels under full transparency are often black."""
    if plain.mode not in {"LA", "RGBA"}:
        return plain
    from PIL import Image

    white = Image.new("RGBA", plain.size, "white")
    return Image.alpha_composite(white, plain.convert("RGBA")).convert("RGB")


# PNG (Third Edition), chunks that describe the pixels; all others are text, times, EXIF or private.
_PNG_PIXEL_CHUNKS = frozenset(
    b"IHDR PLTE IDAT IEND tRNS cHRM gAMA iCCP sBIT sRGB cICP mDCV cLLI bKGD hIST pHYs sPLT acTL fcTL fdAT".split()
)
_WEBP_PIXEL_CHUNKS = frozenset({b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF", b"ICCP"})


def has_metadata(data: bytes, media_type: MediaType) -> bool:
    """Return whether anything but pixels and colours is inside. What cannot be parsed counts as metadata."""
    try:
        match media_type:
            case "image/png":
                return _png_has_metadata(data)
            case "image/jpeg":
                return _jpeg_has_metadata(data)
            case "image/webp":
                return _webp_has_metadata(data)
            case "image/gif":
                return _gif_has_metadata(data)
    except (struct.error, IndexError):
        return True


def _png_has_metadata(data: bytes) -> bool:
    offset = 8
    while True:
        length, kind = struct.unpack_from(">I4s", data, offset)
        if kind not in _PNG_PIXEL_CHUNKS:
            return True
        offset += 12 + length
        if kind == b"IEND":
            return offset != len(data)


def _jpeg_has_metadata(data: bytes) -> bool:
    # What follows the end mark may be a film: phones append one to their "motion" photos.
    return not data.endswith(b"\xff\xd9") or any(_is_jpeg_metadata(*segment) for segment in _jpeg_segments(data))


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield marker and first bytes of each segment before the pixels (ITU T.81, annex B)."""
    offset = 2
    while True:
        prefix, marker = data[offset], data[offset + 1]
        if prefix != 0xFF:
            raise IndexError
        if marker == 0xFF:
            offset += 1
            continue
        (length,) = struct.unpack_from(">H", data, offset + 2)
        yield marker, data[offset + 4 : offset + 4 + min(length - 2, 16)]
        if marker == 0xDA:
            return
        offset += 2 + length


def _is_jpeg_metadata(marker: int, start: bytes) -> bool:
    if marker == 0xFE:
        return True
    if not 0xE0 <= marker <= 0xEF:
        return False
    colours = start.startswith((b"JFIF\0", b"ICC_PROFILE\0")) or (marker == 0xEE and start.startswith(b"Adobe"))
    return not colours


def _webp_has_metadata(data: bytes) -> bool:
    (size,) = struct.unpack_from("<I", data, 4)
    offset, end = 12, 8 + size
    while offset < end:
        kind, length = struct.unpack_from("<4sI", data, offset)
        if kind not in _WEBP_PIXEL_CHUNKS:
            return True
        offset += 8 + length + length % 2
    return len(data) > end


def _gif_has_metadata(data: bytes) -> bool:
    """Find comments, plain text and application blocks other than the loop counter (GIF89a)."""
    offset = 13 + _gif_palette_size(data[10])
    while data[offset] != 0x3B:
        if data[offset] == 0x2C:
            offset += 10 + _gif_palette_size(data[offset + 9]) + 1
        elif data[offset : offset + 2] == b"\x21\xf9" or data[offset : offset + 14] == b"\x21\xff\x0bNETSCAPE2.0":
            offset += 2
        else:
            return True
        while data[offset]:
            offset += 1 + data[offset]
        offset += 1
    return offset + 1 != len(data)


def _gif_palette_size(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0
