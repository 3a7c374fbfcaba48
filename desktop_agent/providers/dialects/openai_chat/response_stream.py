"""Read the chunks of Chat Completions: text, reasoning, calls, citations and usage.

Every field is optional, and content counts more than flags. A whole completion in place of a stream is read the same
way.
"""

import math
from collections.abc import Mapping
from typing import Any

from desktop_agent.providers.dialects.answer_pictures import parse_picture
from desktop_agent.providers.dialects.openai_chat.messages import merge_detail, merge_thinking_block
from desktop_agent.providers.dialects.response_stream import BaseFrameReader, failure_for, finish_word, stop_reason_for
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.transport import error_responses
from desktop_agent.providers.transport.json_codec import (
    is_array,
    is_object,
    nonempty_text,
    object_in,
    objects_in,
    offset_in,
    read_count,
    repair_json,
    repair_text,
    text_in,
)
from desktop_agent.providers.transport.sse import DONE, Frame
from desktop_agent.types.blocks import Citation, Image, Unknown
from desktop_agent.types.provider_events import StopReason, Usage

_XAI_TICKS_PER_DOLLAR = 10_000_000_000  # docs.x.ai, cost tracking


def parse_usage(data: dict[str, Any]) -> Usage:
    """Parse tokens and cost. What is missing, negative or not a number is unknown.

    Output includes reasoning everywhere; xAI counts it separately, which the total shows.
    """
    prompt_details, completion_details = (
        object_in(data, "prompt_tokens_details"),
        object_in(data, "completion_tokens_details"),
    )
    prompt, completion = read_count(data.get("prompt_tokens")), read_count(data.get("completion_tokens"))
    total, reasoning = read_count(data.get("total_tokens")), read_count(completion_details.get("reasoning_tokens"))
    if prompt is not None and completion is not None:
        if reasoning and total == prompt + completion + reasoning:
            completion += reasoning
        total = prompt + completion if total is None else total
    cached = read_count(prompt_details.get("cached_tokens"))
    return Usage(
        input_tokens=prompt,
        output_tokens=completion,
        cache_read_tokens=read_count(data.get("prompt_cache_hit_tokens")) if cached is None else cached,
        cache_write_tokens=read_count(prompt_details.get("cache_write_tokens")),
        reasoning_tokens=reasoning,
        total_tokens=total,
        cost=_parse_cost(data),
    )


def _parse_cost(data: dict[str, Any]) -> float | None:
    """Parse US dollars: xAI's ticks, or OpenRouter's `cost`.

    With the person's own key at the maker (`is_byok`) that is only OpenRouter's fee; the maker's bill is added.
    """
    ticks = read_count(data.get("cost_in_usd_ticks"))
    if ticks is not None:
        return _to_dollars(ticks, _XAI_TICKS_PER_DOLLAR)
    cost = _to_dollars(data.get("cost"))
    if cost is None or data.get("is_byok") is not True:
        return cost
    return cost + (_to_dollars(object_in(data, "cost_details").get("upstream_inference_cost")) or 0.0)


def _to_dollars(value: Any, per_dollar: int = 1) -> float | None:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    try:
        dollars = value / per_dollar
    except OverflowError:
        return None
    return dollars if 0 <= dollars < math.inf else None


def parse_citations(annotations: list[Any]) -> list[Citation]:
    """Return the citations among annotations; other annotations have no address that a person could open."""
    citations: list[Citation] = []
    for annotation in annotations:
        inner = annotation.get("url_citation") if is_object(annotation) else None
        if is_object(inner) and isinstance(inner.get("url"), str):
            citations.append(
                Citation(
                    url=repair_text(inner["url"]),
                    title=nonempty_text(inner.get("title")),
                    quoted=nonempty_text(inner.get("content")),
                    start=offset_in(inner, "start_index"),
                    end=offset_in(inner, "end_index"),
                )
            )
    return citations


# The first with content is shown. reasoning_text: GitHub Copilot; thinking: Ollama's and Cohere's own interfaces
# behind gateways; the others: proxies of many makes.
_REASONING_FIELDS = (
    "reasoning_content",
    "reasoning",
    "reasoning_text",
    "thinking",
    "thinking_content",
    "thought",
    "thoughts",
    "reasoning_summary",
)
_REASONING_PARTS = frozenset({"thinking", "reasoning", "reasoning_text", "reasoning_content", "thought"})
_TEXT_PARTS = frozenset({"text", "output_text"})
_ARGUMENTS = ("arguments", "parameters", "input")
_MAX_INDEX_DIGITS = 10
_PLAIN_FIELDS = frozenset({"index", "delta", "finish_reason", "logprobs"})
_FUNCTION_CALL_INDEX = -1  # the deprecated single call has neither index nor id


