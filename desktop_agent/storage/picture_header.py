"""The size of a picture, read from its header alone: nothing is decoded, so a hostile picture costs nothing.

Layouts: PNG (W3C, IHDR), GIF89a, JPEG (ITU T.81, start of frame), WebP (RFC 9649).
"""

import struct

_FRAME_STARTS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE_MARKERS = frozenset({0x01, *range(0xD0, 0xD9)})


def size_in_header(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels, or None when the header does not say."""
    try:
        width, height = _size(data)
    except (struct.error, IndexError, ValueError):
        return None
    return (width, height) if width > 0 and height > 0 else None


def _size(data: bytes) -> tuple[int, int]:
    if data.startswith(b"\x89PNG"):
        return struct.unpack_from(">II", data, 16)
    if data.startswith(b"GIF8"):
        return struct.unpack_from("<HH", data, 6)
    if data.startswith(b"\xff\xd8"):
        return _jpeg_size(data)
    if data[8:12] == b"WEBP":
        return _webp_size(data)
    raise ValueError


def _jpeg_size(data: bytes) -> tuple[int, int]:
    at = 2
    while True:
        if data[at] != 0xFF:
            raise ValueError
        marker = data[at + 1]
        if marker == 0xFF:  # fill bytes may stand before a marker
            at += 1
        elif marker in _BARE_MARKERS:
            at += 2
        elif marker in _FRAME_STARTS:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        else:
            at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")


def _webp_size(data: bytes) -> tuple[int, int]:
    form = data[12:16]
    if form == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if form == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if form == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    raise ValueError
