"""What a Chat Completions request asks, as far as the scripted model looks at it."""

import base64
import binascii
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

from desktop_agent.providers.demo.http_wire import Unanswerable

MODEL = "demo"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReceivedPicture:
    """A picture as it really came: read from its bytes, not from its label."""

    size: int = 0
    format: str = ""
    width: int = 0
    height: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """A call of this model since the person last spoke, and what came back."""

    name: str
    arguments: Json
    result: str


@dataclass(frozen=True, slots=True)
class Question:
    """A request, read. `tools` is None when none were offered."""

    stream: bool
    wants_usage: bool
    reasons: bool
    text: str
    prompts: int
    pictures: tuple[ReceivedPicture, ...]
    tools: tuple[str, ...] | None
    answered: tuple[AnsweredCall, ...]
    length: int


def read_question(body: bytes) -> Question:
    """Read a request body; may take long for large pictures, so call it in a thread. Raises Unanswerable."""
    try:
        read: object = json.loads(body)
    except (ValueError, RecursionError):
        raise Unanswerable(HTTPStatus.BAD_REQUEST, "The body is not JSON.") from None
    asked = _object(read)
    if asked.get("model") != MODEL:
        raise Unanswerable(HTTPStatus.NOT_FOUND, f"There is no such model; this is “{MODEL}”.", "model_not_found")
    messages = [_object(each) for each in _list(asked.get("messages"))]
    if not messages:
        raise Unanswerable(HTTPStatus.BAD_REQUEST, "There are no messages.", "missing_required_parameter")
    prompts = [index for index, each in enumerate(messages) if each.get("role") == "user"]
    last = prompts[-1] if prompts else 0
    return Question(
        stream=asked.get("stream") is True,
        wants_usage=_object(asked.get("stream_options")).get("include_usage") is True,
        reasons=asked.get("reasoning_effort") != "none",
        text=_text(messages[last]),
        prompts=len(prompts),
        pictures=tuple(_pictures(messages[last])),
        tools=tuple(_tool_names(asked)) or None,
        answered=tuple(_answered(messages[last + 1 :])),
        length=sum(len(_text(each)) for each in messages),
    )


def _object(value: object) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _text(message: Json) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = (_object(part) for part in _list(content))
    return "\n".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")


def _tool_names(asked: Json) -> Iterator[str]:
    for tool in _list(asked.get("tools")):
        name = _object(_object(tool).get("function")).get("name")
        if isinstance(name, str):
            yield name


def _answered(messages: list[Json]) -> Iterator[AnsweredCall]:
    """Calls matched with their results by id, in the order of the results."""
    calls: dict[str, Json] = {}
    for message in messages:
        for call in _list(message.get("tool_calls")):
            calls[str(_object(call).get("id"))] = _object(_object(call).get("function"))
        if message.get("role") == "tool":
            asked = calls.get(str(message.get("tool_call_id")), {})
            yield AnsweredCall(str(asked.get("name", "")), _arguments(asked), _text(message))


def _arguments(asked: Json) -> Json:
    try:
        return _object(json.loads(asked.get("arguments") or "{}"))
    except (ValueError, TypeError, RecursionError):
        return {}


def _pictures(message: Json) -> Iterator[ReceivedPicture]:
    for part in _list(message.get("content")):
        if _object(part).get("type") == "image_url":
            yield _picture(str(_object(_object(part).get("image_url")).get("url", "")))


def _picture(url: str) -> ReceivedPicture:
    head, comma, text = url.partition(",")
    if not (comma and head.startswith("data:") and head.endswith(";base64")):
        return ReceivedPicture(problem="it came as a web address, and this demo opens no addresses")
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return ReceivedPicture(problem="its base64 text is damaged")
    return _measured(data)


def _measured(data: bytes) -> ReceivedPicture:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "GIF", "WEBP")) as image:
            return ReceivedPicture(len(data), image.format or "", image.width, image.height)
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return ReceivedPicture(len(data), problem="its bytes are no picture that can be read")