class FrameReader(BaseFrameReader):
    """Reads the frames of one answer; `finish` is the last finish_reason that was not empty.

    `are_several`: the person requested several answers (n), which arrive mixed. The first is read.
    """

    end_mark = "finish_reason and [DONE]"

    def __init__(self, builder: PartBuilder, headers: Mapping[str, str], *, are_several: bool = False) -> None:
        super().__init__(builder, headers)
        self.finish: str | None = None
        self._has_several = are_several
        self._is_on_every_chunk = False  # more came after a finish_reason
        self._show = builder.main.text
        self._refused = False
        self._lists = 0
        self._has_deltas = False
        self._citations: list[Citation] = []
        self._pictures: list[Image | Unknown] = []
        self._details: list[dict[str, Any]] = []
        self._blocks: list[dict[str, Any]] = []

    def read(self, frame: Frame) -> bool:
        """Read one frame."""
        name, data = frame
        text = None if name or self.finish is not None or self._has_several else _only_text(data)
        if text is not None:
            self.recognised = self._has_deltas = True
            self._show(text)
        elif data is DONE:
            self.done = True
        elif is_object(data):
            self._read_object(name, data)
        elif is_array(data) or name == "error":
            self._fail(data)
        return text is not None

    def _read_object(self, name: str, data: dict[str, Any]) -> None:
        is_error = error_responses.has_error(data.get("error"))
        is_detail_only = "detail" in data and "choices" not in data
        if is_error or name == "error" or data.get("object") == "error" or is_detail_only:
            self._fail(data)
        if self.failure is None or "choices" in data:
            # Even with an error, nothing that was received is dropped.
            self._read_chunk(data)

    def _read_chunk(self, data: dict[str, Any]) -> None:
        self._builder.set_response_id(data.get("id"))
        self._read_usage(data.get("usage"))
        if "x_groq" in data:
            self._read_groq(data["x_groq"])
        if "choices" in data:
            self.recognised = True
            choices = data["choices"] if is_array(data["choices"]) else [data["choices"]]
            # Servers number the only answer as they like.
            first = next((choice for choice in choices if not self._has_several or not _number_of(choice)), None)
            if is_object(first):
                self._read_choice(first)
        if data.get("tool_calls"):
            self._calls(data["tool_calls"], is_whole=self._has_deltas)

    @property
    def has_finished(self) -> bool:
        # Usage and the end mark follow, or more text if every chunk has a finish_reason.
        return self.done or self.finish is not None

    @property
    def has_ended(self) -> bool:
        return self.done or (self.finish is not None and not self._is_on_every_chunk)

    def end(self) -> None:
        """End the builder with the server's reason, corrected by the content."""
        raw = self.finish
        reason = StopReason.END_TURN if raw is None else stop_reason_for(raw)
        if self._refused and reason is StopReason.END_TURN:
            reason = StopReason.REFUSAL
        self._end_text()
        if self._is_on_every_chunk and not self.done:
            # Such a reason does not say that a call was whole when the connection was closed.
            self._builder.end_calls(cut=True)
        self._builder.end(reason, raw)

    def _read_usage(self, usage: Any) -> None:
        if usage and is_object(usage):
            self._builder.usage = parse_usage(usage)

    def _read_groq(self, extra: Any) -> None:
        if not is_object(extra):
            return
        self._read_usage(extra.get("usage"))
        if error_responses.has_error(extra.get("error")):
            self._fail(extra)

    def _read_choice(self, choice: dict[str, Any]) -> None:
        if error_responses.has_error(choice.get("error")):
            self._fail(choice)
        before = self._builder.progress if self.finish is not None else None
        finish = finish_word(choice.get("finish_reason"))
        delta, message = choice.get("delta"), choice.get("message")
        is_last = finish is not None and self.finish is None
        if delta and is_object(delta):
            self._read_delta(delta, says_all=is_last)
        elif isinstance(choice.get("text"), str):
            self._builder.main.text(choice["text"])
        self._has_deltas = self._has_deltas or bool(delta)
        if message and is_object(message) and (not delta or self._builder.may_repeat):
            self._read_delta(message, says_all=self._has_deltas or is_last, is_whole=self._has_deltas)
        if choice.get("tool_calls"):
            self._calls(choice["tool_calls"], is_whole=self._has_deltas)
        self._read_usage(choice.get("usage"))
        if before is not None and self._builder.progress != before:
            self._is_on_every_chunk = True
        if finish is not None:
            self.finish = finish
            self.failure = self.failure or failure_for(finish, error_responses.request_id(self._headers))

    def _read_delta(self, delta: dict[str, Any], *, says_all: bool, is_whole: bool = False) -> None:
        """Read reasoning first, then text, then calls: a whole message holds all three.

        `says_all`: it may repeat everything before it; `is_whole`: it does, and adds what was lost.
        """
        part = self._builder.main
        part.may_repeat_all, part.is_whole = says_all, is_whole
        self._reasoning(delta)
        content = delta.get("content")
        if isinstance(content, str):
            self._text(content, delta)
        elif is_array(content):
            self._parts(content)
        elif is_object(content):
            self._parts([content])
        refusal = delta.get("refusal")
        if refusal and isinstance(refusal, str):
            self._refused = True
            self._builder.main.text(refusal)
        if transcript := text_in(delta.get("audio"), "transcript"):
            self._builder.main.text(transcript)
        part.may_repeat_all = part.is_whole = False
        annotations = delta.get("annotations")
        if annotations and is_array(annotations):
            self._citations += parse_citations(annotations)
        # Pictures that a model made (OpenRouter, LiteLLM).
        for picture in objects_in(delta, "images"):
            self._picture(picture)
        if delta.get("tool_calls"):
            self._calls(delta["tool_calls"], is_whole=is_whole)
        function = delta.get("function_call")
        if is_object(function) and not (is_whole and self._is_known(function)):
            self._function(function, index=_FUNCTION_CALL_INDEX, call_id=None)

    def _calls(self, calls: Any, *, is_whole: bool) -> None:
        """Read a list of calls, one call, or calls by their numbers; anything else is a malformed call."""
        self._end_text()
        self._lists += 1
        if is_object(calls):
            is_one = any(name in calls for name in ("function", "name", "id", "arguments", "index"))
            entries: list[Any] = [calls] if is_one else [_with_index(key, call) for key, call in calls.items()]
        else:
            entries = calls if is_array(calls) else [calls]
        for index, call in enumerate(entries):
            if is_object(call):
                if not (is_whole and self._is_known(_function_of(call))):
                    # Entries of one list are separate calls, even if they are equal.
                    is_bare = len(entries) > 1 and call.get("index") is None and not call.get("id")
                    self._call({**call, "index": index} if is_bare else call, is_listed=len(entries) > 1)
            elif call is not None:
                self._builder.add_call_fragment(arguments=call if isinstance(call, str) else [call])

    def _is_known(self, function: dict[str, Any]) -> bool:
        return self._builder.calls.has_call(text_in(function, "name"), _arguments_of(function))

    def _end_text(self) -> None:
        """Close the text, only if there are citations to keep with it."""
        if self._citations:
            self._builder.main.end_text(tuple(self._citations))
            self._citations.clear()

    def _reasoning(self, delta: dict[str, Any]) -> None:
        """Read the first field with content; other fields have the same text or the state to send back."""
        details = delta.get("reasoning_details")
        blocks = delta.get("thinking_blocks")
        state: dict[str, Any] = {}
        if details and is_array(details):
            state["reasoning_details"] = self._merged(self._details, details, merge_detail)
        if blocks and is_array(blocks):
            state["thinking_blocks"] = self._merged(self._blocks, blocks, merge_thinking_block)
        for name in _REASONING_FIELDS:
            text = _plain_words(delta.get(name))
            if text:
                self._builder.main.thinking(text, field=name, **state)
                return
        if state:
            self._state_without_text(state, details or blocks)

    def _merged(self, merged: list[dict[str, Any]], pieces: list[Any], merge: Any) -> list[dict[str, Any]]:
        if not self._builder.main.is_thinking:
            merged.clear()
        for piece in pieces:
            merge(merged, piece)
        return [dict(entry) for entry in merged]

    def _state_without_text(self, state: dict[str, Any], pieces: Any) -> None:
        """Add state to an open block; pieces that come alone show their own text."""
        if self._builder.main.thinking_field in _REASONING_FIELDS:
            self._builder.main.thinking("", **state)
            return
        fields = [piece for piece in pieces if is_object(piece)]
        texts = [piece.get("text") or piece.get("summary") or piece.get("thinking") for piece in fields]
        text = "".join(piece for piece in texts if isinstance(piece, str))
        self._builder.main.thinking(text, field=next(iter(state)), **state)

    def _text(self, content: str, delta: dict[str, Any]) -> None:
        extra = delta.get("extra_content")
        google = extra.get("google") if is_object(extra) else None
        if is_object(google) and google.get("thought") is True:
            self._builder.main.thinking(content, field="content")
        else:
            self._builder.main.text(content)

    def _parts(self, parts: list[Any]) -> None:
        """Read Mistral's list: text and thinking, the latter with parts of its own. Unknown parts are kept."""
        for part in parts:
            if isinstance(part, str):
                self._builder.main.text(part)
            if not is_object(part):
                continue
            kind = part.get("type")
            word = kind if isinstance(kind, str) else ""
            if (word in _TEXT_PARTS or kind is None) and isinstance(part.get("text"), str):
                self._builder.main.text(part["text"])
            elif word in _REASONING_PARTS:
                text = next(filter(None, (_plain_words(part.get(name)) for name in (word, "text", "content"))), "")
                signature = part.get("signature")
                state = {"signature": signature} if signature else {}
                self._builder.main.thinking(text, field="content.thinking", **state)
            elif word == "refusal" and isinstance(part.get("refusal"), str):
                self._refused = True
                self._builder.main.text(part["refusal"])
            elif kind:
                self._picture(part)

    def _picture(self, part: dict[str, Any]) -> None:
        """Add a picture, unless it is repeated; a part that is none is kept as unknown."""
        address = part.get("image_url")
        text = address.get("url") if is_object(address) else address
        picture = parse_picture(text, self._builder.provider) if part.get("type") in ("image_url", None) else None
        block = picture or Unknown(raw=repair_json(part), provider=self._builder.provider)
        if block not in self._pictures:
            self._pictures.append(block)
            self._builder.add_block(block)

    def _call(self, call: dict[str, Any], *, is_listed: bool) -> None:
        index, call_id = call.get("index"), call.get("id")
        if isinstance(index, float) and index.is_integer():
            index = int(index)
        if isinstance(index, str) and index.isdecimal() and len(index) < _MAX_INDEX_DIGITS:
            index = int(index)
        if type(call_id) is int:
            call_id = str(call_id)
        call_id = call_id if isinstance(call_id, str) else None
        known_index, number = index if type(index) is int else None, self._lists if is_listed else None
        self._function(_function_of(call), index=known_index, call_id=call_id, list_number=number)
        extra = call.get("extra_content")
        if extra and is_object(extra):
            self._builder.calls.attach_state(call_id, {"field": "extra_content", "extra_content": extra})

    def _function(
        self, function: dict[str, Any], *, index: int | None, call_id: str | None, list_number: int | None = None
    ) -> None:
        name = function.get("name")
        self._builder.add_call_fragment(
            index=index,
            id=call_id,
            name=name if isinstance(name, str) else None,
            arguments=_arguments_of(function),
            list_number=list_number,
        )


