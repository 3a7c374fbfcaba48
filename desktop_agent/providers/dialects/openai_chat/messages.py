"""Encode the history for Chat Completions: every call answered, every result after its call, reasoning where it is due.

Tool messages carry no pictures, so those follow in a user message. OpenRouter's `reasoning_details` are merged by
index; LiteLLM's `thinking_blocks` are pieces of text closed by a signature.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Any, Literal

from desktop_agent.providers.dialects.request_building import NO_RESULT, NO_SIGNATURE, results_after, wire_name
from desktop_agent.providers.dialects.server_families import ServerQuirks
from desktop_agent.providers.transport.json_codec import dumps, is_object
from desktop_agent.types.blocks import (
    Base64Source,
    Block,
    Image,
    ImageDetail,
    Json,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Unknown,
    UrlSource,
)
from desktop_agent.types.errors import ImageRefused, ImagesNotSupported, WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.providers import ModelRequest

REPLAYED_REASONING = "reasoning_content"
"""The field in which some servers require earlier reasoning."""
_GROWING = frozenset({"text", "summary"})


def merge_detail(merged: list[dict[str, Any]], piece: Any) -> None:
    """Add one piece: to the entry of the same index, type and id, or as a new entry. Nulls never overwrite."""
    if not is_object(piece):
        return
    entry = next((detail for detail in merged if _is_same(detail, piece)), None)
    if entry is None:
        merged.append(dict(piece))
        return
    for name, value in piece.items():
        if value is None:
            continue
        before = entry.get(name)
        grows = name in _GROWING and isinstance(before, str) and isinstance(value, str)
        entry[name] = f"{before}{value}" if grows else value


def _is_same(entry: dict[str, Any], piece: dict[str, Any]) -> bool:
    if "index" not in piece or any(entry.get(name) != piece.get(name) for name in ("index", "type")):
        return False
    return None in (entry.get("id"), piece.get("id")) or entry["id"] == piece["id"]


def merge_thinking_block(merged: list[dict[str, Any]], piece: Any) -> None:
    """Add one piece: text grows in the last block until a signature closes it; redacted blocks are separate."""
    if not is_object(piece):
        return
    last = merged[-1] if merged else None
    if piece.get("type") != "thinking" or last is None or last.get("type") != "thinking" or last.get("signature"):
        merged.append(dict(piece))
        return
    last["thinking"] = f"{last.get('thinking') or ''}{piece.get('thinking') or ''}"
    last |= {name: value for name, value in piece.items() if name not in ("thinking", "type") and value is not None}


def add_reasoning_fields(
    message: dict[str, Any], thoughts: list[Thinking], calls: tuple[ToolUse, ...], quirks: ServerQuirks
) -> None:
    """Add to an assistant message the reasoning that its server must get back."""
    match quirks.replay:
        case "reasoning_content" | "reasoning":
            shown = ("reasoning_content", "reasoning")
            text = "".join(thought.text for thought in thoughts if thought.metadata.get("field") in shown)
            # DeepSeek refuses a turn with calls that lacks the field, even an empty one.
            if (calls or not quirks.replay_on_calls_only) and (text or quirks.replay_on_calls_only):
                message[quirks.replay] = text
        case "reasoning_details":
            _add_merged(message, "reasoning_details", thoughts, merge_detail)
        case "thinking_blocks":
            _add_merged(message, "thinking_blocks", thoughts, merge_thinking_block)
        case _:
            pass
    if quirks.extra_content and thoughts:
        _add_extra_content(message, thoughts, calls)


def add_missing_reasoning(message: dict[str, Any], thoughts: list[Thinking]) -> None:
    """Add the reasoning before calls; some servers refuse an empty one too, so a space stands for none."""
    text = "".join(thought.text for thought in thoughts)
    message[REPLAYED_REASONING] = message.get(REPLAYED_REASONING) or text or " "


def add_missing_signatures(message: dict[str, Any]) -> None:
    """Add Google's placeholder for an unknown signature to the first call of an answer without any."""
    calls: list[dict[str, Any]] = message.get("tool_calls", [])
    if calls and not any("extra_content" in call for call in calls):
        calls[0]["extra_content"] = {"google": {"thought_signature": NO_SIGNATURE}}


def content_parts(blocks: tuple[Block, ...], thoughts: list[Thinking], provider: str) -> str | list[dict[str, Any]]:
    """Return Mistral's content: thinking, text and other parts in order; a plain string if all is text."""
    own = {id(thought) for thought in thoughts if thought.metadata.get("field") == "content.thinking"}
    kept = {id(block) for block in blocks if isinstance(block, Unknown) and block.provider == provider}
    if not own and not kept:
        return "".join(block.text for block in blocks if isinstance(block, Text))
    parts: list[Any] = []
    for block in blocks:
        if isinstance(block, Text):
            parts.append({"type": "text", "text": block.text})
        elif isinstance(block, Unknown) and id(block) in kept:
            parts.append(block.raw)
        elif isinstance(block, Thinking) and id(block) in own:
            state = {name: value for name, value in block.metadata.items() if name in ("signature", "closed")}
            parts.append({"type": "thinking", "thinking": [{"type": "text", "text": block.text}], **state})
    return parts


