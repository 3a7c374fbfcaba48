"""Streams of generateContent made by hand, and readers of their events."""

import json
from datetime import UTC, datetime
from typing import Any

from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.providers.dialects.gemini.response_stream import FrameReader
from desktop_agent.providers.dialects.request_building import account_digest
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.transport.sse import SseDecoder
from desktop_agent.types.blocks import Image, ServerStep, Unknown
from desktop_agent.types.errors import ProviderError
from desktop_agent.types.messages import Message, MessageState
from desktop_agent.types.provider_events import AnswerStarted, MessageDelta, Origin, ProviderEvent, TextClosed
from tests.fakes.recordings import counted_ids, fold_with

MODEL = "gemini-3.8-flash"
ROOT = "http://127.0.0.1:1/v1beta"
ACCOUNT = account_digest(ROOT, MODEL)
OWN = Origin(provider="gemini", account=ACCOUNT)
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
USAGE = {"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7}


def chunk(*parts: dict[str, Any], top: dict[str, Any] | None = None, **candidate: Any) -> dict[str, Any]:
    """Return one chunk; `finish` is its finishReason, `top` are fields beside its candidates."""
    content = {"content": {"parts": list(parts), "role": "model"}} if parts else {}
    finish = candidate.pop("finish", None)
    end = {"finishReason": finish} if finish else {}
    return {"candidates": [{**content, **end, "index": 0, **candidate}], **(top or {})}


def sse(*chunks: Any, end: str = "\r\n") -> bytes:
    """Return an event stream; strings are sent unchanged."""
    texts = [event if isinstance(event, str) else f"data: {json.dumps(event)}" for event in chunks]
    return "".join(f"{text}{end}{end}" for text in texts).encode()


def fold(chunks: list[bytes]) -> list[dict[str, Any]]:
    """Fold bytes to canonical events."""
    builder = PartBuilder("gemini", call_id=counted_ids(), may_repeat=True)
    return fold_with(chunks, builder, FrameReader(builder, {}))


def read_events(data: bytes) -> tuple[list[ProviderEvent], ProviderError | None]:
    """Return the typed events and the error of the stream."""
    decoder, builder = SseDecoder(), PartBuilder("gemini", call_id=counted_ids())
    reader = FrameReader(builder, {})
    for frame in [*decoder.feed(data), *decoder.finish()]:
        reader.read(frame)
        if reader.failure is not None:
            builder.close_parts()
            return builder.take_events(), reader.failure
    assert reader.has_finished
    reader.end()
    return builder.take_events(), None


def blocks(data: bytes) -> list[TextClosed | ServerStep | Image | Unknown]:
    """Return the blocks that canonical events leave out."""
    return [event for event in read_events(data)[0] if isinstance(event, (TextClosed, ServerStep, Image, Unknown))]


def ending(data: bytes) -> MessageDelta:
    """Return the one event that tells how the answer stopped."""
    (delta,) = [event for event in read_events(data)[0] if isinstance(event, MessageDelta)]
    return delta


def answer(data: bytes, origin: Origin = OWN, model: str = MODEL) -> Message:
    """Return the message that the runtime builds from a stream."""
    builder = AnswerBuilder("a", model)
    for event in [AnswerStarted(origin), *read_events(data)[0]]:
        builder.feed(event, NOON)
    return builder.message(MessageState.COMPLETE, NOON)
