"""A script as Chat Completions."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from desktop_agent.providers.demo.question import MODEL
from desktop_agent.providers.demo.refusals import RequestError, error_body
from desktop_agent.providers.demo.script import FAST_PACE, Break, Call, Say, Think, split_pieces
from desktop_agent.providers.demo.wires.wire import AnswerWriter, TimedFrame, sse_event


@dataclass
class ChatWriter(AnswerWriter):
    """Reasoning goes under `reasoning_content`, as compatible servers send it."""

    created: int = field(default_factory=lambda: int(time.time()))

    def frames(self) -> Iterator[TimedFrame]:
        """Chunks, usage where it was asked for, and [DONE]."""
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
        """A completion."""
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
