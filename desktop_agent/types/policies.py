"""How an agent runs: hooks, guards, limits, prompt policies, specialists, queued messages and interrupts."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from pydantic import Field

from desktop_agent.types.blocks import JsonObject, ToolResult
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.frozen_model import EMPTY, FrozenModel, ListOrTuple
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import StopReason
from desktop_agent.types.providers import ProviderConfig
from desktop_agent.types.tool_calls import ToolClass


@dataclass(frozen=True, slots=True)
class GuardMoment:
    """What a guard looks at. `iteration` counts how often this guard made the run go on, from 0."""

    history: tuple[Message, ...]
    stop_reason: StopReason | None
    iteration: int
    turns: int


@dataclass(frozen=True, slots=True)
class GuardPass:
    """No opinion: the run does what it would do without this guard."""


@dataclass(frozen=True, slots=True)
class GuardContinue:
    """Go on with this prompt."""

    prompt: str


@dataclass(frozen=True, slots=True)
class GuardStop:
    """End the run now, as completed."""


@dataclass(frozen=True, slots=True)
class GuardAbort:
    """End the run with a reason. The guard is removed."""

    reason: str


GuardVerdict = GuardPass | GuardContinue | GuardStop | GuardAbort
GuardCheck = Callable[[GuardMoment], Awaitable[GuardVerdict | None]]


_Moment = Literal["turn_end", "session_stop"]


@dataclass(frozen=True, slots=True)
class Guard:
    """One guard. `at`: after each turn, or only when the run would end.

    Raises WrongUse without a bound, and for another moment.
    """

    name: str
    check: GuardCheck
    max_iterations: int
    at: _Moment = "session_stop"

    def __post_init__(self) -> None:
        if self.max_iterations < 1:
            raise WrongUse("A guard needs max_iterations of at least 1.")
        if self.at not in get_args(_Moment):
            raise WrongUse("A guard would never be asked at this moment.", "Give turn_end or session_stop.")


HookName = Literal["UserPromptSubmit", "PreToolUse", "PostToolUse"]


@dataclass(frozen=True, slots=True)
class UserPromptSubmit:
    """A prompt of the person or the program; never a continuation of the runtime's own.

    `history` is a read-only copy of the messages before it.
    """

    prompt: Message
    history: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class PreToolUse:
    """A call that is about to pass the gates. `input` is as hooks before this one changed it."""

    tool_use_id: str
    name: str
    input: JsonObject
    tool_class: ToolClass
    history: tuple[Message, ...] = ()
    agent_path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PostToolUse:
    """A call that has its result. `input` is what really ran."""

    tool_use_id: str
    name: str
    input: JsonObject
    result: ToolResult
    history: tuple[Message, ...] = ()
    agent_path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HookAllow:
    """No objection. It never overrides a rule that denies, nor a question that a rule demands."""


@dataclass(frozen=True, slots=True)
class HookEdit:
    """Go on with this instead: `input` for a call, `prompt` for a prompt, `result` after a call."""

    input: JsonObject | None = None
    prompt: Message | None = None
    result: ToolResult | None = None


@dataclass(frozen=True, slots=True)
class HookAsk:
    """A person must decide about this call."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class HookDeny:
    """Refuse. The reason goes to the model (for a call) or to the person (for a prompt)."""

    reason: str = ""


HookVerdict = HookAllow | HookEdit | HookAsk | HookDeny
# None is the same as HookAllow.
PromptHook = Callable[[UserPromptSubmit], Awaitable[HookVerdict | None]]
PreToolHook = Callable[[PreToolUse], Awaitable[HookVerdict | None]]
PostToolHook = Callable[[PostToolUse], Awaitable[HookVerdict | None]]


