"""A script as Chat Completions: as a stream of chunks, or as one completion."""

import json
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from desktop_agent.providers.demo.http_wire import Unanswerable, error_body
from desktop_agent.providers.demo.question import MODEL, Question
from desktop_agent.providers.demo.script import QUICK, Break, Call, Say, Script, Step, Think, pieces


def _new_id() -> str:
    return f"chatcmpl-demo-{secrets.token_hex(8)}"


@dataclass(frozen=True, slots=True)
class Frame:
    """The data of one server-sent event, and the seconds to wait before it."""

    data: bytes
    pause: float = 0.0


@dataclass
class Writer:
    """Writes one answer down. Token counts are counts of pieces: a script has no tokens."""

    question: Question
    script: Script
    id: str = field(default_factory=_new_id)
    created: int = field(default_factory=lambda: int(time.time()))

    def frames(self) -> Iterator[Frame]:
        """Everything that is sent; after a Break nothing more, not even the end mark."""
        yield self._frame({"role": "assistant", "content": ""})
        index = 0
        for step in self.script:
            if isinstance(step, Break):
                yield Frame(_encoded({"error": error_body(step.message, "demo_error", "server_error")}), QUICK)
                return
            yield from self._step(step, index)
            index += isinstance(step, Call)
        yield self._frame({}, finish=self._finish_reason)
        if self.question.wants_usage:
            yield Frame(_encoded({**self._head("chat.completion.chunk"), "choices": [], "usage": self._usage()}))
        yield Frame(b"[DONE]")

    def whole(self) -> dict[str, Any]:
        """The answer in one piece. Raises Unanswerable where the stream would break off."""
        broken = next((step for step in self.script if isinstance(step, Break)), None)
        if broken is not None:
            raise Unanswerable(HTTPStatus.INTERNAL_SERVER_ERROR, broken.message, "demo_error")
        message: dict[str, Any] = {"role": "assistant", "content": self._joined(Say) or None}
        if thought := self._joined(Think):
            message["reasoning_content"] = thought
        calls = [_whole_call(step) for step in self.script if isinstance(step, Call)]
        if calls:
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": self._finish_reason}
        return {**self._head("chat.completion"), "choices": [choice], "usage": self._usage()}

    @property
    def _finish_reason(self) -> str:
        return "tool_calls" if any(isinstance(step, Call) for step in self.script) else "stop"

    def _step(self, step: Think | Say | Call, index: int) -> Iterator[Frame]:
        match step:
            case Think():
                for piece in pieces(step.text):
                    yield self._frame({"reasoning_content": piece}, QUICK)
            case Say():
                for piece in pieces(step.text):
                    yield self._frame({"content": piece}, step.pace)
            case Call():
                head = {"index": index, "id": step.id, "type": "function"}
                yield self._frame({"tool_calls": [{**head, "function": {"name": step.name, "arguments": ""}}]}, QUICK)
                for piece in pieces(step.written):
                    yield self._frame({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}, QUICK)

    def _frame(self, delta: dict[str, Any], pause: float = 0.0, finish: str | None = None) -> Frame:
        chunk = self._head("chat.completion.chunk")
        chunk["choices"] = [{"index": 0, "delta": delta, "finish_reason": finish}]
        if self.question.wants_usage:
            chunk["usage"] = None
        return Frame(_encoded(chunk), pause)

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": MODEL}

    def _joined(self, kind: type[Say] | type[Think]) -> str:
        return "\n\n".join(step.text for step in self.script if isinstance(step, kind))

    def _usage(self) -> dict[str, Any]:
        prompt = self.question.length // 4 + 1
        written = sum(_length(step) for step in self.script)
        thought = sum(_length(step) for step in self.script if isinstance(step, Think))
        return {
            "prompt_tokens": prompt,
            "completion_tokens": written,
            "total_tokens": prompt + written,
            "completion_tokens_details": {"reasoning_tokens": thought},
        }


def _length(step: Step) -> int:
    match step:
        case Think() | Say():
            return sum(1 for _ in pieces(step.text))
        case Call():
            return sum(1 for _ in pieces(step.written))
        case Break():
            return 0


def _whole_call(step: Call) -> dict[str, Any]:
    return {"id": step.id, "type": "function", "function": {"name": step.name, "arguments": step.written}}


def _encoded(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
