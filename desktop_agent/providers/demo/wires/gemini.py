"""A script as Gemini's generateContent. Of the calls of an answer the first carries the thought's signature."""

from collections.abc import Iterator
from typing import Any

from desktop_agent.providers.demo.question import MODEL
from desktop_agent.providers.demo.refusals import RequestError, error_body
from desktop_agent.providers.demo.script import FAST_PACE, Break, Call, Say, Think, split_pieces
from desktop_agent.providers.demo.seals import sign
from desktop_agent.providers.demo.wires.wire import AnswerWriter, TimedFrame, sse_event

_Json = dict[str, Any]


class GeminiWriter(AnswerWriter):
    """Lines end with CR LF, there is no end mark, and a call comes whole."""

    def frames(self) -> Iterator[TimedFrame]:
        """Chunks; the last one has the finish reason."""
        for chunk, pause in self._chunks():
            yield sse_event(chunk, pause, end="\r\n")

    def full_answer(self) -> _Json:
        """One response with all parts."""
        self.require_unbroken()
        parts: list[_Json] = []
        for step in self.script:
            match step:
                case Think():
                    parts += [{"text": step.text, "thought": True}] if self.question.shows_reasoning else []
                case Say():
                    parts.append({"text": step.text})
                case Call():
                    parts.append(self._call(step))
                case Break():
                    pass
        return self._chunk(parts + self._last_parts(), finish="STOP")

    def array(self) -> list[_Json]:
        """The stream as one JSON array: what comes of asking for it without `alt=sse`."""
        return [chunk for chunk, _ in self._chunks()]

    def _chunks(self) -> Iterator[tuple[_Json, float]]:
        for step in self.script:
            match step:
                case Break():
                    yield error_body(RequestError(500, step.message), "gemini"), FAST_PACE
                    return
                case Think():
                    for piece in split_pieces(step.text) if self.question.shows_reasoning else ():
                        yield self._chunk([{"text": piece, "thought": True}]), FAST_PACE
                case Say():
                    for piece in split_pieces(step.text):
                        yield self._chunk([{"text": piece}]), step.pace
                case Call():
                    yield self._chunk([self._call(step)]), FAST_PACE
        yield self._chunk(self._last_parts() or [{"text": ""}], finish="STOP"), 0.0

    def _call(self, step: Call) -> _Json:
        call = {"id": step.id, "name": step.name, "args": step.arguments}
        signed = {"thoughtSignature": sign(call)} if step is self.calls[0] else {}
        return {"functionCall": call, **signed}

    def _last_parts(self) -> list[_Json]:
        """An answer without calls signs an empty text at its end."""
        return [] if self.calls else [{"text": "", "thoughtSignature": sign("")}]

    def _chunk(self, parts: list[_Json], finish: str | None = None) -> _Json:
        candidate: _Json = {"content": {"role": "model", "parts": parts}, "index": 0}
        if finish is not None:
            candidate["finishReason"] = finish
        return {
            "candidates": [candidate],
            "usageMetadata": self._usage(),
            "modelVersion": MODEL,
            "responseId": self.id,
        }

    def _usage(self) -> _Json:
        said = self.written - self.thought
        return {
            "promptTokenCount": self.question.tokens,
            "candidatesTokenCount": said,
            "thoughtsTokenCount": self.thought,
            "totalTokenCount": self.question.tokens + self.written,
        }
