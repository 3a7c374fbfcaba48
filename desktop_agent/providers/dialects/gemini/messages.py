"""Encode the history for generateContent: contents of `user` and `model`, results of calls, and pictures.

A signature goes back on the part it came with, byte for byte, and only to the model that made it
(ai.google.dev/gemini-api/docs/thought-signatures).
"""

import re
from dataclasses import dataclass
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from desktop_agent.providers.dialects import request_building
from desktop_agent.providers.dialects.gemini.response_parts import PROVIDER
from desktop_agent.providers.dialects.request_building import NO_RESULT, NO_SIGNATURE, results_after
from desktop_agent.providers.transport.json_codec import dumps, is_object
from desktop_agent.types.blocks import (
    MEDIA_TYPES_WITHOUT_GIF,
    Base64Source,
    Block,
    Image,
    Json,
    JsonObject,
    Outcome,
    ServerStep,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Unknown,
    UrlSource,
)
from desktop_agent.types.errors import ImageRefused, WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import StopReason
from desktop_agent.types.providers import ImageLimits

# ai.google.dev/gemini-api/docs/image-understanding; one request carries 100 MB of them at most, in base64.
MAX_INLINE_BYTES = 100 * 1000 * 1000
PICTURE_LIMITS = ImageLimits(
    media_types=MEDIA_TYPES_WITHOUT_GIF,
    max_bytes=MAX_INLINE_BYTES // 4 * 3,
    max_count=3600,
    downscale_edge=3072,
    accepts_animated=False,
    in_answers_of=PROVIDER,
)
_BY_SUFFIX = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp"}


def is_inline(image: Image) -> bool:
    """Whether a response can carry the picture itself: only bytes, not an address."""
    return isinstance(image.source, Base64Source)


def image_part(image: Image) -> JsonObject:
    """Return inlineData, or fileData for an address that the server fetches. Raises ImageRefused and WrongUse."""
    source = image.source
    if isinstance(source, UrlSource):
        suffix = PurePosixPath(urlsplit(source.url).path).suffix.lower()
        if suffix == ".gif":
            raise _gif_refused()
        known = _BY_SUFFIX.get(suffix)
        return {"fileData": {**({"mimeType": known} if known else {}), "fileUri": source.url}}
    if not isinstance(source, Base64Source):
        raise WrongUse("A stored picture must be loaded before a request is made.")
    if source.media_type == "image/gif":
        raise _gif_refused()
    return {"inlineData": {"mimeType": source.media_type, "data": source.data}}


def _gif_refused() -> ImageRefused:
    return ImageRefused("Gemini does not read GIF pictures.", "Attach it as PNG, JPEG or WebP.")


# Names that the API takes (ai.google.dev/api/caching, FunctionDeclaration).
TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")


def wire_name(name: str) -> str:
    """Return a tool's name as the API accepts it: unchanged if valid."""
    return name if TOOL_NAME.fullmatch(name) else f"_{request_building.wire_name(name)}"


def response_parts(
    call: ToolUse, result: ToolResult | None, call_id: str | None, *, pictures_inside: bool
) -> list[JsonObject]:
    """Return the response to one call, and its pictures: inside of it if the model accepts that, else after it.

    Raises ImageRefused, and WrongUse for a stored picture.
    """
    images = [part for part in result.content if isinstance(part, Image)] if result is not None else []
    inside = [image for image in images if pictures_inside and is_inline(image)]
    following = [image for image in images if not (pictures_inside and is_inline(image))]
    name = wire_name(call.name)
    response: JsonObject = {"name": name, "response": _response_value(result, has_pictures_behind=bool(following))}
    if call_id is not None:
        response = {"id": call_id, **response}
    if inside:
        response["parts"] = [image_part(image) for image in inside]
    parts: list[JsonObject] = [{"functionResponse": response}]
    if following:
        parts += [{"text": f"Pictures from the result of {name}:"}, *map(image_part, following)]
    return parts


