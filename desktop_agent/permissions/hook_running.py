"""Runs the caller's hooks: all of them, in order, each within its time; the strictest verdict wins.

What a hook is given is a copy; that of the history is shared by all that are asked in the same round. A hook that
raises, answers something that is no verdict, or does not end in its time has said no.
"""

import asyncio
import copy
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeVar

from desktop_agent.tools.in_thread import by_size
from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.blocks import Image, JsonObject, Outcome, Text, ToolResult
from desktop_agent.vocabulary.conduct.hooks import (
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
from desktop_agent.vocabulary.errors import ToolInputInvalid
from desktop_agent.vocabulary.messages import Message

_log = logging.getLogger(__name__)

# Seconds for one hook; and for one that was cancelled to end.
TIME_LIMIT = 60.0
_GRACE = 1.0

Moment = TypeVar("Moment", UserPromptSubmit, PreToolUse, PostToolUse)


class HistoryForHooks:
    """The history as hooks see it: copied once, when the first of them asks."""

    def __init__(self, history: tuple[Message, ...]) -> None:
        self._history = history
        self._copy: tuple[Message, ...] | None = None
        self._copying = asyncio.Lock()

    async def copied(self) -> tuple[Message, ...]:
        """A copy down to the last dictionary."""
        async with self._copying:
            if self._copy is None:
                self._copy = await by_size(lambda: copy.deepcopy(self._history), self._history)
            return self._copy


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


async def before_call(
    hooks: Hooks,
    moment: PreToolUse,
    tool: AnyTool | None,
    *,
    history: HistoryForHooks | None = None,
    time_limit: float = TIME_LIMIT,
) -> HookRuling:
    """Ask the hooks about a call that is about to pass the gates. Edits chain, and must fit the tool.

    `history`, where it is given, stands for that of the moment.
    """
    history = history or HistoryForHooks(moment.history)
    asks: list[str] = []
    denials: list[str] = []
    arguments, edited = moment.input, False
    for hook in hooks.pre_tool_use:
        match await _verdict(hook, replace(moment, input=arguments), history, time_limit):
            case HookEdit(input=dict() as wanted):
                try:
                    arguments, edited = await _fitting(wanted, tool), True
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
        return HookRuling("deny", _joined(denials) or _DENIED, arguments, edited)
    return HookRuling("ask" if asks else "allow", _joined(asks), arguments, edited)


async def after_call(
    hooks: Hooks,
    moment: PostToolUse,
    *,
    history: HistoryForHooks | None = None,
    time_limit: float = TIME_LIMIT,
) -> ToolResult:
    """Show the hooks a result. Edits chain and change what it says, never how the call ended or whose it is.

    A denial, and a question that nobody is there for, keeps the result out: its reason stands in its place, and a call
    that succeeded counts as failed. `history`, where it is given, stands for that of the moment.
    """
    history = history or HistoryForHooks(moment.history)
    denials: list[str] = []
    result = moment.result
    for hook in hooks.post_tool_use:
        match await _verdict(hook, replace(moment, result=result), history, time_limit):
            case HookEdit(result=ToolResult() as wanted):
                content = await by_size(lambda: copy.deepcopy(wanted.content), wanted.content)
                result = result.model_copy(update={"content": content})
            case HookEdit():
                denials.append(_NO_VERDICT)
            case HookAsk(reason=reason) | HookDeny(reason=reason):
                denials.append(reason)
            case HookAllow():
                pass
    if not denials:
        return result
    said = _joined(denials) or "A hook kept this result out."
    outcome = Outcome.FAILED if result.outcome is Outcome.SUCCEEDED else result.outcome
    return result.model_copy(update={"content": (Text(text=said),), "outcome": outcome})


async def before_prompt(hooks: Hooks, moment: UserPromptSubmit, *, time_limit: float = TIME_LIMIT) -> PromptRuling:
    """Ask the hooks about a prompt. Edits chain and change its blocks; a question counts as a denial.

    The prompt of a denial is the one that was sent.
    """
    history = HistoryForHooks(moment.history)
    denials: list[str] = []
    prompt = moment.prompt
    for hook in hooks.user_prompt_submit:
        match await _verdict(hook, replace(moment, prompt=prompt), history, time_limit):
            case HookEdit(prompt=Message() as wanted) if _can_be_said(wanted):
                prompt = prompt.model_copy(update={"blocks": copy.deepcopy(wanted.blocks)})
            case HookEdit():
                denials.append(_NO_VERDICT)
            case HookAsk(reason=reason) | HookDeny(reason=reason):
                denials.append(reason)
            case HookAllow():
                pass
    if denials:
        return PromptRuling(
            allowed=False, reason=_joined(denials) or "A hook refused this prompt.", prompt=moment.prompt
        )
    return PromptRuling(allowed=True, reason="", prompt=prompt)


_DENIED = "A hook denied this call."
_NO_VERDICT = "A hook answered something that is no verdict here, which counts as a denial."


async def _verdict(
    hook: Callable[[Moment], Awaitable[HookVerdict | None]],
    moment: Moment,
    history: HistoryForHooks,
    time_limit: float,
) -> HookVerdict:
    """One hook's, with no answer as allow, and every fault as a denial. A cancel goes through to the hook."""
    name = getattr(hook, "__qualname__", type(hook).__name__)
    task = asyncio.ensure_future(_run(hook, replace(await _own(moment), history=await history.copied())))
    task.add_done_callback(_heard)
    try:
        await asyncio.wait([task], timeout=time_limit)
    finally:
        in_time = task.done()
        if not in_time:
            await _cancelled(task, name)
    if not in_time:
        _log.warning("the hook %s did not end within %g s", name, time_limit)
        return HookDeny(f"A hook did not answer within {time_limit:g} s, which counts as a denial.")
    failure = asyncio.CancelledError() if task.cancelled() else task.exception()
    if failure is not None:
        kind = type(failure).__name__
        # The type alone: what an exception says may be what nobody should read in a log.
        _log.warning("the hook %s raised %s", name, kind)
        return HookDeny(f"A hook failed ({kind}), which counts as a denial.")
    answer = task.result()
    if answer is None:
        return HookAllow()
    return answer if isinstance(answer, HookVerdict) else HookDeny(_NO_VERDICT)


async def _own(moment: Moment) -> Moment:
    """A copy down to the last dictionary, without the history."""
    bare = replace(moment, history=())
    return await by_size(lambda: copy.deepcopy(bare), *(getattr(bare, each.name) for each in fields(bare)))


async def _run(hook: Callable[[Moment], Awaitable[HookVerdict | None]], moment: Moment) -> Any:
    return await hook(moment)


def _heard(task: "asyncio.Task[Any]") -> None:
    """Somebody looked at what it raised; else the loop would complain about one that was left alone."""
    if not task.cancelled():
        task.exception()


async def _cancelled(task: "asyncio.Task[Any]", name: str) -> None:
    task.cancel()
    await asyncio.wait([task], timeout=_GRACE)
    if not task.done():
        _log.error("the hook %s does not heed that it was cancelled, and was left alone", name)


async def _fitting(wanted: JsonObject, tool: AnyTool | None) -> JsonObject:
    """The arguments as they would come from a model, checked. Raises ToolInputInvalid."""

    def fitting() -> JsonObject:
        arguments: JsonObject = json.loads(json.dumps(wanted, allow_nan=False))
        if tool is not None:
            tool.checked(arguments)
        return arguments

    try:
        return await by_size(fitting, wanted)
    except ToolInputInvalid:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a hook writes there, and a schema makes of it
        raise ToolInputInvalid(f"They cannot be used ({type(error).__name__}).") from None


def _can_be_said(prompt: Message) -> bool:
    return bool(prompt.blocks) and all(isinstance(block, Text | Image) for block in prompt.blocks)


def _joined(reasons: Sequence[str]) -> str:
    """Each once, in order."""
    return " ".join(dict.fromkeys(reason for reason in reasons if reason))
