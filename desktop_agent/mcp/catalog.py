"""The catalog of a server: names and digests of tools, resources, prompts, and results converted to blocks."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from desktop_agent.mcp.client import McpClient
from desktop_agent.processes.foreign_code import (
    MAX_PARTS,
    clean_json,
    limit_parts,
    omitted_parts_note,
    replace_surrogates,
    unique_keys,
)
from desktop_agent.processes.worker_threads import run_by_size
from desktop_agent.types.blocks import (
    Base64Source,
    Image,
    Json,
    JsonObject,
    ResultPart,
    Text,
    decode_base64,
    detect_media_type,
    read_image_size,
)
from desktop_agent.types.errors import ImageRefused, Sentence, ToolFailed
from desktop_agent.types.hidden_characters import replace_hidden
from desktop_agent.types.mcp import McpPrompt, McpPromptArgument, McpResource, McpResourceTemplate, McpServerCatalog

if TYPE_CHECKING:
    import mcp_types


MAX_NAME_LENGTH = 64
MAX_DESCRIPTION_LENGTH = 8_000
_INVALID_CHARACTER = re.compile(r"[^a-zA-Z0-9_-]")
_SUFFIX_LENGTH = 8


def tool_name(server_id: str, tool: str) -> str:
    """Return `server__tool` as model servers accept names: 64 letters, digits, “_” and “-”.

    A name that had to be changed ends with a hash of the whole name, so that no two are equal and each is the same at
    every start.
    """
    plain = f"{server_id}__{_INVALID_CHARACTER.sub('_', tool)}"
    if plain == f"{server_id}__{tool}" and len(plain) <= MAX_NAME_LENGTH:
        return plain
    suffix = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:_SUFFIX_LENGTH]
    return f"{plain[: MAX_NAME_LENGTH - _SUFFIX_LENGTH - 1]}_{suffix}"


def tool_digest(description: str, schema: JsonObject, hints: JsonObject, connection: JsonObject) -> str:
    """Return the digest of a tool: permission rules apply only to a tool with the same digest."""
    text = json.dumps([description, schema, hints, connection], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def visible_text(text: str, limit: int = MAX_DESCRIPTION_LENGTH) -> str:
    """Return at most `limit` characters, hidden ones replaced: the model must not read what a person cannot see."""
    visible = replace_hidden(text[:limit])
    return visible if len(text) <= limit else f"{visible}…"


def visible_schema(schema: Any) -> Any:
    """Return a schema, which a model reads as a whole, with every text made visible. Raises RecursionError."""
    return redact_json(schema, replace_hidden)


MAX_TEXT = 400_000
"""Characters of text in one result."""
MAX_IMAGE_DATA = 20_000_000
"""Characters of base64 in one result."""
MAX_IMAGE_EDGE = 8_000
"""Pixels of a picture's side: a few bytes can claim millions."""
MAX_ERROR_LENGTH = 20_000
Redact = Callable[[str], str]
"""Removes secrets that a server was given and must not repeat."""


async def convert_call_result(result: "mcp_types.CallToolResult", redact: Redact = str) -> tuple[ResultPart, ...]:
    """Return text, pictures and structured content, redacted. Raises ToolFailed where the server says that the call
    failed.
    """
    if result.is_error:
        raise _call_failure(result, redact)
    dumped = [block.model_dump() for block in result.content[:MAX_PARTS]]
    return await run_by_size(lambda: _parts(result, redact), dumped, result.structured_content)


def _call_failure(result: "mcp_types.CallToolResult", redact: Redact) -> ToolFailed:
    message = "\n".join(text for block in result.content[:100] if (text := getattr(block, "text", "")))
    # Redacted before the cut: half a secret would not be recognised.
    shown = redact(replace_surrogates(message)[: 10 * MAX_ERROR_LENGTH])[:MAX_ERROR_LENGTH]
    sentence = Sentence("The tool failed: {words}", {"words": shown}) if shown else Sentence("The tool failed.")
    return ToolFailed(sentence, "Correct the call, or do without it.")


def _parts(result: "mcp_types.CallToolResult", redact: Redact) -> tuple[ResultPart, ...]:
    converter = ContentConverter(redact)
    blocks, rest = limit_parts(result.content)
    parts: list[ResultPart] = [converter.part(block) for block in blocks]
    structured = result.structured_content
    if structured is not None and not _is_wrapped(structured, parts):
        is_repeated = len(parts) == 1 and isinstance(parts[0], Text) and _is_same(parts[0].text, structured)
        parts = [*([] if is_repeated else parts), Json(value=redact_json(clean_json(structured), redact))]
    return (*parts, omitted_parts_note(rest)) if rest else tuple(parts)


def _is_same(text: str, structured: Any) -> bool:
    """Whether the text repeats the structured content, for clients that read only text."""
    try:
        return json.loads(text) == structured
    except (ValueError, RecursionError):
        return False


def _is_wrapped(structured: Any, parts: Sequence[ResultPart]) -> bool:
    """Whether the structured content is only the text in a `result`: servers do that for plain values."""
    if len(parts) != 1 or not isinstance(parts[0], Text) or not isinstance(structured, dict):
        return False
    values = cast("dict[str, Any]", structured)
    text = parts[0].text
    return values.keys() == {"result"} and (values["result"] == text or _is_same(text, values["result"]))


def redact_json(value: Any, redact: Redact) -> Any:
    """Return JSON with each text and each key redacted."""
    match value:
        case str():
            return redact(value)
        case dict():
            pairs = cast("dict[str, Any]", value).items()
            return unique_keys((redact(name), redact_json(item, redact)) for name, item in pairs)
        case list():
            return [redact_json(item, redact) for item in cast("list[Any]", value)]
        case _:
            return value


