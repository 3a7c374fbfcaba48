"""Chat Completions for the demo: read a request, check its calls strictly, and write the script as an answer.

The JSON is untrusted: what is missing or of another type counts as empty. Pictures are measured from their bytes.
"""

import asyncio
import base64
import binascii
import io
import json
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from desktop_agent.data_files import load_table
from desktop_agent.providers.demo import scripted_model
from desktop_agent.providers.demo.http import Request, RequestError
from desktop_agent.providers.demo.scripted_model import (
    FAST_PACE,
    MODEL,
    AnsweredCall,
    Break,
    Call,
    Json,
    ReceivedPicture,
    ReceivedRequest,
    Say,
    Script,
    Step,
    Think,
    split_pieces,
)

_MODEL_CARD = load_table(__name__, "model.toml")


async def answer_request(request: Request) -> "ChatWriter | Json":
    """Return a writer for an answer, or ready JSON. Raises RequestError."""
    match (request.method, request.path):
        case ("GET", "/v1/models"):
            return {"object": "list", "data": [_MODEL_CARD]}
        case ("GET", path) if path.startswith("/v1/models/"):
            require_model(path.removeprefix("/v1/models/"))
            return _MODEL_CARD
        case ("POST", "/v1/chat/completions"):
            # Large pictures take a while to decode, and the loop may be the window's.
            return await asyncio.to_thread(_answer, request.body)
        case _:
            raise RequestError(404, f"There is nothing at {request.method} {request.path}.")


def _answer(body: bytes) -> "ChatWriter":
    question = read_chat_request(body)
    return ChatWriter(question, scripted_model.play(question))


def bad_request(message: str, code: str | None = None) -> RequestError:
    """Return the error for a request that is wrong in itself."""
    return RequestError(400, message, code)


def parse_body(body: bytes) -> Json:
    """Parse the body of a request. Raises RequestError."""
    try:
        parsed: object = json.loads(body)
    except (ValueError, RecursionError):
        raise bad_request("The body is not JSON.") from None
    return as_object(parsed)


def as_object(value: object) -> Json:
    """Return the object, or an empty one."""
    return cast("Json", value) if isinstance(value, dict) else {}


def as_objects(value: object) -> list[Json]:
    """Return the list with every entry as an object; for everything else an empty one."""
    return [as_object(entry) for entry in cast("list[Any]", value)] if isinstance(value, list) else []


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


def require_model(name: object) -> None:
    """Raise RequestError for another model's name."""
    if name != MODEL:
        raise RequestError(404, f"There is no such model; this is “{MODEL}”.", "model_not_found")


def read_chat_request(body: bytes) -> ReceivedRequest:
    """Read a request body. Raises RequestError."""
    fields = parse_body(body)
    require_model(fields.get("model"))
    messages = as_objects(fields.get("messages"))
    if not messages:
        raise bad_request("There are no messages.", "missing_required_parameter")
    _check_results(messages)
    prompts = [index for index, message in enumerate(messages) if message.get("role") == "user"]
    last = prompts[-1] if prompts else 0
    return ReceivedRequest(
        stream=fields.get("stream") is True,
        text=_text(messages[last]),
        prompts=len(prompts),
        pictures=tuple(_pictures(messages[last])) if prompts else (),
        tools=tuple(_tool_names(fields)) or None,
        answered=tuple(_answered_calls(messages[last + 1 :])),
        length=sum(len(_text(message)) for message in messages),
        wants_usage=as_object(fields.get("stream_options")).get("include_usage") is True,
        reasons=fields.get("reasoning_effort") != "none",
    )


def _text(message: Json) -> str:
    return join_text(message.get("content"), "text")


def _pictures(message: Json) -> Iterator[ReceivedPicture]:
    for part in as_objects(message.get("content")):
        if part.get("type") == "image_url":
            yield picture_from_url(str(as_object(part.get("image_url")).get("url", "")))


