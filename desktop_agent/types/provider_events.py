"""Events that a provider adapter yields, the closed union for every dialect; token usage and cost.

A call arrives as the block `ToolUse` itself: nobody downstream ever sees partial JSON. A call whose arguments are no
object has them in `malformed` and never runs. Steps of the provider's own servers, pictures that the model made and
unknown content arrive as the blocks `ServerStep`, `Image` and `Unknown` in the same way. Unknown usage is None, never
0.

Wire shapes and their order are described in the project's recordings (tests/recordings/README.md).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field

from desktop_agent.types.blocks import Citation, Image, ServerStep, ToolUse, Unknown
from desktop_agent.types.errors import Sentence
from desktop_agent.types.frozen_model import FrozenModel


def _bounded(count: object) -> object:
    """Return a number of tokens, bounded: no server can have counted more, and no database could store it."""
    return min(count, _MAX_TOKENS) if isinstance(count, int) else count


_MAX_TOKENS = 10**15
_Tokens = Annotated[int | None, Field(ge=0), BeforeValidator(_bounded)]


class Usage(FrozenModel):
    """What one answer, or several, consumed.

    `input_tokens` is the whole prompt with its cached part; `output_tokens` includes reasoning.
    """

    input_tokens: _Tokens = None
    output_tokens: _Tokens = None
    cache_read_tokens: _Tokens = None
    cache_write_tokens: _Tokens = None
    reasoning_tokens: _Tokens = None
    total_tokens: _Tokens = None
    cost: float | None = Field(default=None, ge=0, description="US dollars")

    def merge_max(self, other: Self) -> Self:
        """Merge two reports of one turn: servers repeat a growing total, so the larger value counts."""
        return self._combine(other, max)

    def __add__(self, other: Self) -> Self:
        return self._combine(other, lambda a, b: a + b)

    def _combine(self, other: Self, combine: Callable[[float, float], float]) -> Self:
        """A known value beats an unknown one; two known values are combined."""
        values: dict[str, float | None] = {}
        for name in type(self).model_fields:
            own: float | None = getattr(self, name)
            others: float | None = getattr(other, name)
            values[name] = others if own is None else own if others is None else combine(own, others)
        return type(self).model_validate(values)


class StopReason(StrEnum):
    """Why the model stopped. `cancelled` is set by the runtime only; `unknown` comes with the server's own word."""

    END_TURN = "end_turn"
    TOOL_USE = "tool_use"
    MAX_TOKENS = "max_tokens"
    STOP_SEQUENCE = "stop_sequence"
    PAUSE_TURN = "pause_turn"
    REFUSAL = "refusal"
    CONTENT_FILTER = "content_filter"
    CONTEXT_WINDOW_EXCEEDED = "context_window_exceeded"
    CONTINUATION = "continuation"
    MALFORMED_TOOL_CALL = "malformed_tool_call"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


TRUNCATED_STOP_REASONS = frozenset(
    {StopReason.MAX_TOKENS, StopReason.CONTEXT_WINDOW_EXCEEDED, StopReason.CONTENT_FILTER}
)
"""The answer ends before the model meant to end it."""


class Origin(FrozenModel):
    """Where an answer came from and what its model had read: kept with the message, for replay and for support.

    `account` is a digest of server and model: reasoning state can be read again only there. `prefix` is a digest of
    everything that was sent: some servers take reasoning state back only behind exactly that.
    """

    provider: str
    account: str = ""
    prefix: str = ""
    request_id: str | None = None
    response_id: str | None = None


@dataclass(frozen=True, slots=True)
class AnswerStarted:
    """The server took the request. `adjustments` says what had to be sent differently, and why."""

    origin: Origin
    adjustments: tuple[Sentence, ...] = ()
    type: Literal["answer_started"] = "answer_started"


@dataclass(frozen=True, slots=True)
class RequestAdjusted:
    """Something was made to fit, and why: a picture before it was sent, or what a server sent in an odd way."""

    adjustments: tuple[Sentence, ...]
    type: Literal["request_adjusted"] = "request_adjusted"


@dataclass(frozen=True, slots=True)
class AnswerNamed:
    """The server's own id of this answer."""

    response_id: str
    type: Literal["answer_named"] = "answer_named"


@dataclass(frozen=True, slots=True)
class ContentDelta:
    """A piece of visible text, of a refusal too. `phase`: commentary or final_answer, where a server says so.

    `part`: a server may write several parts at once, whose pieces come mixed; each part has a number, and the answer
    has the parts in the order of their numbers. 0 where one part follows the other.
    """

    text: str
    phase: str | None = None
    part: int = 0
    type: Literal["content_delta"] = "content_delta"


@dataclass(frozen=True, slots=True)
class TextClosed:
    """The text since the last block is a part of its own, with its citations and the state that goes back with it.

    A call, a server step, a picture or an unknown block comes only when no other part is open.
    """

    provider: str
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    citations: tuple[Citation, ...] = ()
    part: int = 0
    type: Literal["text_closed"] = "text_closed"


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """A piece of reasoning, or of its summary, that the API shows. `part`: as in ContentDelta."""

    text: str
    part: int = 0
    type: Literal["thinking_delta"] = "thinking_delta"


@dataclass(frozen=True, slots=True)
class ThinkingBlock:
    """A finished reasoning state; `metadata` goes back to the provider byte for byte."""

    text: str
    provider: str
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    part: int = 0
    type: Literal["thinking_block"] = "thinking_block"


@dataclass(frozen=True, slots=True)
class ToolArgsDelta:
    """A piece of a call's arguments, for display only."""

    id: str
    name: str | None
    fragment: str
    type: Literal["tool_args_delta"] = "tool_args_delta"


@dataclass(frozen=True, slots=True)
class MessageDelta:
    """The end of the answer, once. `raw` is the server's own word for the stop reason.

    `details` has keys of our own, each only where it applies: `empty`, `no_call` (the server said that a call follows,
    and none came), `unended` (it said that the model was finished, and then kept the answer open), `citations`,
    `continuation_token` (asks for the rest of an answer whose reason is `continuation`); beside them the server's own,
    as it wrote them.
    """

    stop_reason: StopReason
    raw: str | None = None
    details: dict[str, Any] | None = None
    type: Literal["message_delta"] = "message_delta"


@dataclass(frozen=True, slots=True)
class UsageUpdate:
    """Usage so far; the last one counts."""

    usage: Usage
    type: Literal["usage"] = "usage"


@dataclass(frozen=True, slots=True)
class Done:
    """The clean end of the stream."""

    type: Literal["done"] = "done"


ProviderEvent = (
    AnswerStarted
    | RequestAdjusted
    | AnswerNamed
    | ContentDelta
    | TextClosed
    | ThinkingDelta
    | ThinkingBlock
    | ToolArgsDelta
    | ToolUse
    | ServerStep
    | Image
    | Unknown
    | MessageDelta
    | UsageUpdate
    | Done
)
