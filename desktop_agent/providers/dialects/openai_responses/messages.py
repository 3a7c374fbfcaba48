"""Encode the history as input items: every call answered, reasoning in its place or left out, pictures and results.

Reasoning goes back whole, and only to the server and model that wrote it, before what followed it.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from desktop_agent.providers.dialects.openai_chat.messages import (
    arguments_text,
    call_id,
    image_url,
    part_text,
    result_text,
)
from desktop_agent.providers.dialects.openai_responses.output_items import OUTPUT_ORDER, PROVIDER, picture_item
from desktop_agent.providers.dialects.request_building import (
    FROM_ANSWER,
    NO_RESULT,
    PrefixDigest,
    results_after,
    wire_name,
)
from desktop_agent.providers.dialects.server_families import ServerQuirks
from desktop_agent.providers.transport.json_codec import array_in, dumps, is_object, text_in
from desktop_agent.types.blocks import Block, Image, ServerStep, Text, Thinking, ToolResult, ToolUse, Unknown
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.providers import ModelRequest


def image_part(image: Image, quirks: ServerQuirks) -> dict[str, Any]:
    """Return a picture by its address or as a data URL. Raises WrongUse, ImagesNotSupported and ImageRefused."""
    return {"type": "input_image", "image_url": image_url(image, quirks), "detail": image.detail.value}


def encode_output(result: ToolResult, quirks: ServerQuirks) -> str | list[dict[str, Any]]:
    """Return a result as text, or as parts if it has pictures and the server is OpenAI's: others read text only.

    A failed one says so in words: there is no field for it.
    """
    if quirks.switch != "openai" or not any(isinstance(part, Image) for part in result.content):
        return result_text(result)
    outcome = {"type": "input_text", "text": f"[{result.outcome.value}]"}
    parts: list[dict[str, Any]] = [outcome] if result.is_error else []
    for part in result.content:
        if isinstance(part, Image):
            parts.append(image_part(part, quirks))
        elif text := part_text(part):
            parts.append({"type": "input_text", "text": text})
    return parts


def picture_messages(name: str, result: ToolResult, quirks: ServerQuirks) -> list[dict[str, Any]]:
    """Return a user message with the pictures of a result, for servers that read only text in results."""
    pictures = [image_part(part, quirks) for part in result.content if isinstance(part, Image)]
    if not pictures:
        return []
    content = [{"type": "input_text", "text": f"Pictures from the result of {name}:"}, *pictures]
    return [{"type": "message", "role": "user", "content": content}]


_COMPACTION = "compaction"  # replaces everything before it, so it always goes back


@dataclass(frozen=True, slots=True)
class Recipient:
    """The reader of the items. `account` is its own; `binds`: it accepts reasoning only after what it had read.

    `unreadable` are the keys (see `reasoning_key`) of reasoning that it refused before.
    """

    quirks: ServerQuirks
    account: str
    binds: bool = True
    unreadable: frozenset[str] = frozenset()

    @property
    def takes_late_instructions(self) -> bool:
        """Whether instructions may come later; templates of local models accept them at the start only."""
        return self.quirks.switch in ("openai", "xai")


@dataclass(frozen=True, slots=True)
class EncodedHistory:
    """The items, a digest of them and all that comes before them, and the keys of the reasoning among them."""

    items: list[dict[str, Any]]
    prefix: str
    reasoning: frozenset[str]


def instructions_for(request: ModelRequest, recipient: Recipient) -> str | None:
    """Return the text above the conversation: the system prompt, and system messages that cannot stay in place."""
    texts = [request.config.system_prompt or ""]
    if not recipient.takes_late_instructions:
        texts += [message.text for message in request.messages if message.role is Role.SYSTEM]
    return "\n\n".join(filter(None, texts)) or None


def encode_input(request: ModelRequest, recipient: Recipient, header: list[Any]) -> EncodedHistory:
    """Return the `input` array; `header` is what the model reads before it.

    Raises WrongUse, ImagesNotSupported and ImageRefused for pictures that cannot be sent.
    """
    return _HistoryEncoder(request, recipient, header).encode()


def reasoning_key(item: dict[str, Any]) -> str:
    """Return a digest that identifies a reasoning item."""
    return hashlib.blake2b(dumps(item), digest_size=16).hexdigest()


class _HistoryEncoder:
    def __init__(self, request: ModelRequest, recipient: Recipient, header: list[Any]) -> None:
        self._request = request
        self._recipient = recipient
        self._is_openai = recipient.quirks.switch == "openai"
        self._items: list[dict[str, Any]] = []
        self._digest = PrefixDigest(recipient.account)
        self._digest.add(header)
        self._digested = 0
        self._reasoning: set[str] = set()
        # Pictures of answers that cannot go back in their place: they go with the next prompt.
        self._pictures: list[Image] = []

    def encode(self) -> EncodedHistory:
        messages = self._request.messages
        for index, message in enumerate(messages):
            match message.role:
                case Role.SYSTEM:
                    self._system(message)
                case Role.USER:
                    self._user(message)
                case Role.ASSISTANT:
                    self._assistant(message, results_after(messages, index))
                case Role.TOOL:
                    pass  # written with the calls
        return EncodedHistory(self._items, self._prefix(), frozenset(self._reasoning))

    def _prefix(self) -> str:
        """Return the digest of everything so far."""
        for item in self._items[self._digested :]:
            self._digest.add(item)
        self._digested = len(self._items)
        return self._digest.value

    def _system(self, message: Message) -> None:
        if self._recipient.takes_late_instructions and message.text:
            role = "developer" if self._is_openai else "system"
            content = [{"type": "input_text", "text": message.text}]
            self._items.append({"type": "message", "role": role, "content": content})

    def _user(self, message: Message) -> None:
        content: list[dict[str, Any]] = []
        moved = [Text(text=FROM_ANSWER), *self._pictures] if self._pictures else []
        self._pictures = []
        for block in (*moved, *message.blocks):
            if isinstance(block, Image):
                content.append(image_part(block, self._recipient.quirks))
            elif isinstance(block, Text) and block.text:
                content.append({"type": "input_text", "text": block.text})
        if content:
            self._items.append({"type": "message", "role": "user", "content": content})

    def _assistant(self, message: Message, results: dict[str, ToolResult]) -> None:
        """Write the answer's items in order, then one output per call, in call order."""
        is_own = self._is_own(message)
        if is_own:
            message = _in_output_order(message)
        kept = self._kept_reasoning(message) if is_own else frozenset[int]()
        is_whole = True  # nothing is missing before the next item
        start = len(self._items)
        for index, block in enumerate(message.blocks):
            match block:
                case Thinking():
                    item = _reasoning_item(block) if is_own else None
                    if item is not None:
                        is_whole = index in kept
                    if item is not None and is_whole:
                        self._items.append(item)
                        self._reasoning.add(reasoning_key(item))
                case Text():
                    self._text(block, start, is_own=is_own, with_id=is_whole)
                case ToolUse():
                    self._items.append(self._call(block, is_own=is_own, with_id=is_whole))
                case Image():
                    self._picture(block, goes_back=is_own and is_whole)
                case ServerStep() | Unknown() if is_own and block.provider == PROVIDER:
                    self._step(block.raw, start, is_whole=is_whole)
                case _:
                    pass
        self._outputs(message.tool_uses, results, is_own=is_own)

    def _is_own(self, message: Message) -> bool:
        """Whether this server's own model wrote it. Without an origin, the model's name decides."""
        origin = message.origin
        if origin is None or not origin.account:
            return message.model in (None, self._request.model)
        return origin.provider == PROVIDER and origin.account == self._recipient.account

    def _kept_reasoning(self, message: Message) -> frozenset[int]:
        """Return the places of reasoning blocks that go back: those followed by something finished that goes back too.

        After reasoning that is left out, only text and calls do, without their ids.
        """
        origin = message.origin
        if self._recipient.binds and origin is not None and origin.prefix and origin.prefix != self._prefix():
            return frozenset()
        indices: set[int] = set()
        is_followed = is_followed_if_kept = False
        for index in reversed(range(len(message.blocks))):
            block = message.blocks[index]
            if not isinstance(block, Thinking):
                is_followed_if_kept = is_followed_if_kept or _is_finished(block, message)
                is_followed = is_followed or (isinstance(block, (Text, ToolUse)) and is_followed_if_kept)
                continue
            item = _reasoning_item(block)
            if item is None:
                continue
            if is_followed_if_kept and self._is_readable(item):
                indices.add(index)
                is_followed = True
            is_followed_if_kept = is_followed
        return frozenset(indices)

    def _is_readable(self, item: dict[str, Any]) -> bool:
        """Whether it has state: an id alone is useless to a server that stores nothing."""
        has_state = bool(item.get("encrypted_content") or item.get("content"))
        return has_state and reasoning_key(item) not in self._recipient.unreadable

    def _text(self, block: Text, start: int, *, is_own: bool, with_id: bool) -> None:
        """Join the parts of one message again; text without an id is a message of its own."""
        state = block.metadata if is_own and block.provider == PROVIDER else {}
        part: dict[str, Any] = {"type": "output_text", "text": block.text, "annotations": state.get("annotations", [])}
        if state.get("refusal"):
            part = {"type": "refusal", "refusal": block.text}
        if with_id and state.get("id"):
            identity = {name: state[name] for name in ("id", "phase") if name in state}
            item = {"type": "message", "role": "assistant", "status": state.get("status", "completed"), **identity}
            self._message({**item, "content": [part]}, start)
        elif block.text:
            phase = {"phase": state["phase"]} if state.get("phase") else {}
            item = {"type": "message", "role": "assistant", **phase}
            self._items.append(item | self._unnamed(block.text))

    def _unnamed(self, text: str) -> dict[str, Any]:
        """Return text without an id of the server's own. OpenAI accepts a string, llama.cpp parts only, and vLLM and
        OpenRouter no parts without an id: so one is made up."""
        if self._is_openai:
            return {"content": text}
        part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
        return {"id": f"msg_{len(self._items)}", "status": "completed", "content": [part]}

    def _message(self, item: dict[str, Any], start: int) -> None:
        last = self._items[-1] if len(self._items) > start else {}
        if last.get("type") == "message" and last.get("id") == item["id"]:
            last["content"] = [*last["content"], *item["content"]]
            last["status"] = item["status"]
        else:
            self._items.append(item)

    def _picture(self, picture: Image, *, goes_back: bool) -> None:
        item = picture_item(picture) if goes_back else None
        if item is None:
            self._pictures.append(picture)
        else:
            self._items.append(item)

    def _step(self, raw: Any, start: int, *, is_whole: bool) -> None:
        if not is_object(raw):
            return
        if raw.get("type") == "message" and raw.get("id") and is_whole:
            self._message({"status": "completed", **raw}, start)
        elif is_whole or raw.get("type") == _COMPACTION:
            self._items.append(raw)

    def _call(self, call: ToolUse, *, is_own: bool, with_id: bool) -> dict[str, Any]:
        item = {**_call_item(call, is_own=is_own)}
        if not with_id:
            item.pop("id", None)
        item |= {"call_id": self._call_id(call), "name": wire_name(call.name)}
        if item["type"] == "custom_tool_call":
            return {**item, "input": call.input.get("input", "")}
        return {**item, "arguments": arguments_text(call, PROVIDER)}

    def _outputs(self, calls: tuple[ToolUse, ...], results: dict[str, ToolResult], *, is_own: bool) -> None:
        pictures: list[dict[str, Any]] = []
        for call in calls:
            result = results.get(call.id)
            output = NO_RESULT if result is None else encode_output(result, self._recipient.quirks)
            kind = f"{_call_item(call, is_own=is_own)['type']}_output"
            self._items.append({"type": kind, "call_id": self._call_id(call), "output": output})
            if result is not None and not self._is_openai:
                pictures += picture_messages(call.name, result, self._recipient.quirks)
        self._items += pictures

    def _call_id(self, call: ToolUse) -> str:
        return call_id(call, self._recipient.quirks.call_ids)