def _response_value(result: ToolResult | None, *, has_pictures_behind: bool) -> JsonObject:
    if result is None:
        return {"error": NO_RESULT}
    parts = [part for part in result.content if isinstance(part, (Text, Json))]
    value: Any
    if not result.is_error and len(parts) == 1 and isinstance(parts[0], Json) and not has_pictures_behind:
        value = parts[0].value
    else:
        lines = [part.text if isinstance(part, Text) else dumps(part.value).decode() for part in parts]
        if has_pictures_behind:
            lines.append("(The pictures follow.)")
        value = "\n".join(lines)
    if not result.is_error:
        return {"output": value}
    outcome = "" if result.outcome is Outcome.FAILED and value else f"[{result.outcome.value}] "
    return {"error": f"{outcome}{value}".rstrip()}


@dataclass(frozen=True, slots=True)
class Recipient:
    """The reader of the history: its model, its account, and what it requires.

    `checks_signatures` as in ThinkingAbility; such models also accept pictures inside of results.
    """

    model: str
    account: str
    checks_signatures: bool = False

    def wrote(self, message: Message) -> bool:
        """Whether this model on this server wrote the message; without an origin, its model's name decides."""
        if message.origin is not None:
            return message.origin.account == self.account
        return message.model is None or message.model.removeprefix("models/") == self.model


@dataclass(frozen=True, slots=True)
class EncodedHistory:
    """The contents; the token that requests the rest of the last answer; whether calls had to go without signature."""

    items: list[JsonObject]
    continuation: str | None = None
    unsigned: bool = False


def encode_history(messages: tuple[Message, ...], reader: Recipient) -> EncodedHistory:
    """Encode the history. Raises ImageRefused, and WrongUse for a stored picture."""
    messages = tuple(message for message in messages if message.role is not Role.SYSTEM)
    messages, continuation = _without_continued(messages, reader)
    items: list[JsonObject] = []
    for index, message in enumerate(messages):
        if message.role is Role.USER:
            _append(items, "user", _user_parts(message.blocks))
        elif message.role is Role.ASSISTANT:
            is_own = reader.wrote(message)
            _append(items, "model", _model_parts(message.blocks, is_own=is_own))
            results = results_after(messages, index)
            for call in message.tool_uses:
                in_parts = reader.checks_signatures
                parts = response_parts(
                    call, results.get(call.id), original_call_id(call, is_own=is_own), pictures_inside=in_parts
                )
                _append(items, "user", parts)
    unsigned = reader.checks_signatures and _sign_foreign_calls(items)
    return EncodedHistory(_responses_first(items), continuation, unsigned)


def last_question_index(items: list[JsonObject]) -> int:
    """Return the index of the person's last question: the current turn follows. 0 if there is none."""
    for index in range(len(items) - 1, -1, -1):
        parts: list[JsonObject] = items[index]["parts"]
        if items[index]["role"] == "user" and not any("functionResponse" in part for part in parts):
            return index
    return 0


def original_call_id(call: ToolUse, *, is_own: bool) -> str | None:
    """Return the id that this server gave to the call; made-up ones are never sent."""
    call_id = call.metadata.get("id") if is_own and call.provider == PROVIDER else None
    return call_id if isinstance(call_id, str) else None


def _without_continued(messages: tuple[Message, ...], reader: Recipient) -> tuple[tuple[Message, ...], str | None]:
    """Leave out an answer whose rest is requested: the server has it, with everything before it."""
    continued = list(takewhile(_is_continued, reversed(messages)))
    last = continued[0] if continued else None
    token = (last.stop_details or {}).get("continuation_token") if last is not None else None
    if last is None or not isinstance(token, str) or not reader.wrote(last):
        return messages, None
    return messages[: len(messages) - len(continued)], token


def _is_continued(message: Message) -> bool:
    return message.role is Role.ASSISTANT and message.stop_reason is StopReason.CONTINUATION


