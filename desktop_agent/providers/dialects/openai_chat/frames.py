"""Chat Completions chunks to fragments: says whose each piece is, assembles nothing.

Every field is optional and content is believed over flags; the shapes read here are those of about fifteen families
of servers. A whole completion in place of a stream is read the same way, `message` standing for `delta`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from desktop_agent.providers.dialects.finish_reasons import failure_of, finish_word, reason_of
from desktop_agent.providers.dialects.openai_chat.citations import citations_of
from desktop_agent.providers.dialects.openai_chat.reasoning_details import merge_detail, merge_thinking_block
from desktop_agent.providers.dialects.openai_chat.usage import usage_of
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.transport import failures
from desktop_agent.providers.transport.json_text import is_array, is_object, mended_json
from desktop_agent.providers.transport.sse import DONE, Frame
from desktop_agent.vocabulary.blocks import Citation, Unknown
from desktop_agent.vocabulary.errors import ProviderError
from desktop_agent.vocabulary.provider_events import StopReason

_REASONING_FIELDS = ("reasoning_content", "reasoning")
_FUNCTION_CALL_INDEX = -1  # the deprecated single call has neither index nor id


class FrameReader:
    """Reads the frames of one answer into a PartBuilder.

    `done` is set by `[DONE]`, `finish` is the last finish_reason that said anything, `usage_seen` the last usage.
    `failure` is set by an error in the stream; nothing after it counts. `recognised` is whether anything looked like
    this dialect. `without_key` takes the key out of an error that a server wrote.
    """

    def __init__(
        self, builder: PartBuilder, headers: Mapping[str, str], without_key: Callable[[Any], Any] = lambda data: data
    ) -> None:
        self.done = False
        self.end_mark = "finish_reason and [DONE]"
        self.recognised = False
        self.finish: str | None = None
        self.failure: ProviderError | None = None
        self._builder = builder
        self._show = builder.main.text
        self._headers = headers
        self._without_key = without_key
        self._refused = False
        self._is_over = False
        self._citations: list[Citation] = []
        self._details: list[dict[str, Any]] = []
        self._blocks: list[dict[str, Any]] = []

    def read(self, frame: Frame) -> None:
        """Fold one frame in."""
        name, data = frame
        text = None if name else _only_text(data)
        if text is not None:
            self.recognised = True
            self._show(text)
            return
        if data is DONE:
            self.done = True
            return
        if not is_object(data):
            if is_array(data) or name == "error":
                self._fail(data)
            return
        if data.get("error") or name == "error" or (data.get("object") == "error") or _is_detail_only(data):
            self._fail(data)
            return
        self._builder.named(data.get("id"))
        self._count(data.get("usage"))
        if "x_groq" in data:
            self._groq(data["x_groq"])
        if "choices" in data:
            self.recognised = True
            choices = data["choices"]
            if choices and is_array(choices) and is_object(choices[0]):
                self._choice(choices[0])

    @property
    def has_finished(self) -> bool:
        """Whether a finish_reason came: usage and the end mark follow, or more text where it stands on every chunk."""
        return self.has_ended

    @property
    def has_ended(self) -> bool:
        """Whether an end mark came: [DONE], or a finish_reason."""
        return self.done or self.finish is not None

    def end(self) -> bool:
        """The clean end: the reason that was given, corrected by what came. False when it was said already."""
        if self._is_over:
            return False
        self._is_over = True
        raw = self.finish
        reason = StopReason.END_TURN if raw is None else reason_of(raw)
        if self._refused and reason is StopReason.END_TURN:
            reason = StopReason.REFUSAL
        self._end_text()
        self._builder.end(reason, raw)
        return True

    def _fail(self, data: Any) -> None:
        if self.failure is None:
            self.failure = failures.from_stream(self._without_key(data), self._headers)

    def _count(self, usage: Any) -> None:
        if usage and is_object(usage):
            self._builder.usage = usage_of(usage)

    def _groq(self, extra: Any) -> None:
        if not is_object(extra):
            return
        self._count(extra.get("usage"))
        if extra.get("error"):
            self._fail(extra)

    def _choice(self, choice: dict[str, Any]) -> None:
        if choice.get("error"):
            self._fail(choice)
            return
        delta = choice.get("delta") or choice.get("message")
        if delta and is_object(delta):
            self._delta(delta)
        self._count(choice.get("usage"))
        finish = finish_word(choice.get("finish_reason"))
        if finish is not None:
            self.finish = finish
            self.failure = self.failure or failure_of(finish, failures.request_id(self._headers))

    def _delta(self, delta: dict[str, Any]) -> None:
        """Reasoning first, then text, then calls: a whole message holds all three."""
        self._reasoning(delta)
        content = delta.get("content")
        if isinstance(content, str):
            self._text(content, delta)
        elif is_array(content):
            self._parts(content)
        refusal = delta.get("refusal")
        if refusal and isinstance(refusal, str):
            self._refused = True
            self._builder.text(refusal)
        annotations = delta.get("annotations")
        if annotations and is_array(annotations):
            self._citations += citations_of(annotations)
        calls = delta.get("tool_calls")
        if calls:
            self._end_text()
        for call in calls if is_array(calls) else ():
            if is_object(call):
                self._call(call)
        function = delta.get("function_call")
        if is_object(function):
            self._function(function, index=_FUNCTION_CALL_INDEX, call_id=None)

    def _end_text(self) -> None:
        """The text is closed only where there is something to keep with it."""
        if self._citations:
            self._builder.end_text(tuple(self._citations))
            self._citations.clear()

    def _reasoning(self, delta: dict[str, Any]) -> None:
        """The first field that says something; its siblings carry the same text or the state to send back."""
        details = delta.get("reasoning_details")
        blocks = delta.get("thinking_blocks")
        state: dict[str, Any] = {}
        if details and is_array(details):
            state["reasoning_details"] = self._merged(self._details, details, merge_detail)
        if blocks and is_array(blocks):
            state["thinking_blocks"] = self._merged(self._blocks, blocks, merge_thinking_block)
        for name in _REASONING_FIELDS:
            text = delta.get(name)
            if text and isinstance(text, str):
                self._builder.thinking(text, field=name, **state)
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
        """State in an open block belongs to it; pieces that come alone show their own text."""
        if self._builder.main.thinking_field in _REASONING_FIELDS:
            self._builder.thinking("", **state)
            return
        fields = [piece for piece in pieces if is_object(piece)]
        shown = [piece.get("text") or piece.get("summary") or piece.get("thinking") for piece in fields]
        text = "".join(each for each in shown if isinstance(each, str))
        self._builder.thinking(text, field=next(iter(state)), **state)

    def _text(self, content: str, delta: dict[str, Any]) -> None:
        extra = delta.get("extra_content")
        google = extra.get("google") if is_object(extra) else None
        if is_object(google) and google.get("thought") is True:
            self._builder.thinking(content, field="content")
        else:
            self._builder.text(content)

    def _parts(self, parts: list[Any]) -> None:
        """Mistral's list: text and thinking, the latter with parts of its own. What nobody here knows is kept."""
        for part in parts:
            if not is_object(part):
                continue
            if part.get("type") == "text" and isinstance(part.get("text"), str):
                self._builder.text(part["text"])
            elif part.get("type") == "thinking":
                inner = part.get("thinking")
                pieces = inner if is_array(inner) else [{"text": inner}]
                text = "".join(each["text"] for each in pieces if is_object(each) and isinstance(each.get("text"), str))
                signature = part.get("signature")
                state = {"signature": signature} if signature else {}
                self._builder.thinking(text, field="content.thinking", **state)
            elif part.get("type") == "refusal" and isinstance(part.get("refusal"), str):
                self._refused = True
                self._builder.text(part["refusal"])
            elif part.get("type"):
                self._builder.block(Unknown(raw=mended_json(part), provider=self._builder.provider))

    def _call(self, call: dict[str, Any]) -> None:
        function = call.get("function")
        index = call.get("index")
        call_id = call.get("id")
        self._function(
            function if is_object(function) else {},
            index=index if type(index) is int else None,
            call_id=call_id if isinstance(call_id, str) else None,
        )
        extra = call.get("extra_content")
        if extra and is_object(extra):
            self._builder.call_state(call_id, field="extra_content", extra_content=extra)

    def _function(self, function: dict[str, Any], *, index: int | None, call_id: str | None) -> None:
        name = function.get("name")
        self._builder.call_fragment(
            index=index,
            id=call_id,
            name=name if isinstance(name, str) else None,
            arguments=function.get("arguments"),
        )


def _only_text(data: Any) -> str | None:
    """The text of a chunk that holds nothing else, as nearly every chunk does; None sends it the long way."""
    if not is_object(data) or "error" in data or "x_groq" in data or data.get("usage"):
        return None
    try:
        choice: dict[str, Any] = data["choices"][0]
        delta: dict[str, Any] = choice["delta"]
        text = delta["content"]
        if len(delta) == 1 and isinstance(text, str) and not choice.get("finish_reason") and "error" not in choice:
            return text
    except (KeyError, IndexError, TypeError, AttributeError):
        pass
    return None


def _is_detail_only(data: dict[str, Any]) -> bool:
    return "detail" in data and "choices" not in data