@dataclass(frozen=True)
class Hooks:
    """All hooks, in the order in which they run. All of them run; the strictest verdict wins.

    Each `add_…` returns a new object with one more.
    """

    user_prompt_submit: Sequence[PromptHook] = ()
    pre_tool_use: Sequence[PreToolHook] = ()
    post_tool_use: Sequence[PostToolHook] = ()

    def __post_init__(self) -> None:
        for name in ("user_prompt_submit", "pre_tool_use", "post_tool_use"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    def add_user_prompt_submit(self, hook: PromptHook) -> "Hooks":
        """Return the hooks with one more for prompts."""
        return replace(self, user_prompt_submit=(*self.user_prompt_submit, hook))

    def add_pre_tool_use(self, hook: PreToolHook) -> "Hooks":
        """Return the hooks with one more before calls."""
        return replace(self, pre_tool_use=(*self.pre_tool_use, hook))

    def add_post_tool_use(self, hook: PostToolHook) -> "Hooks":
        """Return the hooks with one more after calls."""
        return replace(self, post_tool_use=(*self.post_tool_use, hook))


@dataclass(frozen=True, slots=True)
class StopTool:
    """Stop one running or waiting call: it ends as cancelled, the model is told and goes on."""

    tool_use_id: str


@dataclass(frozen=True, slots=True)
class StopTurn:
    """Stop this run. Queued messages are sent next."""


@dataclass(frozen=True, slots=True)
class StopSession:
    """Stop this run and hand queued messages back."""


Interrupt = StopTool | StopTurn | StopSession


class Limits(FrozenModel):
    """Limits of a run; None is no limit. `seconds` is time at work: waiting for a person does not count.

    `cost` bounds what is known: a model whose price nobody says, and whose server names no cost, is not held to it.
    `characters` bounds what a run may collect in memory: answers, arguments and results together; `answer_characters`
    bounds one answer. `calls_per_turn`: further calls of one answer are not run. `depth`: how deep specialists may
    nest; the root agent is 0.
    """

    turns: int = Field(default=250, ge=1)
    tool_iterations: int = Field(default=50, ge=1, le=1000)
    tokens: int | None = Field(default=None, ge=1)
    cost: float | None = Field(default=None, gt=0)
    seconds: float | None = Field(default=None, gt=0)
    characters: int = Field(default=64_000_000, ge=1)
    answer_characters: int = Field(default=16_000_000, ge=1)
    result_characters: int = Field(default=400_000, ge=1)
    calls_per_turn: int = Field(default=100, ge=1)
    depth: int = Field(default=3, ge=0, le=3)


PolicyScope = Literal["next_turn", "until_removed", "persistent"]


class PolicyTrigger(FrozenModel):
    """When a policy applies; all that is named must hold. Nothing named: in every turn.

    `mode`: this mode holds. `tool`: the turn before called this tool. `word`: the newest prompt contains it, in any
    case.
    """

    mode: str | None = None
    tool: str | None = None
    word: str | None = None


class PromptPolicy(FrozenModel):
    """A text beside the instructions. Lower precedence goes first; among equals, the one that was installed first.

    next_turn: applies once. until_removed: while the conversation is open. persistent: saved with it.
    """

    id: str = Field(min_length=1)
    text: str = Field(min_length=1)
    scope: PolicyScope = "until_removed"
    precedence: int = 100
    trigger: PolicyTrigger = PolicyTrigger()


When = Literal["soon", "idle"]


class QueuedMessage(FrozenModel):
    """A message that waits. soon: until the tool results of the running turn. idle: until the run has ended."""

    message: Message
    when: When = "soon"

    @property
    def id(self) -> str:
        return self.message.id


class Specialist(FrozenModel):
    """A specialist: a tool with this name, and a sub-run of the same engine when it is called.

    `model` None: its parent's. `tools` are names among its parent's tools. `specialists` are names of those that it may
    call itself. `share` is how much of its parent's remaining tokens and cost it may use; `limits` are its own besides.
    """

    name: str = Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$")
    description: str = Field(min_length=1)
    system_prompt: str = Field(min_length=1)
    model: str | None = None
    tools: ListOrTuple[str] = EMPTY
    specialists: ListOrTuple[str] = EMPTY
    mode: str | None = None
    config: ProviderConfig = ProviderConfig()
    share: float = Field(default=0.5, gt=0, le=1)
    limits: Limits = Limits()