def _append(items: list[JsonObject], role: str, parts: list[JsonObject]) -> None:
    """Append parts; neighbours of one role are one content, and none is empty."""
    if not parts:
        return
    if items and items[-1]["role"] == role:
        items[-1]["parts"] += parts
    else:
        items.append({"role": role, "parts": parts})


def _user_parts(blocks: tuple[Block, ...]) -> list[JsonObject]:
    parts: list[JsonObject] = []
    for block in blocks:
        if isinstance(block, Text) and block.text:
            parts.append({"text": block.text})
        elif isinstance(block, Image):
            parts.append(image_part(block))
    return parts


def _model_parts(blocks: tuple[Block, ...], *, is_own: bool) -> list[JsonObject]:
    """Return an answer's parts. Without its own state it is text, pictures and calls."""
    parts: list[JsonObject] = []
    states = [block for block in blocks if isinstance(block, Thinking) and is_own and block.provider == PROVIDER]
    signatures = {state.metadata.get("call_id"): state.metadata.get("thoughtSignature") for state in states}
    for block in blocks:
        match block:
            case Text():
                parts += _user_parts((block,))
            case Image():
                state = block.metadata if is_own and block.provider == PROVIDER else {"thoughtSignature": NO_SIGNATURE}
                parts.append({**image_part(block), **state})
            case Thinking() if is_own and block.provider == PROVIDER:
                _restore_signature(parts, block)
            case ToolUse():
                parts.append(_call_part(block, original_call_id(block, is_own=is_own), signatures.get(block.id)))
            case ServerStep() | Unknown() if is_own and block.provider == PROVIDER and _is_part(block):
                parts.append(block.raw)
            case _:
                pass
    return parts


def _restore_signature(parts: list[JsonObject], state: Thinking) -> None:
    """Put a signature on the part that it came with. If the text was changed since then, that part is missing."""
    metadata = state.metadata
    signature, signed = metadata.get("thoughtSignature"), metadata.get("part_text")
    if not isinstance(signature, str):
        return  # a summary need not go back
    if metadata.get("thought") is True:
        parts.append({"text": state.text, "thought": True, "thoughtSignature": signature})
    elif metadata.get("on") == "text" and signed == "":
        parts.append({"text": "", "thoughtSignature": signature})
    elif metadata.get("on") == "text" and isinstance(signed, str) and parts and parts[-1].keys() == {"text"}:
        text: str = parts[-1]["text"]
        if text.endswith(signed):
            unsigned = text[: len(text) - len(signed)]
            parts[-1:] = [{"text": unsigned}] if unsigned else []
            parts.append({"text": signed, "thoughtSignature": signature})


def _call_part(call: ToolUse, call_id: str | None, signature: Any) -> JsonObject:
    arguments = call.input if call.malformed is None else {"malformed_arguments": call.malformed}
    written: JsonObject = {"name": wire_name(call.name), "args": arguments}
    part: JsonObject = {"functionCall": written if call_id is None else {"id": call_id, **written}}
    return {**part, "thoughtSignature": signature} if isinstance(signature, str) else part


def _is_part(block: ServerStep | Unknown) -> bool:
    """Whether the block was a part; searches and pages are outside of the parts."""
    raw: Any = block.raw
    return is_object(raw) and bool(raw) and not raw.keys() & {"groundingMetadata", "urlContextMetadata"}


def _responses_first(items: list[JsonObject]) -> list[JsonObject]:
    """Put responses first, before pictures and text that came with them."""
    for item in items:
        parts: list[JsonObject] = item["parts"]
        if any("functionResponse" in part for part in parts):
            parts.sort(key=lambda part: "functionResponse" not in part)
    return items


def _sign_foreign_calls(items: list[JsonObject]) -> bool:
    """Sign the first call of each step of the current turn; one that another model made cannot be signed."""
    was_needed = False
    for item in items[last_question_index(items) :]:
        calls = [part for part in item["parts"] if "functionCall" in part]
        if calls and not any("thoughtSignature" in part for part in calls):
            calls[0]["thoughtSignature"] = NO_SIGNATURE
            was_needed = True
    return was_needed
