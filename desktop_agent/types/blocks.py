"""Content blocks of messages, and image sources: frozen, JSON and back without loss."""

import base64
import binascii
import struct
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from desktop_agent.types.errors import ImageRefused, Sentence
from desktop_agent.types.frozen_model import EMPTY, FrozenModel, TupleOf


class ImageDetail(StrEnum):
    """How closely the model looks at a picture, in OpenAI's words. Cost grows with it."""

    LOW = "low"
    HIGH = "high"
    AUTO = "auto"


MediaType = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
SUPPORTED_MEDIA_TYPES: tuple[MediaType, ...] = ("image/png", "image/jpeg", "image/gif", "image/webp")
PICTURE_EXTENSIONS: dict[MediaType, str] = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
}
"""How the names of stored and exported pictures end."""

MEDIA_TYPES_WITHOUT_GIF: tuple[MediaType, ...] = ("image/png", "image/jpeg", "image/webp")
_FRAME_STARTS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE_MARKERS = frozenset({0x01, *range(0xD0, 0xD9)})


def detect_media_type(data: bytes) -> MediaType | None:
    """Return what the first bytes say the picture is, or None. File names and headers lie; magic numbers rarely do."""
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
    """Return width and height in pixels from the header alone, or None where it does not have them.

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
    offset = 2
    while True:
        if data[offset] != 0xFF:
            raise ValueError
        marker = data[offset + 1]
        if marker == 0xFF:  # fill bytes may precede a marker
            offset += 1
        elif marker in _BARE_MARKERS:
            offset += 2
        elif marker in _FRAME_STARTS:
            height, width = struct.unpack_from(">HH", data, offset + 5)
            return width, height
        else:
            offset += 2 + int.from_bytes(data[offset + 2 : offset + 4], "big")


def _webp_size(data: bytes) -> tuple[int, int]:
    chunk_type = data[12:16]
    if chunk_type == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if chunk_type == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if chunk_type == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    raise ValueError


def decode_base64(text: str) -> bytes:
    """Decode strict base64 (RFC 4648 section 4, no line breaks). Raises ImageRefused."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ImageRefused.unreadable() from error


class UrlSource(FrozenModel):
    """An image that the provider fetches itself."""

    type: Literal["url"] = "url"
    url: str

    @field_validator("url")
    @classmethod
    def _require_web_url(cls, value: str) -> str:
        if not value.lower().startswith(("http://", "https://")):
            raise ImageRefused.not_a_web_address(value)
        return value


class Base64Source(FrozenModel):
    """An image by its bytes, for requests; the store keeps files instead (StoredSource)."""

    type: Literal["base64"] = "base64"
    media_type: MediaType
    data: str = Field(repr=False)

    @model_validator(mode="after")
    def _check_content(self) -> Self:
        detected = detect_media_type(decode_base64(self.data))
        if detected is None:
            raise ImageRefused.unsupported()
        if detected != self.media_type:
            values = {"claimed": self.media_type, "found": detected}
            sentence = Sentence("The picture is labelled {claimed} but contains {found}.", values)
            raise ImageRefused(sentence, "Label it with what it contains.")
        return self


# No picture format has more pixels in a row or column; the database takes no number above 2**63 - 1.
_MAX_SIZE = 2**31 - 1


class StoredSource(FrozenModel):
    """An image in the image folder, named by the SHA-256 of its bytes."""

    type: Literal["stored"] = "stored"
    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    media_type: MediaType
    size: int = Field(ge=0, le=_MAX_SIZE, description="bytes")
    width: int = Field(ge=1, le=_MAX_SIZE, description="pixels")
    height: int = Field(ge=1, le=_MAX_SIZE, description="pixels")


ImageSource = Annotated[UrlSource | Base64Source | StoredSource, Field(discriminator="type")]


# pydantic's own JsonValue is recursive and slow on large inputs; values from the wire were parsed as JSON already.
JsonObject = dict[str, Any]


