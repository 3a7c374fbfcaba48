"""Events as the recordings write them: plain dictionaries, neighbouring deltas joined, new ids as "$generated"."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from desktop_agent.providers.dialects import response_stream
from desktop_agent.providers.dialects.openai_chat.response_stream import FrameReader
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.provider import Provider
from desktop_agent.providers.text_builder import ThinkTags
from desktop_agent.providers.transport.sse import Frame, SseDecoder
from desktop_agent.types.blocks import ServerStep, ToolUse, Unknown
from desktop_agent.types.errors import ProviderError
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import (
    AnswerNamed,
    AnswerStarted,
    ContentDelta,
    Done,
    MessageDelta,
    RequestAdjusted,
    TextClosed,
    ThinkingBlock,
    ThinkingDelta,
    ToolArgsDelta,
    UsageUpdate,
)
from desktop_agent.types.providers import ModelRequest

RECORDINGS = Path(__file__).parents[1] / "recordings"
GENERATED = "call_generated"


def recordings(*folders: str) -> list[Path]:
    """The recorded streams in these folders, one for each dialect."""
    return sorted(path for folder in folders for path in (RECORDINGS / folder).glob("*.sse"))


def expected(path: Path) -> dict[str, Any]:
    """The events that are expected of a stream."""
    return json.loads(path.with_suffix(".expected.json").read_text("utf-8"))


def pieces(data: bytes, size: int) -> list[bytes]:
    """Cut the data after every `size` bytes; with 0 return it whole."""
    return [data[start : start + size] for start in range(0, len(data), size)] if size else [data]


def cut_at(data: bytes, offsets: list[int]) -> list[bytes]:
    """Cut at these offsets."""
    edges = [0, *sorted(set(offsets)), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


def splits(path: Path) -> list[int]:
    """The offsets of a stream at which a test should cut it."""
    file = path.with_suffix(".splits.json")
    return [split["offset"] for split in json.loads(file.read_text("utf-8"))] if file.exists() else []


def as_dict(event: Any) -> dict[str, Any] | None:
    match event:
        case ContentDelta(text=text) | ThinkingDelta(text=text):
            return {"type": event.type, "text": text}
        case ThinkingBlock():
            return {"type": event.type, "text": event.text, "provider": event.provider, "metadata": event.metadata}
        case ToolUse():
            call = {"type": "tool_use", "id": event.id, "name": event.name, "input": event.input}
            return {**call, "malformed": event.malformed} if event.malformed is not None else call
        case MessageDelta():
            return {"type": event.type, "stop_reason": event.stop_reason.value, "raw": event.raw}
        case UsageUpdate():
            return {"type": "usage", **event.usage.model_dump(exclude={"cost"})}
        case Done():
            return {"type": "done"}
        case (
            RequestAdjusted()
            | ToolArgsDelta()
            | AnswerStarted()
            | AnswerNamed()
            | TextClosed()
            | ServerStep()
            | Unknown()
        ):
            return None
    raise AssertionError(event)


def normal(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join neighbouring deltas of one type."""
    out: list[dict[str, Any]] = []
    for event in events:
        if out and event["type"] == out[-1]["type"] and event["type"].endswith(("content_delta", "thinking_delta")):
            out[-1] = {**out[-1], "text": out[-1]["text"] + event["text"]}
        else:
            out.append(dict(event))
    return out


def of_error(error: ProviderError) -> dict[str, Any]:
    return {"type": "error", "kind": error.kind, "message": error.message}


def matches(events: list[dict[str, Any]], recorded: list[dict[str, Any]], *, extras: bool = False) -> None:
    """Assert equality as the recordings' README says; with `extras` also phase and details, where they are recorded."""
    events, recorded = normal(events), normal(recorded)
    for event, expectation in zip(events, recorded, strict=False):
        if expectation.get("id") == "$generated":
            assert event["id"]
            expectation["id"] = event["id"]
        if expectation.get("kind") == "truncated":
            expectation["message"] = event.get("message")
        expected_phase, expected_details = expectation.pop("phase", None), expectation.pop("details", None) or {}
        phase, details = event.pop("phase", None), event.pop("details", None) or {}
        if extras:
            assert expected_phase in (None, phase)
            assert expected_details == {name: details.get(name) for name in expected_details}
    assert events == recorded
    ids = [event["id"] for event in events if event["type"] == "tool_use"]
    assert len(ids) == len(set(ids))


def fold_with(
    chunks: list[bytes], builder: PartBuilder, reader: response_stream.BaseFrameReader
) -> list[dict[str, Any]]:
    """Turn bytes into canonical events in memory, as a provider does with an answer."""
    decoder = SseDecoder()
    frames = [frame for chunk in chunks for frame in decoder.feed(chunk)] + decoder.finish()
    return fold_frames(frames, builder, reader)


def fold_frames(
    frames: list[Frame], builder: PartBuilder, reader: response_stream.BaseFrameReader
) -> list[dict[str, Any]]:
    """Turn frames into canonical events, as a provider does with an answer."""
    for frame in frames:
        was_done = reader.done
        reader.read(frame)
        if was_done:
            reader.failure = None
        elif reader.failure:
            break
    error: dict[str, Any] | None = None
    if reader.failure is not None:
        error = of_error(reader.failure)
    elif not (reader.has_ended or reader.has_finished):
        error = {"type": "error", "kind": "truncated", "message": ""}
    if error is None:
        reader.end()
    else:
        builder.close_parts()
    used = reader.usage_so_far if error is not None else None
    ends = [*builder.take_events(), *([] if used is None else [UsageUpdate(used)])]
    events = [plain for event in ends if (plain := as_dict(event)) is not None]
    return [*events, error or {"type": "done"}]


def counted_ids() -> Callable[[], str]:
    """Return a source of ids for calls that have none. They are the same however the stream is cut."""
    numbers = iter(range(1000))
    return lambda: f"{GENERATED}_{next(numbers)}"


def fold(chunks: list[bytes], *, tags: bool = True, provider: str = "openai-compat") -> list[dict[str, Any]]:
    """Turn the bytes of a stream of Chat Completions into canonical events."""
    builder = PartBuilder(provider, tags=ThinkTags() if tags else None, call_id=counted_ids(), may_repeat=True)
    return fold_with(chunks, builder, FrameReader(builder, {}))


async def ask(provider: Provider, request: ModelRequest | None = None) -> list[dict[str, Any]]:
    """All events of one answer, with a provider's error as the last of them."""
    events: list[dict[str, Any]] = []
    try:
        async for event in provider.stream(request or simple_request()):
            events += filter(None, [as_dict(event)])
    except ProviderError as error:
        events.append(of_error(error))
    return events


def simple_request(**more: Any) -> ModelRequest:
    return ModelRequest(**{"model": "m", "messages": (Message.user("hi"),), **more})
