"""Run the caller's hooks: all of them, in order, each with a timeout; the strictest verdict wins.

What a hook is given is a copy; that of the history is shared by all hooks of one round. A hook that raises, answers
something that is no verdict, or exceeds its timeout denies.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from types import FunctionType, MethodType
from typing import Any, Literal, TypeVar

from desktop_agent.permissions.gate import validate_edited_arguments
from desktop_agent.processes.foreign_code import (
    Fault,
    HistoryCopy,
    call_foreign,
    deep_copy,
    type_name,
    validate_message,
)
from desktop_agent.processes.worker_threads import run_by_size
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.blocks import Image, JsonObject, Outcome, Text, ToolResult
from desktop_agent.types.errors import AgentError, ToolInputInvalid
from desktop_agent.types.messages import Message
from desktop_agent.types.policies import (
    HookAllow,
    HookAsk,
    HookDeny,
    HookEdit,
    Hooks,
    HookVerdict,
    PostToolUse,
    PreToolUse,
    UserPromptSubmit,
)

_log = logging.getLogger(__name__)

# Seconds for one hook; and for one that was cancelled to end.
TIME_LIMIT = 60.0
_GRACE = 1.0

Moment = TypeVar("Moment", UserPromptSubmit, PreToolUse, PostToolUse)


@dataclass(frozen=True, slots=True)
class HookRuling:
    """What all hooks together say about a call. `input` is what they made of the arguments, if `edited`."""

    verdict: Literal["allow", "ask", "deny"]
    reason: str
    input: JsonObject
    edited: bool


@dataclass(frozen=True, slots=True)
class PromptRuling:
    """What all hooks together say about a prompt. `prompt` has the id of the one that was sent."""

    allowed: bool
    reason: str
    prompt: Message


async def run_pre_tool_hooks(
    hooks: Hooks,
    moment: PreToolUse,
    tool: AnyTool | None,
    *,
    history: HistoryCopy | None = None,
    time_limit: float = TIME_LIMIT,
) -> HookRuling:
    """Ask the hooks about a call that is about to pass the gates. Edits chain, and must fit the tool.

    `history`, where it is given, stands for that of the moment.
    """
    history = history or HistoryCopy(moment.history)
    asks: list[str] = []
    denials: list[str] = []
    arguments, edited = moment.input, False
    for hook in hooks.pre_tool_use:
        match await _ask_hook(hook, replace(moment, input=arguments), history, time_limit):
            case HookEdit(input=dict() as wanted):
                try:
                    arguments, edited = (
                        await run_by_size(partial(validate_edited_arguments, wanted, tool), wanted),
                        True,
                    )
                except ToolInputInvalid as error:
                    denials.append(f"A hook changed the arguments. {error}")
            case HookEdit():
                denials.append(_NO_VERDICT)
            case HookAsk(reason=reason):
                asks.append(reason)
            case HookDeny(reason=reason):
                denials.append(reason)
            case HookAllow():
                pass
    if denials:
        return HookRuling("deny", _join_reasons(denials) or _DENIED, arguments, edited)
    return HookRuling("ask" if asks else "allow", _join_reasons(asks), arguments, edited)


async def run_post_tool_hooks(
    hooks: Hooks,
    moment: PostToolUse,
    *,
    history: HistoryCopy | None = None,
    time_limit: float = TIME_LIMIT,
) -> ToolResult:
    """Show the hooks a result. Edits chain and change what it says, never how the call ended or whose it is.

    A denial, and a question that nobody is there for, keeps the result out: its reason stands in its place, and a call
    that succeeded counts as failed. `history`, where it is given, stands for that of the moment.
    """
    history = history or HistoryCopy(moment.history)
    denials: list[str] = []
    result = moment.result
    for hook in hooks.post_tool_use:
        match await _ask_hook(hook, replace(moment, result=result), history, time_limit):
            case HookEdit(result=ToolResult() as wanted):
                content = await run_by_size(partial(deep_copy, wanted.content), wanted.content)
                result = result.model_copy(update={"content": content})
            case HookEdit():
                denials.append(_NO_VERDICT)
            case HookAsk(reason=reason) | HookDeny(reason=reason):
                denials.append(reason)
            case HookAllow():
                pass
    if not denials:
        return result
    said = _join_reasons(denials) or "A hook kept this result out."
    outcome = Outcome.FAILED if result.outcome is Outcome.SUCCEEDED else result.outcome
    return result.model_copy(update={"content": (Text(text=said),), "outcome": outcome})


async def run_prompt_hooks(hooks: Hooks, moment: UserPromptSubmit, *, time_limit: float = TIME_LIMIT) -> PromptRuling:
    """Ask the hooks about a prompt. Edits chain and change its blocks; a question counts as a denial.

    The prompt of a denial is the one that was sent.
    """
    history = HistoryCopy(moment.history)
    denials: list[str] = []
    prompt = moment.prompt
    for hook in hooks.user_prompt_submit:
        match await _ask_hook(hook, replace(moment, prompt=prompt), history, time_limit):
            case HookEdit(prompt=Message() as wanted) if (said := _validate_prompt(wanted)) is not None:
                prompt = prompt.model_copy(update={"blocks": said.blocks})
            case HookEdit():
                denials.append(_NO_VERDICT)
            case HookAsk(reason=reason) | HookDeny(reason=reason):
                denials.append(reason)
            case HookAllow():
                pass
    if denials:
        return PromptRuling(
            allowed=False, reason=_join_reasons(denials) or "A hook refused this prompt.", prompt=moment.prompt
        )
    return PromptRuling(allowed=True, reason="", prompt=prompt)


_DENIED = "A hook denied this call."
_NO_VERDICT = "A hook answered something that is no verdict here, which counts as a denial."


async def _ask_hook(
    hook: Callable[[Moment], Awaitable[HookVerdict | None]],
    moment: Moment,
    history: HistoryCopy,
    time_limit: float,
) -> HookVerdict:
    """One hook's, with no answer as allow, and every fault as a denial. A cancel goes through to the hook."""
    name = hook.__qualname__ if isinstance(hook, FunctionType | MethodType) else type_name(hook)

    async def shown() -> Moment:
        return replace(await _copy_moment(moment), history=await history.copied())

    given = await call_foreign(shown)
    if isinstance(given, Fault):
        return _deny_for_fault(name, given)

    async def asked() -> HookVerdict:
        return _validate_verdict(await hook(given))

    task = asyncio.create_task(call_foreign(asked))
    try:
        await asyncio.wait([task], timeout=time_limit)
    finally:
        in_time = task.done()
        if not in_time:
            await _log_cancelled(task, name)
    if not in_time:
        _log.warning("the hook %s did not end within %g s", name, time_limit)
        return HookDeny(f"A hook did not answer within {time_limit:g} s, which counts as a denial.")
    made = Fault(asyncio.CancelledError()) if task.cancelled() else task.result()
    return _deny_for_fault(name, made) if isinstance(made, Fault) else made


