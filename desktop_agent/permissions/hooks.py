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
    """What all hooks together decide about a call. `input` is the arguments, changed by hooks if `edited`."""

    verdict: Literal["allow", "ask", "deny"]
    reason: str
    input: JsonObject
    edited: bool


@dataclass(frozen=True, slots=True)
class PromptRuling:
    """What all hooks together decide about a prompt. `prompt` keeps the id of the one that was sent."""

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

    `history`, if given, replaces that of the moment.
    """
    history = history or HistoryCopy(moment.history)
    asks: list[str] = []
    denials: list[str] = []
    arguments, edited = moment.input, False
    for hook in hooks.pre_tool_use:
        match await _ask_hook(hook, replace(moment, input=arguments), history, time_limit):
            case HookEdit(input=dict() as edited_input):
                try:
                    arguments, edited = (
                        await run_by_size(partial(validate_edited_arguments, edited_input, tool), edited_input),
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
    """Show the hooks a result. Edits chain and change its content, never how the call ended or whose it is.

    A denial, or a question that nobody can answer, keeps the result out: its reason takes its place, and a call that
    succeeded counts as failed. `history`, if given, replaces that of the moment.
    """
    history = history or HistoryCopy(moment.history)
    denials: list[str] = []
    result = moment.result
    for hook in hooks.post_tool_use:
        match await _ask_hook(hook, replace(moment, result=result), history, time_limit):
            case HookEdit(result=ToolResult() as edited_result):
                content = await run_by_size(partial(deep_copy, edited_result.content), edited_result.content)
                result = result.model_copy(update={"content": content})
            case HookEdit():
                denials.append(_NO_VERDICT)
            case HookAsk(reason=reason) | HookDeny(reason=reason):
                denials.append(reason)
            case HookAllow():
                pass
    if not denials:
        return result
    explanation = _join_reasons(denials) or "A hook kept this result out."
    outcome = Outcome.FAILED if result.outcome is Outcome.SUCCEEDED else result.outcome
    return result.model_copy(update={"content": (Text(text=explanation),), "outcome": outcome})


async def run_prompt_hooks(hooks: Hooks, moment: UserPromptSubmit, *, time_limit: float = TIME_LIMIT) -> PromptRuling:
    """Ask the hooks about a prompt. Edits chain and change its blocks; a question counts as a denial.

    The prompt of a denial is the one that was sent.
    """
    history = HistoryCopy(moment.history)
    denials: list[str] = []
    prompt = moment.prompt
    for hook in hooks.user_prompt_submit:
        match await _ask_hook(hook, replace(moment, prompt=prompt), history, time_limit):
            case HookEdit(prompt=Message() as edited_prompt) if (
                valid_prompt := _validate_prompt(edited_prompt)
            ) is not None:
                prompt = prompt.model_copy(update={"blocks": valid_prompt.blocks})
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
    """Return a hook's verdict: no answer allows, every fault denies. A cancel goes through to the hook."""
    name = hook.__qualname__ if isinstance(hook, FunctionType | MethodType) else type_name(hook)

    async def copy_of_moment() -> Moment:
        return replace(await _copy_moment(moment), history=await history.copied())

    copied_moment = await call_foreign(copy_of_moment)
    if isinstance(copied_moment, Fault):
        return _deny_for_fault(name, copied_moment)

    async def verdict() -> HookVerdict:
        return _validate_verdict(await hook(copied_moment))

    task = asyncio.create_task(call_foreign(verdict))
    try:
        await asyncio.wait([task], timeout=time_limit)
    finally:
        in_time = task.done()
        if not in_time:
            await _log_cancelled(task, name)
    if not in_time:
        _log.warning("the hook %s did not end within %g s", name, time_limit)
        return HookDeny(f"A hook did not answer within {time_limit:g} s, which counts as a denial.")
    answer = Fault(asyncio.CancelledError()) if task.cancelled() else task.result()
    return _deny_for_fault(name, answer) if isinstance(answer, Fault) else answer


def _deny_for_fault(name: str, fault: Fault) -> HookDeny:
    # The type alone: the text of an exception may be secret.
    _log.warning("the hook %s raised %s", name, fault.kind)
    return HookDeny(f"A hook failed ({fault.kind}), which counts as a denial.")


def _validate_verdict(answer: object) -> HookVerdict:
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
    """Copy everything but the history, down to the last dictionary."""
    bare = replace(moment, history=())
    return await run_by_size(lambda: deep_copy(bare), *(getattr(bare, field.name) for field in fields(bare)))


async def _log_cancelled(task: "asyncio.Task[Any]", name: str) -> None:
    task.cancel()
    await asyncio.wait([task], timeout=_GRACE)
    if not task.done():
        _log.error("the hook %s does not heed that it was cancelled, and was left alone", name)


def _validate_prompt(prompt: Message) -> Message | None:
    """Copy a prompt that a hook made; None for an invalid one."""
    try:
        valid = validate_message(prompt)
    except AgentError:
        return None
    return valid if valid.blocks and all(isinstance(block, Text | Image) for block in valid.blocks) else None


def _join_reasons(reasons: Sequence[str]) -> str:
    return " ".join(dict.fromkeys(reason for reason in reasons if reason))