def _in_output_order(message: Message) -> Message:
    """Return the answer with its blocks in the order of its items: reasoning goes back before what followed it."""
    order = array_in(message.stop_details or {}, OUTPUT_ORDER)
    if not order:
        return message
    places = {item_id: place for place, item_id in enumerate(order) if isinstance(item_id, str)}
    placed: list[tuple[int, Block]] = []
    place = -1
    for block in message.blocks:
        # A block of no known item stays after the block before it.
        place = places.get(_item_id(block), place)
        placed.append((place, block))
    placed.sort(key=lambda entry: entry[0])
    return message.model_copy(update={"blocks": tuple(block for _, block in placed)})


def _item_id(block: Block) -> str:
    """Return the id of the item that a block is, or is part of."""
    match block:
        case Text():
            state: Any = block.metadata
        case Thinking() | Image():
            state = block.metadata.get("item")
        case ToolUse():
            return block.id
        case ServerStep() | Unknown():
            state = block.raw
        case _:
            state = None
    return text_in(state, "id") if is_object(state) else ""


def _call_item(call: ToolUse, *, is_own: bool) -> dict[str, Any]:
    """Return the server's fields of a call besides name and arguments; calls from elsewhere are functions."""
    item = call.metadata.get("item") if is_own and call.provider == PROVIDER else None
    return item if is_object(item) and isinstance(item.get("type"), str) else {"type": "function_call"}


def _reasoning_item(block: Thinking) -> dict[str, Any] | None:
    item = block.metadata.get("item") if block.provider == PROVIDER else None
    return item if is_object(item) else None


def _is_finished(block: Block, message: Message) -> bool:
    """Whether this is an item that goes back, and that was finished when the answer ended."""
    if isinstance(block, Text):
        is_closed = block.provider == PROVIDER or message.state is MessageState.COMPLETE
        return is_closed and bool(block.text)
    if isinstance(block, Image):
        return picture_item(block) is not None
    return isinstance(block, ToolUse) or (isinstance(block, (ServerStep, Unknown)) and block.provider == PROVIDER)
