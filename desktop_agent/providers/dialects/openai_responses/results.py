"""Pictures and the results of tools, as input parts."""

from typing import Any

from desktop_agent.providers.dialects.servers import ServerQuirks
from desktop_agent.providers.transport.json_text import dumps
from desktop_agent.vocabulary.blocks import Image, Json, Text, ToolResult
from desktop_agent.vocabulary.errors import ImageRefused, ImagesNotSupported, WrongUse
from desktop_agent.vocabulary.images import Base64Source, UrlSource


def image_part(image: Image, quirks: ServerQuirks) -> dict[str, Any]:
    """A picture by its address or as a data URL. Raises WrongUse, ImagesNotSupported and ImageRefused."""
    source = image.source
    if isinstance(source, UrlSource):
        if not quirks.image_urls:
            raise ImagesNotSupported(
                "This server does not fetch pictures from the web.", "Attach the picture itself instead."
            )
        url = source.url
    elif isinstance(source, Base64Source):
        if source.media_type == "image/gif" and not quirks.image_gif:
            raise ImageRefused("This server does not read GIF pictures.", "Attach it as PNG or JPEG.")
        url = f"data:{source.media_type};base64,{source.data}"
    else:
        raise WrongUse("A stored picture must be loaded before a request is made.")
    return {"type": "input_image", "image_url": url, "detail": image.detail.value}


def encode_output(result: ToolResult, quirks: ServerQuirks) -> str | list[dict[str, Any]]:
    """A result as text, or as parts where it holds pictures and the server is OpenAI's: others read text only.

    One that did not succeed says so in words, because the wire has no field for it.
    """
    has_pictures = any(isinstance(part, Image) for part in result.content)
    said = f"[{result.outcome.value}]" if result.is_error else ""
    if not has_pictures or quirks.switch != "openai":
        lines = [_part_text(part) for part in result.content if isinstance(part, (Text, Json))]
        if has_pictures:
            lines.append("(The pictures follow in the next message.)")
        text = "\n".join(lines)
        return f"{said} {text}".rstrip() if said else text
    parts: list[dict[str, Any]] = [{"type": "input_text", "text": said}] if said else []
    for part in result.content:
        if isinstance(part, Image):
            parts.append(image_part(part, quirks))
        elif text := _part_text(part):
            parts.append({"type": "input_text", "text": text})
    return parts


def picture_messages(name: str, result: ToolResult, quirks: ServerQuirks) -> list[dict[str, Any]]:
    """A user message with the pictures of a result, for servers that read only text in results; none without any."""
    pictures = [image_part(part, quirks) for part in result.content if isinstance(part, Image)]
    if not pictures:
        return []
    content = [{"type": "input_text", "text": f"Pictures from the result of {name}:"}, *pictures]
    return [{"type": "message", "role": "user", "content": content}]


def _part_text(part: Text | Json) -> str:
    return part.text if isinstance(part, Text) else dumps(part.value).decode()
