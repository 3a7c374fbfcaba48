"""Events of the Responses API for streams that no recording has, and their folded results."""

import json
from typing import Any

from desktop_agent.providers.dialects.openai_responses.response_stream import ResponsesReader
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.transport.sse import SseDecoder
from desktop_agent.types.provider_events import ProviderEvent
from tests.fakes.recordings import counted_ids, pieces

PROVIDER = "openai-responses"
Event = dict[str, Any]


def event(name: str, **fields: Any) -> Event:
    return {"type": f"response.{name}", **fields}


def added(index: int, **item: Any) -> Event:
    return event("output_item.added", output_index=index, item=item)


def done(index: int, **item: Any) -> Event:
    return event("output_item.done", output_index=index, item=item)


def text(index: int, item_id: str, delta: str, part: int = 0) -> Event:
    return event("output_text.delta", output_index=index, item_id=item_id, content_index=part, delta=delta)


def arguments(index: int, item_id: str, delta: str) -> Event:
    return event("function_call_arguments.delta", output_index=index, item_id=item_id, delta=delta)


def message(item_id: str, *parts: Event | str, **more: Any) -> Event:
    content = [output_text(part) if isinstance(part, str) else part for part in parts]
    return {"id": item_id, "type": "message", "role": "assistant", "status": "completed", "content": content, **more}


def output_text(text: str, *annotations: Event) -> Event:
    return {"type": "output_text", "text": text, "annotations": list(annotations)}


def function_call(item_id: str, call_id: str, name: str, text: str, **more: Any) -> Event:
    return {"id": item_id, "type": "function_call", "call_id": call_id, "name": name, "arguments": text} | {
        "status": "completed",
        **more,
    }


def reasoning(item_id: str, *summary: str, **more: Any) -> Event:
    parts = [{"type": "summary_text", "text": part} for part in summary]
    return {"id": item_id, "type": "reasoning", "summary": parts, "encrypted_content": f"blob-{item_id}", **more}


def completed(*output: Event, **more: Any) -> Event:
    return event("completed", response={"id": "resp_1", "status": "completed", "output": list(output), **more})


def stream(*events: Event | str) -> bytes:
    """Return the events as OpenAI frames them; a string is sent as data."""
    lines = [
        f"data: {event}\n\n" if isinstance(event, str) else f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
        for event in events
    ]
    return "".join(lines).encode()


class Folded:
    """A stream folded as the core does it: the events, and the reader afterwards."""

    def __init__(self, data: bytes, size: int = 0, *, may_repeat: bool = False) -> None:
        self.builder = PartBuilder(PROVIDER, call_id=counted_ids(), keeps_arguments=True, may_repeat=may_repeat)
        self.reader = ResponsesReader(self.builder, {})
        self.client: list[list[ProviderEvent]] = []
        decoder = SseDecoder()
        frames = [frame for chunk in pieces(data, size) for frame in decoder.feed(chunk)] + decoder.finish()
        for frame in frames:
            self.reader.read(frame)
            self.client.append(self.builder.take_events())
            if self.reader.done or self.reader.failure is not None:
                break
        if self.reader.done:
            self.reader.end()
        else:
            self.builder.close_parts()
        self.client.append(self.builder.take_events())

    @property
    def events(self) -> list[ProviderEvent]:
        return [event for batch in self.client for event in batch]

    def all(self, event_type: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, event_type)]

    @property
    def shape(self) -> list[str]:
        """Return the types of the events; neighbours of one type are listed once."""
        types = [event.type for event in self.events]
        return [event for index, event in enumerate(types) if index == 0 or event != types[index - 1]]


def folded(*events: Event | str) -> Folded:
    """Fold the stream as a whole; assert that folding it byte by byte gives the same."""
    data = stream(*events)
    result = Folded(data)
    assert Folded(data, 1).events == result.events
    return result
