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
_EACH = 8
# A block is an object in the message, in the transcript and in the journal's queue; a call has a result besides.
_BLOCK = 32
_CALL = 128


# What every reader and writer down to the disk can carry; what comes over the wire is refused at half of it.
DEEPEST = 200


class AnswerTooLong(AgentError):
    """The answer passed the limit; what was taken so far stays."""

    kind = "answer_too_long"
    default_remedy = "Ask for less at once."


class NoJson(ValueError):
    """A value that nothing can keep."""


class AnswerSize:
    """Counts the characters of one answer. What is over the limit is not taken."""

    def __init__(self, limit: int) -> None:
        self.characters = 0
        self._limit = limit
        self._arguments: dict[str, int] = {}
        self._thought = 0
        self._is_thinking: bool | None = None

    def add(self, event: Event) -> None:
        """Count one event. Raises AnswerTooLong, and NoJson for opaque state that is no JSON."""
        more = self._size(event)
        if self.characters + more > self._limit:
            raise AnswerTooLong("The answer is longer than what is taken in.")
        self.characters += more

    def _size(self, event: Event) -> int:
        match event:
            case ContentDelta():
                return self._text(event.text, is_thinking=False)
            case ThinkingDelta():
                self._thought += len(event.text)
                return self._text(event.text, is_thinking=True)
            case ToolArgsDelta():
                return self._piece(event)
            case ToolUse():
                # Its pieces were counted as they came.
                whole = _of_json(event.input) + len(event.malformed or "") + len(event.name) + len(event.id)
                known = self._arguments.pop(event.id, None)
                rest = whole + _CALL if known is None else whole - known
                return max(_BLOCK, rest) + _of_json(event.metadata)
            case ThinkingBlock():
                rest, self._thought = len(event.text) - self._thought, 0
                return _BLOCK + max(0, rest) + _of_json(event.metadata)
            case ServerStep():
                return _BLOCK + len(event.name) + len(event.text) + _of_json(event.raw)
            case Unknown():
                return _BLOCK + _of_json(event.raw)
            case _:
                return self._about(event)

    def _text(self, piece: str, *, is_thinking: bool) -> int:
        """Where text follows thinking, or the other way round, a block begins."""
        begins, self._is_thinking = self._is_thinking is (not is_thinking), is_thinking
        return len(piece) + (_BLOCK if begins else 1)

    def _piece(self, event: ToolArgsDelta) -> int:
        """The first piece of a call is a call."""
        known = self._arguments.get(event.id)
        self._arguments[event.id] = (known or 0) + len(event.fragment)
        opened = _CALL + len(event.id) if known is None else 0
        return opened + len(event.name or "") + len(event.fragment) + 1

    def _about(self, event: Event) -> int:
        """What is about the answer and not in it."""
        match event:
            case TextClosed():
                return _BLOCK + _of_json(event.metadata) + sum(map(_cited, event.citations))
            case MessageDelta():
                return _BLOCK + len(event.raw or "") + _of_json(event.details)
            case AnswerStarted() | RequestAdjusted():
                return _BLOCK + sum(_BLOCK + len(str(each)) for each in event.adjustments)
            case AnswerNamed():
                return _BLOCK + len(event.response_id)
            case Done():
                return 0
            case _:
                return _BLOCK


def _of_json(value: Any) -> int:
    """The characters, roughly, of a JSON value that will be kept.

    Raises NoJson where no reader and writer on its way could carry it.
    """
    count, depth = _measured(value)
    if depth > DEEPEST:
        raise NoJson(f"nested {depth} deep")
    return count


def _measured(value: Any) -> tuple[int, int]:
    """Characters, and levels of nesting; without recursion, however deep it is. Raises NoJson."""
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
                raise NoJson(f"{type(each).__name__} is no JSON")
            count += _EACH
        level = below
        depth += 1
    return count, depth


def _is_finite(value: float | None) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _cited(citation: Citation) -> int:
    return _BLOCK + len(citation.title or "") + len(citation.url or "") + len(citation.quoted or "")
