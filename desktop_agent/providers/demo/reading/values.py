"""JSON from a stranger: what is not there, or not of its kind, is empty. Pictures are measured from their bytes."""

import base64
import binascii
import io
import json
import re
from typing import Any, cast

from desktop_agent.providers.demo.question import Json, ReceivedPicture
from desktop_agent.providers.demo.refusals import RequestError

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def bad_request(message: str, code: str | None = None) -> RequestError:
    """A request that is wrong in itself."""
    return RequestError(400, message, code)


def parse_body(body: bytes) -> Json:
    """The body of a request. Raises Refusal."""
    try:
        read: object = json.loads(body)
    except (ValueError, RecursionError):
        raise bad_request("The body is not JSON.") from None
    return as_object(read)


def as_object(value: object) -> Json:
    """The object, or an empty one."""
    return cast("Json", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """The list, or an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_objects(value: object) -> list[Json]:
    """A list of objects; what is none is an empty one."""
    return [as_object(each) for each in as_list(value)]


def join_text(content: object, *kinds: str) -> str:
    """A string, or the texts of the parts of these types."""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in as_objects(content) if part.get("type") in kinds)


def parse_arguments(text: object) -> Json:
    """Arguments as a model writes them."""
    try:
        return as_object(json.loads(text or "{}")) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}


def require_tool_names(names: list[Any]) -> list[str]:
    """Names of tools as OpenAI and Anthropic take them. Raises Refusal for a bad one and for a name given twice."""
    for name in names:
        if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
            raise bad_request(f"A tool's name must match {_TOOL_NAME.pattern}.")
    if len(set(names)) != len(names):
        raise bad_request("Tool names must be unique.")
    return names


def picture_from_url(url: str) -> ReceivedPicture:
    """A picture by its address, which must hold the picture itself."""
    head, comma, text = url.partition(",")
    if not (comma and head.startswith("data:") and head.endswith(";base64")):
        return ReceivedPicture(problem="it came as a web address, and this demo opens no addresses")
    return picture_from_base64(text)


def picture_from_base64(text: object) -> ReceivedPicture:
    """A picture in base64."""
    try:
        data = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        return ReceivedPicture(problem="its base64 text is damaged")
    return _measure(data)


def _measure(data: bytes) -> ReceivedPicture:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "GIF", "WEBP")) as image:
            return ReceivedPicture(len(data), image.format or "", image.width, image.height)
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return ReceivedPicture(len(data), problem="its bytes are no picture that can be read")