def _answered_calls(messages: list[Json]) -> Iterator[AnsweredCall]:
    """Match calls with their results by id, in the order of the results."""
    calls: dict[str, Json] = {}
    for message in messages:
        if message.get("role") == "assistant":
            entries = as_objects(message.get("tool_calls"))
            calls |= {str(call.get("id")): as_object(call.get("function")) for call in entries}
        elif message.get("role") == "tool":
            call = calls.get(str(message.get("tool_call_id")), {})
            yield AnsweredCall(str(call.get("name", "")), parse_arguments(call.get("arguments")), _text(message))


def _check_results(messages: list[Json]) -> None:
    """Check that every call is answered right after its message, and that there are no other results."""
    unanswered: set[str] = set()
    # The end counts as one more message without calls.
    for message in (*messages, Json()):
        if message.get("role") == "tool":
            if str(message.get("tool_call_id")) not in unanswered:
                raise bad_request("A message of role 'tool' must answer a call of the message before it.")
            unanswered.discard(str(message.get("tool_call_id")))
            continue
        if unanswered:
            raise bad_request(f"These tool_call_ids had no tool message behind them: {', '.join(sorted(unanswered))}.")
        unanswered = {str(call.get("id")) for call in as_objects(message.get("tool_calls"))}


def _tool_names(fields: Json) -> Iterator[str]:
    for tool in as_objects(fields.get("tools")):
        name = as_object(tool.get("function")).get("name")
        if isinstance(name, str):
            yield name


@dataclass(frozen=True, slots=True)
class TimedFrame:
    """One server-sent event as it is sent, and the seconds to wait before it."""

    data: bytes
    pause: float = 0.0


@dataclass
class ChatWriter:
    """Writes one answer. Token counts are counts of pieces: a script has no tokens.

    Reasoning goes under `reasoning_content`, as compatible servers send it.
    """

    question: ReceivedRequest
    script: Script
    id: str = field(default_factory=lambda: secrets.token_hex(12))
    created: int = field(default_factory=lambda: int(time.time()))

    def frames(self) -> Iterator[TimedFrame]:
        """Yield chunks, usage if it was requested, and [DONE]; after a Break nothing more, not even the end mark."""
        yield self._frame({"role": "assistant", "content": ""})
        index = 0
        for step in self.script:
            if isinstance(step, Break):
                yield sse_event(RequestError(500, step.message, "demo_error").body(), FAST_PACE)
                return
            yield from self._step(step, index)
            index += isinstance(step, Call)
        yield self._frame({}, finish=self._finish_reason)
        if self.question.wants_usage:
            yield sse_event({**self._head("chat.completion.chunk"), "choices": [], "usage": self._usage()})
        yield TimedFrame(b"data: [DONE]\n\n")

    def full_answer(self) -> Json:
        """Return a completion. Raises RequestError where the stream would break off."""
        self.require_unbroken()
        message: Json = {"role": "assistant", "content": self._joined(Say) or None, "refusal": None}
        if thought := self._joined(Think):
            message["reasoning_content"] = thought
        if self.calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments_json}}
                for call in self.calls
            ]
        choice = {"index": 0, "message": message, "finish_reason": self._finish_reason, "logprobs": None}
        return {**self._head("chat.completion"), "choices": [choice], "usage": self._usage()}

    def require_unbroken(self) -> None:
        """Raise RequestError where the stream would break off."""
        broken = next((step for step in self.script if isinstance(step, Break)), None)
        if broken is not None:
            raise RequestError(500, broken.message, "demo_error")

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(step for step in self.script if isinstance(step, Call))

    @property
    def written(self) -> int:
        return sum(_piece_count(step) for step in self.script)

    @property
    def thought(self) -> int:
        return sum(_piece_count(step) for step in self.script if isinstance(step, Think))

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


def _piece_count(step: Step) -> int:
    match step:
        case Think() | Say():
            return sum(1 for _ in split_pieces(step.text))
        case Call():
            return sum(1 for _ in split_pieces(step.arguments_json))
        case Break():
            return 0


def sse_event(value: Json, pause: float = 0.0) -> TimedFrame:
    """Return an event with this data."""
    return TimedFrame(f"data: {json.dumps(value, ensure_ascii=False)}\n\n".encode("utf-8", "replace"), pause)
