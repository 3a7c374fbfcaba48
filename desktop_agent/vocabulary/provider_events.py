"""What an adapter yields: the closed union that every dialect is turned into.

A call arrives as the block `ToolUse` itself, atomic: nobody downstream ever sees partial JSON. One whose
arguments were not an object says so in `malformed` and is never run.

Wire shapes and their order are described in the project's recordings (tests/recordings/README.md).
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from desktop_agent.vocabulary.blocks import ToolUse
from desktop_agent.vocabulary.usage import Usage


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


CUT_SHORT = frozenset({StopReason.MAX_TOKENS, StopReason.CONTEXT_WINDOW_EXCEEDED, StopReason.CONTENT_FILTER})
"""The answer ends where the model did not mean to end it."""


@dataclass(frozen=True, slots=True)
class ContentDelta:
    """A piece of visible text; of a refusal too."""

    text: str
    type: Literal["content_delta"] = "content_delta"


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """A piece of reasoning, or of its summary, that the API chose to show."""

    text: str
    type: Literal["thinking_delta"] = "thinking_delta"


@dataclass(frozen=True, slots=True)
class ThinkingBlock:
    """A finished reasoning state; `metadata` goes back to the provider byte for byte."""

    text: str
    provider: str
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
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
    """Once, at the end. `raw` is the server's own word for the stop reason."""

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
    """The clean end."""

    type: Literal["done"] = "done"


ProviderEvent = (
    ContentDelta | ThinkingDelta | ThinkingBlock | ToolArgsDelta | ToolUse | MessageDelta | UsageUpdate | Done
)