def _deny_for_fault(name: str, fault: Fault) -> HookDeny:
    # The type alone: what an exception says may be what nobody should read in a log.
    _log.warning("the hook %s raised %s", name, fault.kind)
    return HookDeny(f"A hook failed ({fault.kind}), which counts as a denial.")


def _validate_verdict(answer: object) -> HookVerdict:
    """With no answer as allow, and what is no verdict as a denial."""
    match answer:
        case None:
            return HookAllow()
        case HookAsk(reason=str(reason)):
            return HookAsk(str.__str__(reason))
        case HookDeny(reason=str(reason)):
            return HookDeny(str.__str__(reason))
        case HookAllow() | HookEdit():
            return answer
        case _:
            return HookDeny(_NO_VERDICT)


async def _copy_moment(moment: Moment) -> Moment:
    """A copy down to the last dictionary, without the history."""
    bare = replace(moment, history=())
    return await run_by_size(lambda: deep_copy(bare), *(getattr(bare, each.name) for each in fields(bare)))


async def _log_cancelled(task: "asyncio.Task[Any]", name: str) -> None:
    task.cancel()
    await asyncio.wait([task], timeout=_GRACE)
    if not task.done():
        _log.error("the hook %s does not heed that it was cancelled, and was left alone", name)


def _validate_prompt(prompt: Message) -> Message | None:
    """What a hook made of a prompt, as our own; None for what is none."""
    try:
        said = validate_message(prompt)
    except AgentError:
        return None
    return said if said.blocks and all(isinstance(block, Text | Image) for block in said.blocks) else None


def _join_reasons(reasons: Sequence[str]) -> str:
    """Each once, in order."""
    return " ".join(dict.fromkeys(reason for reason in reasons if reason))
