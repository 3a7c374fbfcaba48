"""A script as the Responses API with `store: false`. An item of reasoning carries its state, sealed."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from desktop_agent.providers.demo.question import MODEL
from desktop_agent.providers.demo.reading.openai_responses import signed_content
from desktop_agent.providers.demo.script import FAST_PACE, Break, Call, Say, Think, split_pieces
from desktop_agent.providers.demo.seals import sign
from desktop_agent.providers.demo.wires.wire import AnswerWriter, TimedFrame, sse_event

_Json = dict[str, Any]


@dataclass
class ResponsesWriter(AnswerWriter):
    """Ids of items that reasoning led to hold its id: one without the other is refused when they come back."""

    created: int = field(default_factory=lambda: int(time.time()))
    _number: int = -1

    def frames(self) -> Iterator[TimedFrame]:
        """From response.created to response.completed."""
        yield self._event("response.created", response=self._response("in_progress", []))
        yield self._event("response.in_progress", response=self._response("in_progress", []))
        done: list[_Json] = []
        for step, item in self._items():
            if isinstance(step, Break):
                error = {"type": "server_error", "code": "demo_error", "message": step.message, "param": None}
                yield self._event("error", FAST_PACE, error=error)
                return
            place: _Json = {"output_index": len(done)}
            yield self._event("response.output_item.added", **place, item=_empty_item(item))
            yield from self._inside(step, item, {**place, "item_id": item["id"]})
            yield self._event("response.output_item.done", **place, item=item)
            done.append(item)
        yield self._event("response.completed", response=self._response("completed", done))

    def full_answer(self) -> _Json:
        """A response."""
        self.require_unbroken()
        return self._response("completed", [item for _, item in self._items()])

    def _items(self) -> Iterator[tuple[Think | Say | Call | Break, _Json]]:
        """Each step and its finished item."""
        thought = ""
        for place, step in enumerate(self.script):
            if isinstance(step, Think):
                thought = f"_r{self.id}{place}"
            yield step, self._item(step, f"{thought}_{self.id}{place}")

    def _item(self, step: Think | Say | Call | Break, mark: str) -> _Json:
        match step:
            case Think():
                shown = [{"type": "summary_text", "text": step.text}] if self.question.shows_reasoning else []
                item: _Json = {"id": "rs_" + mark.split("_")[1][1:], "type": "reasoning", "summary": shown}
                return {**item, "encrypted_content": sign(signed_content(item))}
            case Say():
                phase = "commentary" if self.calls else "final_answer"
                content: list[_Json] = [{"type": "output_text", "text": step.text, "annotations": [], "logprobs": []}]
                head: _Json = {"id": "msg" + mark, "type": "message", "role": "assistant", "status": "completed"}
                return {**head, "phase": phase, "content": content}
            case Call():
                called = {"call_id": step.id, "name": step.name, "arguments": step.arguments_json}
                return {"id": "fc" + mark, "type": "function_call", "status": "completed", **called}
            case Break():
                return {}

    def _inside(self, step: Think | Say | Call, item: _Json, place: _Json) -> Iterator[TimedFrame]:
        match step:
            case Think():
                if item["summary"]:
                    yield from self._summary(step.text, {**place, "summary_index": 0})
            case Say():
                yield from self._text(step, item["content"][0], {**place, "content_index": 0})
            case Call():
                for piece in split_pieces(step.arguments_json):
                    yield self._event("response.function_call_arguments.delta", FAST_PACE, **place, delta=piece)
                yield self._event("response.function_call_arguments.done", **place, arguments=step.arguments_json)

    def _summary(self, text: str, place: _Json) -> Iterator[TimedFrame]:
        part = {"type": "summary_text", "text": ""}
        yield self._event("response.reasoning_summary_part.added", **place, part=part)
        for piece in split_pieces(text):
            yield self._event("response.reasoning_summary_text.delta", FAST_PACE, **place, delta=piece)
        yield self._event("response.reasoning_summary_text.done", **place, text=text)
        yield self._event("response.reasoning_summary_part.done", **place, part={**part, "text": text})

    def _text(self, step: Say, part: _Json, place: _Json) -> Iterator[TimedFrame]:
        yield self._event("response.content_part.added", **place, part={**part, "text": ""})
        for piece in split_pieces(step.text):
            yield self._event("response.output_text.delta", step.pace, **place, delta=piece, logprobs=[])
        yield self._event("response.output_text.done", **place, text=step.text, logprobs=[])
        yield self._event("response.content_part.done", **place, part=part)

    def _response(self, status: str, output: list[_Json]) -> _Json:
        return {
            "id": f"resp_{self.id}",
            "object": "response",
            "created_at": self.created,
            "status": status,
            "model": MODEL,
            "output": output,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "parallel_tool_calls": True,
            "temperature": None,
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
            "usage": self._usage() if status == "completed" else None,
        }

    def _usage(self) -> _Json:
        return {
            "input_tokens": self.question.tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": self.written,
            "output_tokens_details": {"reasoning_tokens": self.thought},
            "total_tokens": self.question.tokens + self.written,
        }

    def _event(self, kind: str, pause: float = 0.0, **fields: Any) -> TimedFrame:
        self._number += 1
        return sse_event({"type": kind, "sequence_number": self._number, **fields}, pause, named=True)


def _empty_item(item: _Json) -> _Json:
    """An item before anything was said in it."""
    empty: _Json = {"summary": [], "content": [], "arguments": "", "status": "in_progress"}
    return {name: empty.get(name, value) for name, value in item.items()}
