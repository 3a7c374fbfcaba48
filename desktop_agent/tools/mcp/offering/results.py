"""What a server answers to a call, as parts of a result."""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from desktop_agent.tools.answers import (
    MAX_PARTS,
    clean_json,
    limit_parts,
    omitted_parts_note,
    replace_surrogates,
    unique_keys,
)
from desktop_agent.tools.in_thread import run_by_size
from desktop_agent.vocabulary.blocks import Image, Json, ResultPart, Text
from desktop_agent.vocabulary.errors import ImageRefused, Sentence, ToolFailed
from desktop_agent.vocabulary.images import Base64Source, decode_base64, detect_media_type, read_image_size

if TYPE_CHECKING:
    from mcp_types import BlobResourceContents, CallToolResult, TextResourceContents

MAX_TEXT = 400_000
"""Characters of text in one result."""
MAX_IMAGE_DATA = 20_000_000
"""Characters of base64 in one result."""
MAX_IMAGE_EDGE = 8_000
"""Pixels of a picture's side: a few bytes can say that it has millions."""
MAX_ERROR_LENGTH = 20_000
Redact = Callable[[str], str]
"""Takes out what a server was given and must not repeat."""


async def convert_call_result(result: "CallToolResult", redact: Redact = str) -> tuple[ResultPart, ...]:
    """Text, pictures and structured content, each text as `redact` leaves it.

    Raises ToolFailed where the server says that the call failed.
    """
    if result.is_error:
        raise _call_failure(result, redact)
    said = [block.model_dump() for block in result.content[:MAX_PARTS]]
    return await run_by_size(lambda: _parts(result, redact), said, result.structured_content)


def _call_failure(result: "CallToolResult", redact: Redact) -> ToolFailed:
    words = "\n".join(text for block in result.content[:100] if (text := getattr(block, "text", "")))
    # Cut after that: half a secret would be found no more.
    shown = redact(replace_surrogates(words)[: 10 * MAX_ERROR_LENGTH])[:MAX_ERROR_LENGTH]
    what = Sentence("The tool failed: {words}", {"words": shown}) if shown else Sentence("The tool failed.")
    return ToolFailed(what, "Correct the call, or do without it.")


def _parts(result: "CallToolResult", redact: Redact) -> tuple[ResultPart, ...]:
    converter = ContentConverter(redact)
    blocks, rest = limit_parts(result.content)
    parts: list[ResultPart] = [converter.part(block) for block in blocks]
    structured = result.structured_content
    if structured is not None and not _is_wrapped(structured, parts):
        said = len(parts) == 1 and isinstance(parts[0], Text) and _is_same(parts[0].text, structured)
        parts = [*([] if said else parts), Json(value=redact_json(clean_json(structured), redact))]
    return (*parts, omitted_parts_note(rest)) if rest else tuple(parts)


def _is_same(text: str, structured: Any) -> bool:
    """Whether the text is the same once more, for those who cannot take anything else."""
    try:
        return json.loads(text) == structured
    except (ValueError, RecursionError):
        return False


def _is_wrapped(structured: Any, parts: Sequence[ResultPart]) -> bool:
    """Whether it is only the text, wrapped up: servers do that for plain values."""
    if len(parts) != 1 or not isinstance(parts[0], Text) or not isinstance(structured, dict):
        return False
    values = cast("dict[str, Any]", structured)
    text = parts[0].text
    return values.keys() == {"result"} and (values["result"] == text or _is_same(text, values["result"]))


def redact_json(value: Any, redact: Redact) -> Any:
    """JSON with each text and each name as `redact` leaves it."""
    match value:
        case str():
            return redact(value)
        case dict():
            pairs = cast("dict[str, Any]", value).items()
            return unique_keys((redact(name), redact_json(each, redact)) for name, each in pairs)
        case list():
            return [redact_json(each, redact) for each in cast("list[Any]", value)]
        case _:
            return value


class ContentConverter:
    """Takes blocks until there is enough."""

    def __init__(self, redact: Redact = str) -> None:
        self._redact = redact
        self._text_left = MAX_TEXT
        self._image_data_left = MAX_IMAGE_DATA

    def part(self, block: Any) -> Text | Image:
        """A block of any kind; of one that is not known, a word about it."""
        match block.type:
            case "text":
                return self.text(block.text)
            case "image":
                return self.image(block.data)
            case "resource":
                return self.resource(block.resource)
            case "resource_link":
                return self.text(f"[resource: {block.uri} “{block.title or block.name}”]")
            case kind:
                return self.text(f"[left out: {kind} of {getattr(block, 'mime_type', 'unknown type')}]")

    def text(self, text: str) -> Text:
        """As much of it as there is room for."""
        # A little further, for a secret that the cut would halve.
        known = self._redact(text[: self._text_left + MAX_ERROR_LENGTH])
        kept = known[: self._text_left]
        is_cut = len(kept) < len(known) or len(text) > self._text_left + MAX_ERROR_LENGTH
        self._text_left -= len(kept)
        cut = f"\n[cut: {len(text):,} characters in all]" if is_cut else ""
        return Text(text=replace_surrogates(kept) + cut)

    def image(self, data: str, name: str | None = None) -> Text | Image:
        """One in base64, if it is one."""
        if len(data) > self._image_data_left:
            return self.text("[left out: a picture that is too large]")
        try:
            decoded = decode_base64(data)
            media_type = detect_media_type(decoded)
            if media_type is None:
                return self.text("[left out: a picture that is no PNG, JPEG, GIF or WebP]")
            size = read_image_size(decoded)
            if size is None:
                return self.text("[left out: a picture that is damaged]")
            if max(size) > MAX_IMAGE_EDGE:
                return self.text(f"[left out: a picture of {size[0]:,} × {size[1]:,} pixels]")
            source = Base64Source(media_type=media_type, data=data)
        except ImageRefused:
            return self.text("[left out: a picture that is damaged]")
        self._image_data_left -= len(data)
        return Image(source=source, name=name)

    def resource(self, contents: "TextResourceContents | BlobResourceContents") -> Text | Image:
        """What was read, with its address."""
        text, address = getattr(contents, "text", None), str(contents.uri)[:500]
        if text is not None:
            return self.text(f"[resource: {address}]\n{text}")
        kind, data = contents.mime_type or "unknown type", str(getattr(contents, "blob", ""))
        if kind.startswith("image/"):
            return self.image(data, self._redact(address).rpartition("/")[2] or None)
        return self.text(f"[resource: {address}, {kind}, {len(data) * 3 // 4:,} bytes that are no text]")
