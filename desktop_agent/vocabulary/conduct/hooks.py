"""Hooks: functions of the caller's own that see prompts and calls, and may decide about them."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from desktop_agent.vocabulary.blocks import JsonObject, ToolResult
from desktop_agent.vocabulary.messages import Message
from desktop_agent.vocabulary.tool_calls import ToolClass

HookName = Literal["UserPromptSubmit", "PreToolUse", "PostToolUse"]


@dataclass(frozen=True, slots=True)
class UserPromptSubmit:
    """A prompt that the person or the program sent; never a continuation of the runtime's own.

    `history` is a read-only copy of what was said before.
    """

    prompt: Message
    history: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class PreToolUse:
    """A call that is about to pass the gates. `input` is what hooks before this one made of it."""

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
    """No. The reason goes to the model (for a call) or to the person (for a prompt)."""

    reason: str = ""


HookVerdict = HookAllow | HookEdit | HookAsk | HookDeny
# None is the same as HookAllow: most hooks only look.
PromptHook = Callable[[UserPromptSubmit], Awaitable[HookVerdict | None]]
PreToolHook = Callable[[PreToolUse], Awaitable[HookVerdict | None]]
PostToolHook = Callable[[PostToolUse], Awaitable[HookVerdict | None]]


@dataclass(frozen=True)
class Hooks:
    """All hooks, in the order in which they run. All of them run; the strictest verdict wins.

    Each `add_…` answers a new object with one more.
    """

    user_prompt_submit: Sequence[PromptHook] = ()
    pre_tool_use: Sequence[PreToolHook] = ()
    post_tool_use: Sequence[PostToolHook] = ()

    def __post_init__(self) -> None:
        for name in ("user_prompt_submit", "pre_tool_use", "post_tool_use"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    def add_user_prompt_submit(self, hook: PromptHook) -> "Hooks":
        """With one more for prompts."""
        return replace(self, user_prompt_submit=(*self.user_prompt_submit, hook))

    def add_pre_tool_use(self, hook: PreToolHook) -> "Hooks":
        """With one more before calls."""
        return replace(self, pre_tool_use=(*self.pre_tool_use, hook))

    def add_post_tool_use(self, hook: PostToolHook) -> "Hooks":
        """With one more after calls."""
        return replace(self, post_tool_use=(*self.post_tool_use, hook))
