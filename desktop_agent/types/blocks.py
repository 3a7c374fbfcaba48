"""Content blocks of messages, and image sources: frozen, JSON and back without loss."""

import base64
import binascii
import struct
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from desktop_agent.types.errors import ImageRefused


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


# pydantic's own JsonValue is recursive and slow on large inputs; what comes from the wire was parsed as JSON already.
JsonObject = dict[str, Any]


class _Block(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Citation(_Block):
    """Where a claim comes from, as the provider says. `start` and `end` are characters of the text it stands in."""

    title: str | None = None
    url: str | None = None
    quoted: str | None = None
    start: int | None = Field(default=None, ge=0)
    end: int | None = Field(default=None, ge=0)


class Text(_Block):
    """Visible text, Markdown by habit.

    `metadata` is opaque and goes back with the text to the provider named in `provider`, and to no other.
    """

    type: Literal["text"] = "text"
    text: str
    citations: tuple[Citation, ...] = ()
    provider: str = ""
    metadata: JsonObject = Field(default_factory=dict)

    if TYPE_CHECKING:

        def __init__(
            self, *, text: str, citations: Sequence[Citation] = (), provider: str = "", metadata: JsonObject = ...
        ) -> None: ...


class Json(_Block):
    """A structured result of a tool."""

    type: Literal["json"] = "json"
    value: Any


class Image(_Block):
    """A picture. `name` is what the person knows it by, never a path."""

    type: Literal["image"] = "image"
    source: ImageSource
    detail: ImageDetail = ImageDetail.AUTO
    name: str | None = None


class Thinking(_Block):
    """A finished reasoning block.

    `text` is only what the API chose to show. `metadata` is opaque and replayed byte for byte to the provider
    named in `provider`, and to no other.
    """

    type: Literal["thinking"] = "thinking"
    text: str
    provider: str
    metadata: JsonObject = Field(default_factory=dict)
    seconds: float | None = None


class ToolUse(_Block):
    """A complete call. `malformed` keeps the arguments that could not be read as an object; such a call never runs.

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
    """How a call ended. `unknown`: it had started when the process died, so it is never run again by itself."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DENIED = "denied"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    LIMIT = "limit"
    UNKNOWN = "unknown"


ResultPart = Annotated[Text | Json | Image, Field(discriminator="type")]


class ToolResult(_Block):
    """The answer to the call `tool_use_id`. `ran_with`: arguments that a person wrote in place of the model's."""

    type: Literal["tool_result"] = "tool_result"
    tool_use_id: str
    content: tuple[ResultPart, ...] = ()
    outcome: Outcome = Outcome.SUCCEEDED
    ran_with: JsonObject | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            tool_use_id: str,
            content: Sequence[ResultPart] = (),
            outcome: Outcome = Outcome.SUCCEEDED,
            ran_with: JsonObject | None = None,
        ) -> None: ...

    @property
    def is_error(self) -> bool:
        """Whether the model should be told that the call did not succeed."""
        return self.outcome is not Outcome.SUCCEEDED


class ServerStep(_Block):
    """A step that the provider took on its own servers: a search, code that it ran, what came of it.

    `name` is the provider's word for it, `text` says in words what it did; nothing is run here. `raw` goes back
    unchanged to the provider named in `provider`, and to no other.
    """

    type: Literal["server_step"] = "server_step"
    provider: str
    name: str
    text: str = ""
    raw: Any


class Unknown(_Block):
    """A block that this version does not know: kept and shown as such, never dropped.

    `provider` is who sent it and gets it back; empty for what an unknown version of this program wrote.
    """

    type: Literal["unknown"] = "unknown"
    raw: Any
    provider: str = ""


class Summary(_Block):
    """What was said before the message `first_kept_id`, in short, for the model; people still see all of it.

    Only in a system message of the runtime's own; no dialect ever meets it.
    """

    type: Literal["summary"] = "summary"
    text: str
    first_kept_id: str


Block = Annotated[
    Text | Image | Thinking | ToolUse | ToolResult | ServerStep | Summary | Unknown,
    Field(discriminator="type"),
]