class Citation(FrozenModel):
    """The source of a claim, as the provider gives it. `start` and `end` are offsets in the block's text."""

    title: str | None = None
    url: str | None = None
    quoted: str | None = None
    start: int | None = Field(default=None, ge=0)
    end: int | None = Field(default=None, ge=0)


class Text(FrozenModel):
    """Visible text, mostly Markdown.

    `metadata` is opaque and goes back with the text to the provider named in `provider`, and to no other.
    """

    type: Literal["text"] = "text"
    text: str
    citations: TupleOf[Citation] = EMPTY
    provider: str = ""
    metadata: JsonObject = Field(default_factory=dict)


class Json(FrozenModel):
    """A structured result of a tool."""

    type: Literal["json"] = "json"
    value: Any


class Image(FrozenModel):
    """A picture. `name` is what the person knows it by, never a path.

    Of a picture that a model made, `metadata` is opaque and goes back with it to the provider named in `provider`, and
    to no other.
    """

    type: Literal["image"] = "image"
    source: ImageSource
    detail: ImageDetail = ImageDetail.AUTO
    name: str | None = None
    provider: str = ""
    metadata: JsonObject = Field(default_factory=dict)


class Thinking(FrozenModel):
    """A finished reasoning block.

    `text` is only what the API chose to show. `metadata` is opaque and goes back byte for byte to the provider named in
    `provider`, and to no other.
    """

    type: Literal["thinking"] = "thinking"
    text: str
    provider: str
    metadata: JsonObject = Field(default_factory=dict)
    seconds: float | None = None


class ToolUse(FrozenModel):
    """A complete call. `malformed` has arguments that are no JSON object; such a call never runs.

    `metadata` is opaque and goes back with the call to the provider named in `provider`, and to no other.
    """

    type: Literal["tool_use"] = "tool_use"
    id: str
    name: str
    input: JsonObject = Field(default_factory=dict)
    malformed: str | None = None
    provider: str = ""
    metadata: JsonObject = Field(default_factory=dict)


class Outcome(StrEnum):
    """How a call ended. `unknown`: the process died while it ran, so it is never run again by itself."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DENIED = "denied"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    LIMIT = "limit"
    UNKNOWN = "unknown"


ResultPart = Annotated[Text | Json | Image, Field(discriminator="type")]


class ToolResult(FrozenModel):
    """The result of the call `tool_use_id`. `ran_with`: arguments that a person wrote in place of the model's."""

    type: Literal["tool_result"] = "tool_result"
    tool_use_id: str
    content: TupleOf[ResultPart] = EMPTY
    outcome: Outcome = Outcome.SUCCEEDED
    ran_with: JsonObject | None = None

    @property
    def is_error(self) -> bool:
        """Whether the model is told that the call failed."""
        return self.outcome is not Outcome.SUCCEEDED


class ServerStep(FrozenModel):
    """A step that the provider took on its own servers, such as a search or code that it ran.

    `name` is the provider's name for it, `text` describes it; nothing runs here. `raw` goes back unchanged to the
    provider named in `provider`, and to no other.
    """

    type: Literal["server_step"] = "server_step"
    provider: str
    name: str
    text: str = ""
    raw: Any


class Unknown(FrozenModel):
    """A block that this version does not know: kept and shown as such, never dropped.

    `provider` is who sent it and gets it back; empty for a block of another version of this program.
    """

    type: Literal["unknown"] = "unknown"
    raw: Any
    provider: str = ""


class Summary(FrozenModel):
    """A summary, for the model, of all messages before `first_kept_id`; people still see these.

    Only in a system message of the runtime's own; no dialect ever gets it.
    """

    type: Literal["summary"] = "summary"
    text: str
    first_kept_id: str


Block = Annotated[
    Text | Image | Thinking | ToolUse | ToolResult | ServerStep | Summary | Unknown,
    Field(discriminator="type"),
]
