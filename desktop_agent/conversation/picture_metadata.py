"""Whether the bytes of a picture carry more than the picture: place, camera, comments, a second file behind the end."""

import struct
from collections.abc import Iterator

from desktop_agent.vocabulary.images import MediaType

# PNG (Third Edition), chunks that say how the pixels look; all others are text, times, EXIF or private.
_PNG_PIXEL_CHUNKS = frozenset(
    b"IHDR PLTE IDAT IEND tRNS cHRM gAMA iCCP sBIT sRGB cICP mDCV cLLI bKGD hIST pHYs sPLT acTL fcTL fdAT".split()
)
_WEBP_PIXEL_CHUNKS = frozenset({b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF", b"ICCP"})


def has_metadata(data: bytes, media_type: MediaType) -> bool:
    """True when anything but pixels and colours is inside. What cannot be followed counts as metadata."""
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
    at = 8
    while True:
        length, kind = struct.unpack_from(">I4s", data, at)
        if kind not in _PNG_PIXEL_CHUNKS:
            return True
        at += 12 + length
        if kind == b"IEND":
            return at != len(data)


def _jpeg_has_metadata(data: bytes) -> bool:
    # What follows the end mark may be a film: phones append one to their "motion" photos.
    return not data.endswith(b"\xff\xd9") or any(_is_jpeg_metadata(*segment) for segment in _jpeg_segments(data))


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Marker and first bytes of each segment before the pixels (ITU T.81, annex B)."""
    at = 2
    while True:
        prefix, marker = data[at], data[at + 1]
        if prefix != 0xFF:
            raise IndexError
        if marker == 0xFF:
            at += 1
            continue
        (length,) = struct.unpack_from(">H", data, at + 2)
        yield marker, data[at + 4 : at + 4 + min(length - 2, 16)]
        if marker == 0xDA:
            return
        at += 2 + length


def _is_jpeg_metadata(marker: int, start: bytes) -> bool:
    if marker == 0xFE:
        return True
    if not 0xE0 <= marker <= 0xEF:
        return False
    colours = start.startswith((b"JFIF\0", b"ICC_PROFILE\0")) or (marker == 0xEE and start.startswith(b"Adobe"))
    return not colours


def _webp_has_metadata(data: bytes) -> bool:
    (size,) = struct.unpack_from("<I", data, 4)
    at, end = 12, 8 + size
    while at < end:
        kind, length = struct.unpack_from("<4sI", data, at)
        if kind not in _WEBP_PIXEL_CHUNKS:
            return True
        at += 8 + length + length % 2
    return len(data) > end


def _gif_has_metadata(data: bytes) -> bool:
    """Comments, plain text and application blocks other than the one that counts loops (GIF89a)."""
    at = 13 + _gif_palette_size(data[10])
    while data[at] != 0x3B:
        if data[at] == 0x2C:
            at += 10 + _gif_palette_size(data[at + 9]) + 1
        elif data[at : at + 2] == b"\x21\xf9" or data[at : at + 14] == b"\x21\xff\x0bNETSCAPE2.0":
            at += 2
        else:
            return True
        while data[at]:
            at += 1 + data[at]
        at += 1
    return at + 1 != len(data)


def _gif_palette_size(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0
