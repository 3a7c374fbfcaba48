"""A script as Gemini's generateContent. Of the calls of an answer the first carries the thought's signature."""

from collections.abc import Iterator
from typing import Any

from desktop_agent.providers.demo.question import MODEL
from desktop_agent.providers.demo.refusals import Refusal, shaped
from desktop_agent.providers.demo.script import QUICK, Break, Call, Say, Think, pieces
from desktop_agent.providers.demo.seals import seal
from desktop_agent.providers.demo.wires.wire import Frame, Wire, event

Json = dict[str, Any]


class GeminiWire(Wire):
    """Lines end with CR LF, there is no end mark, and a call comes whole."""

    def frames(self) -> Iterator[Frame]:
        """Chunks; the last one has the finish reason."""
        for chunk, pause in self._chunks():
            yield event(chunk, pause, end="\r\n")

    def whole(self) -> Json:
        """One response with all parts."""
        self.check_whole()
        parts: list[Json] = []
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

    def array(self) -> list[Json]:
        """The stream as one JSON array: what comes of asking for it without `alt=sse`."""
        return [chunk for chunk, _ in self._chunks()]

    def _chunks(self) -> Iterator[tuple[Json, float]]:
        for step in self.script:
            match step:
                case Break():
                    yield shaped(Refusal(500, step.message), "gemini"), QUICK
                    return
                case Think():
                    for piece in pieces(step.text) if self.question.shows_reasoning else ():
                        yield self._chunk([{"text": piece, "thought": True}]), QUICK
                case Say():
                    for piece in pieces(step.text):
                        yield self._chunk([{"text": piece}]), step.pace
                case Call():
                    yield self._chunk([self._call(step)]), QUICK
        yield self._chunk(self._last_parts() or [{"text": ""}], finish="STOP"), 0.0

    def _call(self, step: Call) -> Json:
        call = {"id": step.id, "name": step.name, "args": step.arguments}
        signed = {"thoughtSignature": seal(call)} if step is self.calls[0] else {}
        return {"functionCall": call, **signed}

    def _last_parts(self) -> list[Json]:
        """An answer without calls signs an empty text at its end."""
        return [] if self.calls else [{"text": "", "thoughtSignature": seal("")}]

    def _chunk(self, parts: list[Json], finish: str | None = None) -> Json:
        candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
        if finish is not None:
            candidate["finishReason"] = finish
        return {
            "candidates": [candidate],
            "usageMetadata": self._usage(),
            "modelVersion": MODEL,
            "responseId": self.id,
        }

    def _usage(self) -> Json:
        said = self.written - self.thought
        return {
            "promptTokenCount": self.question.tokens,
            "candidatesTokenCount": said,
            "thoughtsTokenCount": self.thought,
            "totalTokenCount": self.question.tokens + self.written,
        }
