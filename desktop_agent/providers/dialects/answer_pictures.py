"""Read the pictures that a model made, as servers write them in answers."""

import re
from typing import Any

from desktop_agent.providers.transport.json_codec import repair_text
from desktop_agent.types.blocks import (
    Base64Source,
    Image,
    ImageSource,
    JsonObject,
    UrlSource,
    decode_base64,
    detect_media_type,
)
from desktop_agent.types.errors import ImageRefused

_DATA_URL = re.compile(r"data:[^,]{0,200};base64,", re.IGNORECASE)


def parse_picture(text: Any, provider: str, metadata: JsonObject | None = None) -> Image | None:
    """Return the picture that base64, a data URL or a web address stands for; None for anything else.

    What it is called on the wire does not count: its first bytes say what it is.
    """
    source = _parse_source(text) if isinstance(text, str) else None
    return None if source is None else Image(source=source, provider=provider, metadata=metadata or {})


def _parse_source(text: str) -> ImageSource | None:
    try:
        if text[:8].lower().startswith(("http://", "https://")):
            return UrlSource(url=repair_text(text))
        prefix = _DATA_URL.match(text)
        data = text[prefix.end() :] if prefix else text
        media_type = detect_media_type(decode_base64(data))
    except ImageRefused:
        return None
    # The bytes were just checked: a large picture is not decoded twice.
    return None if media_type is None else Base64Source.model_construct(media_type=media_type, data=data)