def _add_merged(message: dict[str, Any], name: str, thoughts: list[Thinking], merge: Any) -> None:
    merged: list[dict[str, Any]] = []
    for thought in thoughts:
        for entry in thought.metadata.get(name) or ():
            merge(merged, entry)
    if merged:
        message[name] = merged


def _add_extra_content(message: dict[str, Any], thoughts: list[Thinking], calls: tuple[ToolUse, ...]) -> None:
    states = {
        thought.metadata.get("call_id"): thought.metadata.get("extra_content")
        for thought in thoughts
        if thought.metadata.get("field") == "extra_content"
    }
    for call, written in zip(calls, message.get("tool_calls") or (), strict=False):
        if states.get(call.id) is not None:
            written["extra_content"] = states[call.id]


_NINE_CHARACTERS = re.compile(r"[A-Za-z0-9]{9}")
CONTINUE_PROMPT = "Go on from where you stopped."
# Mistral's models, wherever they run: their templates refuse a question directly after results (error 3230).
_MISTRAL = re.compile(r"(mi|mini|dev|magi|code|pi|vo|lean)[sx]tral", re.IGNORECASE)
_AFTER_RESULTS = "OK."


@dataclass(frozen=True, slots=True)
class Recipient:
    """The reader of the history: the family of its server, and its account (request_building.account_digest).

    `checks_signatures`: it refuses calls of the current turn without a signature (Gemini from 3 on).
    `wants_reasoning`: it refused calls without the reasoning before them.
    """

    quirks: ServerQuirks
    account: str = ""
    checks_signatures: bool = False
    wants_reasoning: bool = False


def encode_messages(
    request: ModelRequest, recipient: Recipient, *, developer: bool = False, extra_instructions: str = ""
) -> list[dict[str, Any]]:
    """Return the `messages` array; `extra_instructions` is added to the instructions.

    Raises WrongUse, ImagesNotSupported and ImageRefused.
    """
    written = _HistoryEncoder(request, recipient).encode("developer" if developer else "system", extra_instructions)
    if recipient.quirks.alternates:
        written = _merge_turns(written)
    if recipient.quirks.family == "mistral" or _MISTRAL.search(request.model):
        written = _answer_results(written)
    if written and written[-1]["role"] == "assistant":
        written.append({"role": "user", "content": CONTINUE_PROMPT})
    return written


class _HistoryEncoder:
    """Encodes one history. All instructions are in one message at the top: local templates accept no other."""

    def __init__(self, request: ModelRequest, recipient: Recipient) -> None:
        self._request = request
        self._recipient = recipient
        self._quirks = recipient.quirks
        self._out: list[dict[str, Any]] = []

    def encode(self, system_role: str, extra_instructions: str) -> list[dict[str, Any]]:
        messages = self._request.messages
        instructions = [self._request.config.system_prompt or ""]
        instructions += [message.text for message in messages if message.role is Role.SYSTEM]
        instructions.append(extra_instructions)
        joined = "\n\n".join(filter(None, instructions))
        if joined:
            self._out.append({"role": system_role, "content": joined})
        for index, message in enumerate(messages):
            if message.role is Role.USER:
                self._out.append({"role": "user", "content": self._content(message.blocks)})
            elif message.role is Role.ASSISTANT:
                self._assistant(message, results_after(messages, index))
        return self._out

    def _assistant(self, message: Message, results: dict[str, ToolResult]) -> None:
        """Write the answer, then one tool message per call, in call order, whatever the history contains."""
        quirks = self._quirks
        thoughts = [
            block
            for block in message.blocks
            if isinstance(block, Thinking) and block.provider == quirks.thinking_provider and self._is_own(message)
        ]
        blocks = message.blocks
        parts = content_parts(blocks, thoughts, quirks.thinking_provider) if quirks.replay == "parts" else message.text
        calls = message.tool_uses
        # Blank text, as some models write before a call, is refused where Claude or Kimi answers.
        if isinstance(parts, str) and not parts.strip():
            parts = ""
        if not parts and not calls:
            return
        encoded: dict[str, Any] = {"role": "assistant", "content": parts}
        if calls:
            encoded["content"] = parts or (None if quirks.null_content else "")
            encoded["tool_calls"] = [
                {
                    "id": call_id(call, quirks.call_ids),
                    "type": "function",
                    "function": {
                        "name": wire_name(call.name),
                        "arguments": arguments_text(call, quirks.thinking_provider),
                    },
                }
                for call in calls
            ]
        add_reasoning_fields(encoded, thoughts, calls, quirks)
        if calls and self._recipient.wants_reasoning:
            add_missing_reasoning(encoded, thoughts)
        if self._recipient.checks_signatures:
            add_missing_signatures(encoded)
        self._out.append(encoded)
        images: list[dict[str, Any]] = []
        for call in calls:
            result = results.get(call.id)
            content = result_text(result) if result is not None else NO_RESULT
            self._out.append({"role": "tool", "tool_call_id": call_id(call, quirks.call_ids), "content": content})
            images += self._result_images(call.name, result)
        if images:
            self._out.append({"role": "user", "content": images})

    def _is_own(self, message: Message) -> bool:
        """Whether this model on this server wrote it: only there can its reasoning be read."""
        if message.origin is not None and message.origin.account:
            return message.origin.account == self._recipient.account
        return message.model in (None, self._request.model)

    def _content(self, blocks: tuple[Any, ...]) -> str | list[dict[str, Any]]:
        """Return a string if there is no picture: some servers split arrays into several messages."""
        if not any(isinstance(block, Image) for block in blocks):
            return "\n\n".join(block.text for block in blocks if isinstance(block, Text))
        return [
            self._image(block) if isinstance(block, Image) else {"type": "text", "text": block.text}
            for block in blocks
            if isinstance(block, Image) or (isinstance(block, Text) and block.text)
        ]

    def _result_images(self, name: str, result: ToolResult | None) -> list[dict[str, Any]]:
        images = [part for part in result.content if isinstance(part, Image)] if result is not None else []
        if not images:
            return []
        return [{"type": "text", "text": f"Pictures from the result of {name}:"}, *map(self._image, images)]

    def _image(self, image: Image) -> dict[str, Any]:
        part: dict[str, Any] = {"url": image_url(image, self._quirks)}
        if image.detail is not ImageDetail.AUTO:
            part["detail"] = image.detail.value
        return {"type": "image_url", "image_url": part}


