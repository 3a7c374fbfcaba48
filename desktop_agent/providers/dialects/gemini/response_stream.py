"""Read the chunks of generateContent, and their usage.

Any field may be absent. There is no end mark: a stream ends with the connection, after a finishReason or a blockReason.
Without `alt=sse` the same chunks come in one JSON array, which is read too.
"""

from collections.abc import Mapping
from typing import Any

from desktop_agent.providers.dialects.gemini.response_parts import Grounding, PartReader
from desktop_agent.providers.dialects.response_stream import (
    BaseFrameReader,
    failure_for,
    finish_word,
    load_stop_reasons,
    stop_reason_for,
    sum_known,
)
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.transport import error_responses
from desktop_agent.providers.transport.json_codec import (
    is_array,
    is_object,
    nonempty_text,
    object_in,
    read_count,
    repair_text,
    text_in,
)
from desktop_agent.providers.transport.sse import Frame
from desktop_agent.types.provider_events import StopReason, Usage


def parse_usage(data: dict[str, Any]) -> Usage:
    """Return the tokens of one answer, from the last report of its stream: each is a running total.

    The server omits zeros, so in a report that counts the prompt a missing part of the prompt or of the answer is 0.
    Whether anything was thought or cached is unknown if it is not reported. Output is billed with its thoughts.
    """
    prompt, tool_use = read_count(data.get("promptTokenCount")), read_count(data.get("toolUsePromptTokenCount"))
    answer, thoughts = read_count(data.get("candidatesTokenCount")), read_count(data.get("thoughtsTokenCount"))
    total = read_count(data.get("totalTokenCount"))
    read, written = sum_known(prompt, tool_use), sum_known(answer, thoughts)
    if read is not None:
        written = written or 0
    if total is None and read is not None and written is not None:
        total = read + written
    return Usage(
        input_tokens=read,
        output_tokens=written,
        cache_read_tokens=read_count(data.get("cachedContentTokenCount")),
        reasoning_tokens=thoughts,
        total_tokens=total,
    )


_REASONS: Mapping[str, StopReason] = load_stop_reasons("gemini")
_KNOWN_FIELDS = {"candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId"}


