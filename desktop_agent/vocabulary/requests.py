"""What is asked of a provider, and what a provider says about itself."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.messages import Message
from desktop_agent.vocabulary.tool_calls import ToolSpec


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


Effort = Literal["minimal", "low", "medium", "high", "xhigh", "max"]


class ReasoningDisabled(_Frozen):
    """Ask the model not to reason, where it can be asked."""

    type: Literal["disabled"] = "disabled"


class ReasoningEffort(_Frozen):
    """Reason this hard."""

    type: Literal["effort"] = "effort"
    level: Effort = "medium"


class ReasoningBudget(_Frozen):
    """Reason for at most so many tokens."""

    type: Literal["budget"] = "budget"
    tokens: int = Field(ge=1)


Reasoning = Annotated[ReasoningDisabled | ReasoningEffort | ReasoningBudget, Field(discriminator="type")]


class Timeouts(_Frozen):
    """Seconds. `idle` is the longest silence between bytes, `total` the whole answer (None: no limit)."""

    connect: float = Field(default=10.0, gt=0)
    idle: float = Field(default=300.0, gt=0)
    total: float | None = Field(default=None, gt=0)


class ProviderConfig(_Frozen):
    """How to ask. None is not sent, so that the server's own default holds."""

    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    top_p: float | None = Field(default=None, ge=0, le=1)
    top_k: int | None = Field(default=None, ge=1)
    reasoning: Reasoning | None = None
    system_prompt: str | None = None
    stop_sequences: tuple[str, ...] = ()
    extra_options: JsonObject = Field(default_factory=dict)
    timeouts: Timeouts = Timeouts()


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """auto, none, required, or one tool by name."""

    mode: Literal["auto", "none", "required", "named"] = "auto"
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question to one model: the whole history, images as bytes or web addresses, never as stored files."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    config: ProviderConfig = field(default_factory=ProviderConfig)
    conversation_id: str | None = None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model can do. None is "the server does not say", which is not "no"."""

    images: bool | None = None
    tools: bool | None = None
    reasoning: bool | None = None
    context_window: int | None = None
    max_output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """One model of a provider's listing."""

    id: str
    title: str | None = None
    capabilities: Capabilities = field(default_factory=Capabilities)


@dataclass(slots=True)
class ProviderState:
    """Totals of one provider object, readable at any moment, also while a stream runs."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    request_count: int = 0
    last_request_time: datetime | None = None
    conversation_turns: int = 0
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