def image_url(image: Image, quirks: ServerQuirks) -> str:
    """Return a picture's address, or a data URL. Raises WrongUse, ImagesNotSupported and ImageRefused."""
    source = image.source
    if isinstance(source, UrlSource):
        if not quirks.image_urls:
            raise ImagesNotSupported(
                "This server does not fetch pictures from the web.", "Attach the picture itself instead."
            )
        return source.url
    if not isinstance(source, Base64Source):
        raise WrongUse("A stored picture must be loaded before a request is made.")
    if source.media_type == "image/gif" and not quirks.image_gif:
        raise ImageRefused("This server does not read GIF pictures.", "Attach it as PNG or JPEG.")
    return f"data:{source.media_type};base64,{source.data}"


def _merge_turns(written: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge neighbours of one role: many templates of local models refuse two questions in a row."""
    merged: list[dict[str, Any]] = []
    for message in written:
        last = merged[-1] if merged else None
        if last is None or last["role"] != message["role"] or message["role"] not in ("user", "assistant"):
            merged.append(message)
        elif message["role"] == "user":
            merged[-1] = {**last, "content": _join_content(last["content"], message["content"])}
        elif "tool_calls" not in last:
            merged[-1] = {**last, **message, "content": f"{last['content'] or ''}{message['content'] or ''}"}
        else:
            merged.append(message)
    return merged


def _answer_results(written: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put an answer between results and the question after them."""
    answered: list[dict[str, Any]] = []
    for message in written:
        if message["role"] == "user" and answered and answered[-1]["role"] == "tool":
            answered.append({"role": "assistant", "content": _AFTER_RESULTS})
        answered.append(message)
    return answered


def _join_content(first: str | list[Any], second: str | list[Any]) -> str | list[Any]:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    parts = (part if isinstance(part, list) else [{"type": "text", "text": part}] for part in (first, second) if part)
    return [entry for part in parts for entry in part]


def part_text(part: Text | Json) -> str:
    """Return a text as it is, and JSON in its compact form."""
    return part.text if isinstance(part, Text) else dumps(part.value).decode()


def result_text(result: ToolResult) -> str:
    """Return text and JSON of a result. A failed one says so: there is no field for it."""
    lines = [part_text(part) for part in result.content if isinstance(part, (Text, Json))]
    if any(isinstance(part, Image) for part in result.content):
        lines.append("(The pictures follow in the next message.)")
    text = "\n".join(lines)
    return f"[{result.outcome.value}] {text}".rstrip() if result.is_error else text


def call_id(call: ToolUse, shape: Literal["any", "forty", "nine"]) -> str:
    """Return the id of a call and of its tool message: unchanged if valid, else derived from itself, always the same.

    Some Mistral models accept exactly nine letters and digits; OpenAI accepts at most forty characters.
    """
    if shape == "nine" and not _NINE_CHARACTERS.fullmatch(call.id):
        return hashlib.sha256(call.id.encode("utf-8", "surrogatepass")).hexdigest()[:9]
    if shape == "forty" and not 0 < len(call.id) <= 40:
        return "call_" + hashlib.sha256(call.id.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    return call.id


def arguments_text(call: ToolUse, provider: str) -> str:
    """Return the arguments as JSON text: as this provider wrote them, so that its cache matches.

    Malformed arguments are shown to the model inside an object.
    """
    own = call.metadata.get("arguments") if call.provider == provider else None
    if isinstance(own, str):
        return own
    if call.malformed is not None:
        return dumps({"malformed_arguments": call.malformed}).decode()
    return dumps(call.input).decode()