class ContentConverter:
    """Converts the content of one result, up to the limits."""

    def __init__(self, redact: Redact = str) -> None:
        self._redact = redact
        self._remaining_text = MAX_TEXT
        self._remaining_image_data = MAX_IMAGE_DATA

    def part(self, block: Any) -> Text | Image:
        """Convert a block of any kind; an unknown one becomes a note."""
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
        """Convert a text, as far as there is room."""
        # Redacted a little beyond the cut, in case the cut would halve a secret.
        redacted = self._redact(text[: self._remaining_text + MAX_ERROR_LENGTH])
        kept = redacted[: self._remaining_text]
        is_cut = len(kept) < len(redacted) or len(text) > self._remaining_text + MAX_ERROR_LENGTH
        self._remaining_text -= len(kept)
        note = f"\n[cut: {len(text):,} characters in all]" if is_cut else ""
        return Text(text=replace_surrogates(kept) + note)

    def image(self, data: str, name: str | None = None) -> Text | Image:
        """Convert a picture in base64; one that cannot be used becomes a note."""
        if len(data) > self._remaining_image_data:
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
        self._remaining_image_data -= len(data)
        return Image(source=source, name=name)

    def resource(self, contents: "mcp_types.TextResourceContents | mcp_types.BlobResourceContents") -> Text | Image:
        """Convert the contents of a resource, with its address."""
        text, address = getattr(contents, "text", None), str(contents.uri)[:500]
        if text is not None:
            return self.text(f"[resource: {address}]\n{text}")
        kind, data = contents.mime_type or "unknown type", str(getattr(contents, "blob", ""))
        if kind.startswith("image/"):
            return self.image(data, self._redact(address).rpartition("/")[2] or None)
        return self.text(f"[resource: {address}, {kind}, {len(data) * 3 // 4:,} bytes that are no text]")


MAX_TITLE_LENGTH = 300
MAX_URI_LENGTH = 4_000
"""A resource with a longer one is not offered: a shortened URI would name another."""
_MAX_TEXT_LENGTH = 2_000
_MAX_ARGUMENTS = 50
_MAX_COMPLETIONS = 100


async def load_catalog(client: McpClient) -> McpServerCatalog:
    """Return everything that a server offers beside tools. Raises ToolFailed."""
    resources = await client.resources()
    templates = await client.resource_templates()
    prompts = await client.prompts()
    return McpServerCatalog(
        server_id=client.lifecycle.server.id,
        title=client.lifecycle.server.title,
        resources=tuple(_resource(item) for item in resources if len(str(item.uri)) <= MAX_URI_LENGTH),
        templates=tuple(_template(item) for item in templates if len(item.uri_template) <= MAX_URI_LENGTH),
        prompts=tuple(_prompt(item) for item in prompts if len(item.name) <= MAX_URI_LENGTH),
    )


async def resource_blocks(result: "mcp_types.ReadResourceResult", redact: Redact = str) -> tuple[Text | Image, ...]:
    """Convert the contents of a resource; what is neither text nor a picture becomes a note."""
    return await _to_blocks(result.contents, redact, is_resource=True)


async def prompt_blocks(result: "mcp_types.GetPromptResult", redact: Redact = str) -> tuple[Text | Image, ...]:
    """Convert the messages of a prompt, in order."""
    return await _to_blocks([message.content for message in result.messages], redact)


def visible_completions(completions: Sequence[str]) -> tuple[str, ...]:
    """Return the first completions of an argument, made visible."""
    return tuple(visible_text(completion, _MAX_TEXT_LENGTH) for completion in completions[:_MAX_COMPLETIONS])


async def _to_blocks(blocks: "Sequence[Any]", redact: Redact, *, is_resource: bool = False) -> tuple[Text | Image, ...]:
    def convert() -> tuple[Text | Image, ...]:
        converter = ContentConverter(redact)
        parts = [converter.resource(block) if is_resource else converter.part(block) for block in blocks[:MAX_PARTS]]
        rest = len(blocks) - MAX_PARTS
        return (*parts, Text(text=f"[left out: {rest:,} more parts]")) if rest > 0 else tuple(parts)

    return await run_by_size(convert, [block.model_dump() for block in blocks[:MAX_PARTS]])


def _resource(resource: "mcp_types.Resource") -> McpResource:
    return McpResource(
        uri=str(resource.uri),
        **_names(resource),
        media_type=visible_text(resource.mime_type or "", MAX_TITLE_LENGTH),
        size=resource.size if resource.size is not None and resource.size >= 0 else None,
    )


def _template(template: "mcp_types.ResourceTemplate") -> McpResourceTemplate:
    return McpResourceTemplate(uri_template=template.uri_template, **_names(template))


def _prompt(prompt: "mcp_types.Prompt") -> McpPrompt:
    names = {**_names(prompt), "name": prompt.name}
    return McpPrompt(**names, arguments=tuple(_arguments(prompt.arguments or ())))


def _arguments(arguments: "Iterable[Any]") -> Iterable[McpPromptArgument]:
    for argument in list(arguments)[:_MAX_ARGUMENTS]:
        yield McpPromptArgument(
            argument.name, visible_text(argument.description or "", _MAX_TEXT_LENGTH), argument.required is True
        )


def _names(item: "mcp_types.Resource | mcp_types.ResourceTemplate | mcp_types.Prompt") -> dict[str, str]:
    return {
        "name": visible_text(item.name, MAX_TITLE_LENGTH),
        "title": visible_text(item.title or item.name, MAX_TITLE_LENGTH),
        "description": visible_text(item.description or "", _MAX_TEXT_LENGTH),
    }
