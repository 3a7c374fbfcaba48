"""Events as the plain objects of `--jsonl`: one a line, the same for every dialect."""

from typing import Any

from desktop_agent.vocabulary.blocks import ToolUse
from desktop_agent.vocabulary.engine_events import ErrorOccurred, Event, ToolFinished
from desktop_agent.vocabulary.provider_events import (
    ContentDelta,
    Done,
    MessageDelta,
    ThinkingBlock,
    ThinkingDelta,
    UsageUpdate,
)


def event_to_json(event: Event) -> dict[str, Any] | None:
    """The object to print, or None for events that are the engine's own."""
    match event:
        case ErrorOccurred():
            return {"type": event.type, "kind": event.kind, "message": event.message}
        case ToolFinished():
            content = [part.model_dump(mode="json") for part in event.result.content]
            outcome = str(event.outcome)
            return {"type": "tool_result", "tool_use_id": event.id, "outcome": outcome, "content": content}
        case _:
            return _provider_event_to_json(event)


def _provider_event_to_json(event: Event) -> dict[str, Any] | None:
    match event:
        case ContentDelta(phase=str(phase)):
            return {"type": event.type, "text": event.text, "phase": phase}
        case ContentDelta() | ThinkingDelta():
            return {"type": event.type, "text": event.text}
        case ThinkingBlock():
            # The family of servers behind the slash matters for replay only.
            provider = event.provider.partition("/")[0]
            return {"type": event.type, "text": event.text, "provider": provider, "metadata": event.metadata}
        case ToolUse(malformed=None):
            return {"type": event.type, "id": event.id, "name": event.name, "input": event.input}
        case MessageDelta():
            ending: dict[str, Any] = {"type": event.type, "stop_reason": str(event.stop_reason), "raw": event.raw}
            return ending if event.details is None else {**ending, "details": event.details}
        case UsageUpdate():
            return {"type": event.type, **event.usage.model_dump(exclude={"cost"})}
        case Done():
            return {"type": event.type}
        case _:
            return None