def _number_of(choice: Any) -> Any:
    return choice.get("index") if is_object(choice) else None


def _plain_words(value: Any) -> str:
    """Return text that is bare, in an object under one of a few names, or in a list of either."""
    return "".join(map(_bare_text, value)) if is_array(value) else _bare_text(value)


def _bare_text(value: Any) -> str:
    if is_object(value):
        texts = (value.get(name) for name in ("text", "content", "thinking", "summary"))
        value = next((text for text in texts if isinstance(text, str) and text), "")
    return value if isinstance(value, str) else ""


def _function_of(call: dict[str, Any]) -> dict[str, Any]:
    """Return name and arguments; some servers leave out the object around them."""
    function = call.get("function")
    if is_object(function):
        return function
    return {**call, "name": function} if isinstance(function, str) else call


def _arguments_of(function: dict[str, Any]) -> Any:
    return next((arguments for name in _ARGUMENTS if (arguments := function.get(name)) is not None), None)


def _with_index(key: str, call: Any) -> Any:
    return {"index": key, **call} if is_object(call) else call


def _only_text(data: Any) -> str | None:
    """Return the text of a chunk that holds nothing else, as nearly every chunk does; else None, for the slow path."""
    if not is_object(data) or "error" in data or "x_groq" in data or "tool_calls" in data or data.get("usage"):
        return None
    try:
        choice: dict[str, Any] = data["choices"][0]
        delta: dict[str, Any] = choice["delta"]
        text = delta["content"]
        if (
            len(delta) == 1
            and isinstance(text, str)
            and not choice.get("finish_reason")
            and choice.keys() <= _PLAIN_FIELDS
        ):
            return text
    except (KeyError, IndexError, TypeError, AttributeError):
        pass
    return None