class FrameReader(BaseFrameReader):
    """Reads the frames of one answer; `finish` is the last finishReason."""

    end_mark = "finishReason"

    def __init__(self, builder: PartBuilder, headers: Mapping[str, str]) -> None:
        super().__init__(builder, headers)
        self.finish: str | None = None
        self._parts = PartReader(builder)
        self._grounding = Grounding()
        self._blocked: dict[str, Any] = {}
        self._message: str | None = None
        self._token: str | None = None
        self._usage: dict[str, Any] = {}
        self._response_id: str | None = None
        self._is_on_every_chunk = False  # more came after a finishReason
        self._is_continuing = False  # more came after a blockReason
        self._index: str | None = None
        self._has_several = False  # there are more candidates than the one that is read

    def read(self, frame: Frame) -> bool:
        """Read one frame."""
        name, data = frame
        is_first = self._index in (None, "0")
        text = _only_text(data) if is_first and not name and self.finish is None and not self._blocked else None
        if text is not None and (self._response_id is not None or "responseId" not in data):
            self.recognised, self._index = True, "0"
            self._read_usage(data)
            self._parts.text(text)
            return True
        if is_array(data):
            for chunk in data:
                self._read_chunk(chunk)
        elif name == "error":
            self._fail(data)
        else:
            self._read_chunk(data)
        return False

    @property
    def has_finished(self) -> bool:
        # An answer may still follow a blockReason.
        return self.finish is not None or (bool(self._blocked) and not self._is_continuing)

    @property
    def has_ended(self) -> bool:
        # If every chunk has a finishReason, there is no other end mark.
        return self.has_finished and not self._is_on_every_chunk

    @property
    def usage_so_far(self) -> Usage | None:
        return parse_usage(self._usage) if self._usage else None

    def end(self) -> None:
        """End the builder with the server's reason, corrected by the content."""
        citations = self._parts.close(self._grounding)
        for step in self._grounding.steps():
            self._builder.add_block(step)
        self._builder.usage = self.usage_so_far
        reason, raw, details = self._reason()
        if citations:
            details["citations"] = [citation.model_dump(exclude_none=True) for citation in citations]
        self._builder.end(reason, raw, details or None)

    def _reason(self) -> tuple[StopReason, str, dict[str, Any]]:
        """Return the reason, the server's term for it, and the details."""
        if self.finish is None:
            message = nonempty_text(self._blocked.get("blockReasonMessage"))
            details: dict[str, Any] = {"blockReasonMessage": self._redact_key(message)} if message else {}
            return StopReason.CONTENT_FILTER, f"blockReason:{self._blocked['blockReason']}", details
        reason = _REASONS.get(self.finish) or stop_reason_for(self.finish)
        details = {"finishMessage": self._message} if self._message else {}
        if reason is StopReason.CONTINUATION:
            if self._token is None:
                # Without a token the rest cannot be requested: the answer was cut.
                return StopReason.MAX_TOKENS, self.finish, details
            details["continuation_token"] = self._token
        return reason, self.finish, details

    def _read_chunk(self, data: Any) -> None:
        if not is_object(data) or self.failure is not None:
            return
        self.recognised |= not _KNOWN_FIELDS.isdisjoint(data)
        response_id = text_in(data, "responseId")
        if self._response_id is None and response_id:
            self._response_id = response_id
            self._builder.set_response_id(response_id)
        self._read_usage(data)
        first = self._first_candidate(data.get("candidates"))
        if first is not None:
            self._read_candidate(first)
        feedback = object_in(data, "promptFeedback")
        if finish_word(feedback.get("blockReason")) is not None:
            self._blocked = feedback
        # After the text that came with it.
        if error_responses.has_error(data.get("error")):
            self._fail(data)

    def _first_candidate(self, candidates: Any) -> dict[str, Any] | None:
        """Return the one candidate that is read: the one with the server's first number.

        One without a number is 0, or the only one.
        """
        objects = [entry for entry in (candidates if is_array(candidates) else [candidates]) if is_object(entry)]
        if not objects:
            return None
        numbers = [_number_of(candidate) for candidate in objects]
        if self._index is None:
            self._index = min(numbers, key=lambda index: (len(index), index))
        is_unnumbered = len(objects) == 1 and objects[0].get("index") is None
        self._has_several |= len(objects) > 1 or (numbers[0] != self._index and not is_unnumbered)
        if is_unnumbered and not self._has_several:
            return objects[0]
        return next((entry for entry, number in zip(objects, numbers, strict=True) if number == self._index), None)

    def _read_usage(self, data: dict[str, Any]) -> None:
        """Read usage: the last report counts; one of only zeros and nulls is empty."""
        usage = object_in(data, "usageMetadata")
        if any(usage.values()):
            self._usage = usage

    def _read_candidate(self, candidate: dict[str, Any]) -> None:
        self._grounding.add(candidate)
        for part in _parts_of(candidate.get("content")):
            if part != {"text": ""}:
                self._is_on_every_chunk |= self.finish is not None
                self._is_continuing |= bool(self._blocked)
            self._parts.part(part)
        self._token = text_in(candidate, "continuationToken") or self._token
        finish = finish_word(candidate.get("finishReason"))
        if finish is not None:
            self.finish = repair_text(finish)
            self.failure = self.failure or failure_for(self.finish, error_responses.request_id(self._headers))
        if message := text_in(candidate, "finishMessage"):
            self._message = self._redact_key(repair_text(message))

    def _fail(self, data: Any) -> None:
        self._parts.release()
        self.failure = self.error_from(data)
        self.failure.request_id = self.failure.request_id or self._response_id


def _parts_of(content: Any, depth: int = 4) -> list[dict[str, Any]]:
    """Return the parts, also if a server sends one alone, a bare text, or other lists and objects around them."""
    if not depth:
        return []
    if is_array(content):
        return [part for entry in content for part in _parts_of(entry, depth - 1)]
    if isinstance(content, str):
        return [{"text": content}]
    if not is_object(content):
        return []
    if "parts" in content:
        return _parts_of(content["parts"], depth - 1)
    return [content] if content.keys() - {"role"} else []


def _only_text(data: Any) -> str | None:
    """Return the text of a chunk that holds nothing else, as nearly every chunk does; else None, for the slow path."""
    try:
        candidate: dict[str, Any] = data["candidates"][0]
        (part,) = candidate["content"]["parts"]
        text: Any = part["text"]
        if (
            len(part) == 1
            and isinstance(text, str)
            # Only content and index; anything more needs the slow path.
            and (len(candidate) == 1 or (len(candidate) == 2 and candidate.get("index") == 0))
            and "error" not in data
            and "promptFeedback" not in data
        ):
            return text
    except (KeyError, IndexError, TypeError, ValueError):
        pass
    return None


def _number_of(candidate: dict[str, Any]) -> str:
    index = candidate.get("index")
    return str(index) if index and isinstance(index, int | float | str) else "0"
