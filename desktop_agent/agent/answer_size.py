"""How much of memory one answer takes, and when that is too much."""

import math
from typing import Any, cast

from desktop_agent.vocabulary.blocks import Citation, ServerStep, ToolUse, Unknown
from desktop_agent.vocabulary.engine_events import Event
from desktop_agent.vocabulary.errors import AgentError
from desktop_agent.vocabulary.provider_events import (
    AnswerNamed,
    AnswerStarted,
    ContentDelta,
    Done,
    MessageDelta,
    RequestAdjusted,
    TextClosed,
    ThinkingBlock,
    ThinkingDelta,
    ToolArgsDelta,
)

# What an object costs beside the characters in it; the most modest answer is counted as something.
_VALUE_COST = 8
# A block is an object in the message, in the transcript and in the journal's queue; a call has a result besides.
_BLOCK_COST = 32
_CALL_COST = 128


# What every reader and writer down to the disk can carry; what comes over the wire is refused at half of it.
MAX_JSON_DEPTH = 200


class AnswerTooLong(AgentError):
    """The answer passed the limit; what was taken so far stays."""

    kind = "answer_too_long"
    default_remedy = "Ask for less at once."


class NotJson(ValueError):
    """A value that nothing can keep."""


class AnswerSize:
    """Counts the characters of one answer. What is over the limit is not taken."""

    def __init__(self, limit: int) -> None:
        self.characters = 0
        self._limit = limit
        self._arguments: dict[str, int] = {}
        self._thinking_characters = 0
        self._is_thinking: bool | None = None

    def add(self, event: Event) -> None:
        """Count one event. Raises AnswerTooLong, and NotJson for opaque state that is no JSON."""
        more = self._size(event)
        if self.characters + more > self._limit:
            raise AnswerTooLong("The answer is longer than what is taken in.")
        self.characters += more

    def _size(self, event: Event) -> int:
        match event:
            case ContentDelta():
                return self._text_size(event.text, is_thinking=False)
            case ThinkingDelta():
                self._thinking_characters += len(event.text)
                return self._text_size(event.text, is_thinking=True)
            case ToolArgsDelta():
                return self._fragment_size(event)
            case ToolUse():
                # Its pieces were counted as they came.
                whole = _json_size(event.input) + len(event.malformed or "") + len(event.name) + len(event.id)
                known = self._arguments.pop(event.id, None)
                rest = whole + _CALL_COST if known is None else whole - known
                return max(_BLOCK_COST, rest) + _json_size(event.metadata)
            case ThinkingBlock():
                rest, self._thinking_characters = len(event.text) - self._thinking_characters, 0
                return _BLOCK_COST + max(0, rest) + _json_size(event.metadata)
            case ServerStep():
                return _BLOCK_COST + len(event.name) + len(event.text) + _json_size(event.raw)
            case Unknown():
                return _BLOCK_COST + _json_size(event.raw)
            case _:
                return self._metadata_size(event)

    def _text_size(self, piece: str, *, is_thinking: bool) -> int:
        """Where text follows thinking, or the other way round, a block begins."""
        begins, self._is_thinking = self._is_thinking is (not is_thinking), is_thinking
        return len(piece) + (_BLOCK_COST if begins else 1)

    def _fragment_size(self, event: ToolArgsDelta) -> int:
        """The first piece of a call is a call."""
        known = self._arguments.get(event.id)
        self._arguments[event.id] = (known or 0) + len(event.fragment)
        opened = _CALL_COST + len(event.id) if known is None else 0
        return opened + len(event.name or "") + len(event.fragment) + 1

    def _metadata_size(self, event: Event) -> int:
        """What is about the answer and not in it."""
        match event:
            case TextClosed():
                return _BLOCK_COST + _json_size(event.metadata) + sum(map(_citation_size, event.citations))
            case MessageDelta():
                return _BLOCK_COST + len(event.raw or "") + _json_size(event.details)
            case AnswerStarted() | RequestAdjusted():
                return _BLOCK_COST + sum(_BLOCK_COST + len(str(each)) for each in event.adjustments)
            case AnswerNamed():
                return _BLOCK_COST + len(event.response_id)
            case Done():
                return 0
            case _:
                return _BLOCK_COST


def _json_size(value: Any) -> int:
    """The characters, roughly, of a JSON value that will be kept.

    Raises NotJson where no reader and writer on its way could carry it.
    """
    count, depth = _size_and_depth(value)
    if depth > MAX_JSON_DEPTH:
        raise NotJson(f"nested {depth} deep")
    return count


def _size_and_depth(value: Any) -> tuple[int, int]:
    """Characters, and levels of nesting; without recursion, however deep it is. Raises NotJson."""
    count, depth, level = 0, 0, [value]
    while level:
        below: list[Any] = []
        for each in level:
            if isinstance(each, str):
                count += len(each)
            elif isinstance(each, dict):
                items = cast("dict[Any, Any]", each)
                count += sum(len(str(key)) for key in items)
                below.extend(items.values())
            elif isinstance(each, list):
                below.extend(cast("list[Any]", each))
            elif not (each is None or isinstance(each, int | float)) or not _is_finite(each):
                raise NotJson(f"{type(each).__name__} is no JSON")
            count += _VALUE_COST
        level = below
        depth += 1
    return count, depth


def _is_finite(value: float | None) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _citation_size(citation: Citation) -> int:
    return _BLOCK_COST + len(citation.title or "") + len(citation.url or "") + len(citation.quoted or "")
