"""Images: where they are, what they really contain, how closely a model should look."""

import base64
import binascii
import struct
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from desktop_agent.vocabulary.errors import ImageRefused


class ImageDetail(StrEnum):
    """How closely the model should look, in OpenAI's words: cost grows with it."""

    LOW = "low"
    HIGH = "high"
    AUTO = "auto"


MediaType = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
SUPPORTED_MEDIA_TYPES: tuple[MediaType, ...] = ("image/png", "image/jpeg", "image/gif", "image/webp")
MEDIA_TYPES_WITHOUT_GIF: tuple[MediaType, ...] = ("image/png", "image/jpeg", "image/webp")
_FRAME_STARTS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE_MARKERS = frozenset({0x01, *range(0xD0, 0xD9)})


def detect_media_type(data: bytes) -> MediaType | None:
    """What the first bytes say the picture is, or None. File names and headers lie; magic numbers rarely do."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return None


def read_image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels, read from the header alone, or None when it does not say.

    Nothing is decoded, so a hostile picture costs nothing. Layouts: PNG (W3C, IHDR), GIF89a, JPEG (ITU T.81, start of
    frame), WebP (RFC 9649).
    """
    try:
        width, height = _read_size(data)
    except (struct.error, IndexError, ValueError):
        return None
    return (width, height) if width > 0 and height > 0 else None


def _read_size(data: bytes) -> tuple[int, int]:
    if data.startswith(b"\x89PNG") and data[12:16] == b"IHDR":
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


def decode_base64(text: str) -> bytes:
    """Strict base64 (RFC 4648 section 4, no line breaks). Raises ImageRefused."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ImageRefused.unreadable() from error


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class UrlSource(_Frozen):
    """An image that the provider fetches itself."""

    type: Literal["url"] = "url"
    url: str

    @field_validator("url")
    @classmethod
    def _require_web_url(cls, value: str) -> str:
        if not value.lower().startswith(("http://", "https://")):
            raise ImageRefused.not_a_web_address(value)
        return value


class Base64Source(_Frozen):
    """The bytes themselves. Lives in a request; the store keeps files instead (StoredSource)."""

    type: Literal["base64"] = "base64"
    media_type: MediaType
    data: str = Field(repr=False)

    @model_validator(mode="after")
    def _check_content(self) -> Self:
        found = detect_media_type(decode_base64(self.data))
        if found is None:
            raise ImageRefused.unsupported()
        if found != self.media_type:
            raise ImageRefused.mislabelled(self.media_type, found)
        return self


class StoredSource(_Frozen):
    """A picture in the image folder, found by the SHA-256 of its bytes."""

    type: Literal["stored"] = "stored"
    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    media_type: MediaType
    size: int = Field(ge=0, description="bytes")
    width: int = Field(ge=1, description="pixels")
    height: int = Field(ge=1, description="pixels")


ImageSource = Annotated[UrlSource | Base64Source | StoredSource, Field(discriminator="type")]
