"""Chat Completions for the demo: read a request, strictly about calls, and write the script as an answer.

The JSON is untrusted: what is missing or of another type is empty. Pictures are measured from their bytes.
"""

import base64
import binascii
import io
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from desktop_agent.providers.demo.http import AnswerWriter, RequestError, TimedFrame, error_body, sse_event
from desktop_agent.providers.demo.script import (
    FAST_PACE,
    MODEL,
    AnsweredCall,
    Break,
    Call,
    Json,
    ReceivedPicture,
    ReceivedRequest,
    Say,
    Think,
    split_pieces,
)

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def bad_request(message: str, code: str | None = None) -> RequestError:
    """Return the error for a request that is wrong in itself."""
    return RequestError(400, message, code)


def parse_body(body: bytes) -> Json:
    """Parse the body of a request. Raises RequestError."""
    try:
        read: object = json.loads(body)
    except (ValueError, RecursionError):
        raise bad_request("The body is not JSON.") from None
    return as_object(read)


def as_object(value: object) -> Json:
    """Return the object, or an empty one."""
    return cast("Json", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """Return the list, or an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_objects(value: object) -> list[Json]:
    """Return the list with every entry as an object."""
    return [as_object(entry) for entry in as_list(value)]


def join_text(content: object, *kinds: str) -> str:
    """Return a string, or the texts of the parts of these types."""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in as_objects(content) if part.get("type") in kinds)


def parse_arguments(text: object) -> Json:
    """Parse arguments as a model writes them."""
    try:
        return as_object(json.loads(text or "{}")) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}


def require_tool_names(names: list[Any]) -> list[str]:
    """Check tool names as OpenAI and Anthropic do. Raises RequestError for a bad name or one given twice."""
    for name in names:
        if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
            raise bad_request(f"A tool's name must match {_TOOL_NAME.pattern}.")
    if len(set(names)) != len(names):
        raise bad_request("Tool names must be unique.")
    return names


def picture_from_url(url: str) -> ReceivedPicture:
    """Measure a picture by its data URL."""
    head, comma, text = url.partition(",")
    if not (comma and head.startswith("data:") and head.endswith(";base64")):
        return ReceivedPicture(problem="it came as a web address, and this demo opens no addresses")
    return picture_from_base64(text)


def picture_from_base64(text: object) -> ReceivedPicture:
    """Measure a picture in base64."""
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


@dataclass(frozen=True, slots=True)
class CallInHistory:
    """A call in the history."""

    id: str
    name: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class ResultInHistory:
    """The result of a call in the history."""

    call_id: str
    text: str


@dataclass(slots=True)
class HistoryTurn:
    """One message of the history."""

    role: Literal["user", "assistant", "results", "system"]
    text: str = ""
    pictures: list[ReceivedPicture] = field(default_factory=list[ReceivedPicture])
    calls: list[CallInHistory] = field(default_factory=list[CallInHistory])
    results: list[ResultInHistory] = field(default_factory=list[ResultInHistory])


def require_model(name: object) -> None:
    """Raise RequestError for another model's name."""
    if name != MODEL:
        raise RequestError(404, f"There is no such model; this is “{MODEL}”.", "model_not_found")


def build_request(turns: list[HistoryTurn], *, stream: bool, tools: list[str], more: dict[str, Any]) -> ReceivedRequest:
    """Return the request for the end of a history. `more`: further fields from the dialect. Raises RequestError."""
    if not turns:
        raise bad_request("There are no messages.", "missing_required_parameter")
    prompts = [index for index, turn in enumerate(turns) if turn.role == "user"]
    last = prompts[-1] if prompts else 0
    length = sum(len(turn.text) + sum(len(result.text) for result in turn.results) for turn in turns)
    return ReceivedRequest(
        stream=stream,
        text=turns[last].text,
        prompts=len(prompts),
        pictures=tuple(turns[last].pictures),
        tools=tuple(tools) or None,
        answered=tuple(_match_results(turns[last + 1 :])),
        length=length,
        **more,
    )


def _match_results(turns: list[HistoryTurn]) -> Iterator[AnsweredCall]:
    """Match calls with their results by id, in the order of the results."""
    calls: dict[str, CallInHistory] = {}
    for turn in turns:
        calls |= {call.id: call for call in turn.calls}
        for result in turn.results:
            call = calls.get(result.call_id)
            yield AnsweredCall(call.name if call else "", call.arguments if call else {}, result.text)


def read_chat_request(body: bytes) -> ReceivedRequest:
    """Read a request body. Raises RequestError."""
    wanted = parse_body(body)
    require_model(wanted.get("model"))
    messages = as_objects(wanted.get("messages"))
    _check_results(messages)
    return build_request(
        list(_turns(messages)),
        stream=wanted.get("stream") is True,
        tools=list(_tool_names(wanted)),
        more={
            "wants_usage": as_object(wanted.get("stream_options")).get("include_usage") is True,
            "reasons": wanted.get("reasoning_effort") != "none",
        },
    )


def _turns(messages: list[Json]) -> Iterator[HistoryTurn]:
    for message in messages:
        text = join_text(message.get("content"), "text")
        match message.get("role"):
            case "user":
                parts = as_objects(message.get("content"))
                urls = [str(as_object(part.get("image_url")).get("url", "")) for part in parts if _is_picture(part)]
                yield HistoryTurn("user", text, pictures=[picture_from_url(url) for url in urls])
            case "assistant":
                yield HistoryTurn(
                    "assistant", text, calls=[_call(call) for call in as_objects(message.get("tool_calls"))]
                )
            case "tool":
                yield HistoryTurn("results", results=[ResultInHistory(str(message.get("tool_call_id")), text)])
            case _:
                yield HistoryTurn("system", text)


def _call(call: Json) -> CallInHistory:
    function = as_object(call.get("function"))
    return CallInHistory(str(call.get("id")), str(function.get("name", "")), parse_arguments(function.get("arguments")))


def _is_picture(part: Json) -> bool:
    return part.get("type") == "image_url"


def _check_results(messages: list[Json]) -> None:
    """Check that every call is answered right after its message, and nothing else is."""
    waiting: set[str] = set()
    for message in messages:
        if message.get("role") == "tool":
            if str(message.get("tool_call_id")) not in waiting:
                raise bad_request("A message of role 'tool' must answer a call of the message before it.")
            waiting.discard(str(message.get("tool_call_id")))
            continue
        if waiting:
            raise bad_request(f"These tool_call_ids had no tool message behind them: {', '.join(sorted(waiting))}.")
        waiting = {str(call.get("id")) for call in as_objects(message.get("tool_calls"))}
    if waiting:
        raise bad_request(f"These tool_call_ids had no tool message behind them: {', '.join(sorted(waiting))}.")


def _tool_names(wanted: Json) -> Iterator[str]:
    for tool in as_list(wanted.get("tools")):
        name = as_object(as_object(tool).get("function")).get("name")
        if isinstance(name, str):
            yield name


@dataclass
class ChatWriter(AnswerWriter):
    """Writes answers. Reasoning goes under `reasoning_content`, as compatible servers send it."""

    created: int = field(default_factory=lambda: int(time.time()))

    def frames(self) -> Iterator[TimedFrame]:
        """Yield chunks, usage if it was requested, and [DONE]."""
        yield self._frame({"role": "assistant", "content": ""})
        index = 0
        for step in self.script:
            if isinstance(step, Break):
                yield sse_event(error_body(RequestError(500, step.message, "demo_error"), "openai-chat"), FAST_PACE)
                return
            yield from self._step(step, index)
            index += isinstance(step, Call)
        yield self._frame({}, finish=self._finish_reason)
        if self.question.wants_usage:
            yield sse_event({**self._head("chat.completion.chunk"), "choices": [], "usage": self._usage()})
        yield TimedFrame(b"data: [DONE]\n\n")

    def full_answer(self) -> dict[str, Any]:
        """Return a completion."""
        self.require_unbroken()
        message: dict[str, Any] = {"role": "assistant", "content": self._joined(Say) or None, "refusal": None}
        if thought := self._joined(Think):
            message["reasoning_content"] = thought
        if self.calls:
            message["tool_calls"] = [_whole_call(call) for call in self.calls]
        choice = {"index": 0, "message": message, "finish_reason": self._finish_reason, "logprobs": None}
        return {**self._head("chat.completion"), "choices": [choice], "usage": self._usage()}

    @property
    def _finish_reason(self) -> str:
        return "tool_calls" if self.calls else "stop"

    def _step(self, step: Think | Say | Call, index: int) -> Iterator[TimedFrame]:
        match step:
            case Think():
                for piece in split_pieces(step.text):
                    yield self._frame({"reasoning_content": piece}, FAST_PACE)
            case Say():
                for piece in split_pieces(step.text):
                    yield self._frame({"content": piece}, step.pace)
            case Call():
                head = {"index": index, "id": step.id, "type": "function"}
                yield self._frame(
                    {"tool_calls": [{**head, "function": {"name": step.name, "arguments": ""}}]}, FAST_PACE
                )
                for piece in split_pieces(step.arguments_json):
                    yield self._frame({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}, FAST_PACE)

    def _frame(self, delta: dict[str, Any], pause: float = 0.0, finish: str | None = None) -> TimedFrame:
        chunk = self._head("chat.completion.chunk")
        chunk["choices"] = [{"index": 0, "delta": delta, "finish_reason": finish}]
        if self.question.wants_usage:
            chunk["usage"] = None
        return sse_event(chunk, pause)

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": f"chatcmpl-demo-{self.id}", "object": kind, "created": self.created, "model": MODEL}

    def _joined(self, kind: type[Say] | type[Think]) -> str:
        return "\n\n".join(step.text for step in self.script if isinstance(step, kind))

    def _usage(self) -> dict[str, Any]:
        return {
            "prompt_tokens": self.question.tokens,
            "completion_tokens": self.written,
            "total_tokens": self.question.tokens + self.written,
            "completion_tokens_details": {"reasoning_tokens": self.thought},
        }


def _whole_call(step: Call) -> dict[str, Any]:
    return {"id": step.id, "type": "function", "function": {"name": step.name, "arguments": step.arguments_json}}
