"""A script as Anthropic's Messages API. A thought carries a signature of itself and of everything before it."""

from collections.abc import Iterator
from typing import Any

from desktop_agent.providers.demo.question import MODEL
from desktop_agent.providers.demo.refusals import RequestError, error_body
from desktop_agent.providers.demo.script import FAST_PACE, Break, Call, Say, Think, split_pieces
from desktop_agent.providers.demo.seals import Prefix, sign
from desktop_agent.providers.demo.wires.wire import AnswerWriter, TimedFrame, sse_event

_Json = dict[str, Any]


class AnthropicWriter(AnswerWriter):
    """Thoughts are shown only where `display` is `summarized`; else their text is empty."""

    def frames(self) -> Iterator[TimedFrame]:
        """From message_start to message_stop."""
        yield _event("message_start", message=self._message([], None, 1))
        yield _event("ping")
        for index, (step, block) in enumerate(self._blocks()):
            if isinstance(step, Break):
                yield sse_event(error_body(RequestError(500, step.message), "anthropic"), FAST_PACE, named=True)
                return
            yield _event("content_block_start", index=index, content_block=_empty_block(block))
            yield from self._deltas(step, block, index)
            yield _event("content_block_stop", index=index)
        delta = {"container": None, "stop_reason": self._stop_reason, "stop_sequence": None, "stop_details": None}
        yield _event("message_delta", delta=delta, usage=self._usage(self.written))
        yield _event("message_stop")

    def full_answer(self) -> _Json:
        """A message."""
        self.require_unbroken()
        return self._message([block for _, block in self._blocks()], self._stop_reason, self.written)

    @property
    def _stop_reason(self) -> str:
        return "tool_use" if self.calls else "end_turn"

    def _blocks(self) -> Iterator[tuple[Think | Say | Call | Break, _Json]]:
        """Each step and its finished block."""
        prefix = (self.question.prefix or Prefix()).extended_by("assistant")
        for step in self.script:
            block = self._block(step, prefix)
            prefix = prefix.extended_by(block)
            yield step, block

    def _block(self, step: Think | Say | Call | Break, prefix: Prefix) -> _Json:
        match step:
            case Think():
                shown = step.text if self.question.shows_reasoning else ""
                return {"type": "thinking", "thinking": shown, "signature": sign(shown, prefix)}
            case Say():
                return {"type": "text", "text": step.text}
            case Call():
                return {"type": "tool_use", "id": f"toolu_{step.id}", "name": step.name, "input": step.arguments}
            case Break():
                return {}

    def _deltas(self, step: Think | Say | Call, block: _Json, index: int) -> Iterator[TimedFrame]:
        match step:
            case Think():
                for piece in split_pieces(block["thinking"]):
                    yield _delta(index, FAST_PACE, type="thinking_delta", thinking=piece)
                yield _delta(index, FAST_PACE, type="signature_delta", signature=block["signature"])
            case Say():
                for piece in split_pieces(step.text):
                    yield _delta(index, step.pace, type="text_delta", text=piece)
            case Call():
                for piece in split_pieces(step.arguments_json):
                    yield _delta(index, FAST_PACE, type="input_json_delta", partial_json=piece)

    def _message(self, content: list[_Json], stop_reason: str | None, written: int) -> _Json:
        return {
            "id": f"msg_{self.id}",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": self._usage(written),
        }

    def _usage(self, written: int) -> _Json:
        return {
            "input_tokens": self.question.tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": written,
        }


def _empty_block(block: _Json) -> _Json:
    """A block before anything was said in it."""
    empty: _Json = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {name: empty.get(name, value) for name, value in block.items()}


def _event(kind: str, pause: float = 0.0, **fields: Any) -> TimedFrame:
    return sse_event({"type": kind, **fields}, pause, named=True)


def _delta(index: int, pause: float, **delta: Any) -> TimedFrame:
    return _event("content_block_delta", pause, index=index, delta=delta)
