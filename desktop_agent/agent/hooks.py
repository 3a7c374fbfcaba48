"""Run the caller's hooks: all of them, in order, each with a timeout; the strictest verdict wins.

Each hook gets a copy; the copy of the history is shared by all hooks of one round. A hook that raises, exceeds its
timeout, or answers something that is no verdict denies.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, TypeVar

from desktop_agent.permissions.gate import validate_edited_arguments
from desktop_agent.processes.foreign_code import Fault, HistoryCopy, OutOfTime, call_within, deep_copy, validate_message
from desktop_agent.processes.worker_threads import run_by_size
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.blocks import Image, JsonObject, Outcome, Text, ToolResult
from desktop_agent.types.errors import ToolInputInvalid, WrongUse
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

# Seconds that one hook may take, and that a cancelled one has to end.
TIME_LIMIT = 60.0
_GRACE = 1.0
_DENIED = "A hook denied this call."
_NO_VERDICT = "A hook answered something that is no verdict here, which counts as a denial."

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
) -> HookRuling:
    """Ask the hooks about a call that is about to pass the gates. Edits chain, and must fit the tool.

    `history`, if given, replaces that of the moment.
    """

    async def apply_edit(before: PreToolUse, edit: HookEdit) -> PreToolUse | str:
        arguments = edit.input
        if arguments is None:
            return _NO_VERDICT
        try:
            valid = await run_by_size(lambda: validate_edited_arguments(arguments, tool), arguments)
        except ToolInputInvalid as error:
            return f"A hook changed the arguments. {error}"
        return replace(before, input=valid)

    changed, refusals = await _run_all(hooks.pre_tool_use, moment, apply_edit, history)
    is_edited = changed is not moment
    denials = [verdict for verdict in refusals if isinstance(verdict, HookDeny)]
    if denials:
        return HookRuling("deny", _join_reasons(denials) or _DENIED, changed.input, is_edited)
    return HookRuling("ask" if refusals else "allow", _join_reasons(refusals), changed.input, is_edited)


async def run_post_tool_hooks(
    hooks: Hooks,
    moment: PostToolUse,
    *,
    history: HistoryCopy | None = None,
) -> ToolResult:
    """Show the hooks a result. Edits chain and change its content, never its outcome or its call id.

    A denial, or a question that nobody can answer, keeps the result out: its reason takes its place, and a call that
    succeeded counts as failed. `history`, if given, replaces that of the moment.
    """

    async def apply_edit(before: PostToolUse, edit: HookEdit) -> PostToolUse | str:
        if not isinstance(edit.result, ToolResult):
            return _NO_VERDICT
        return replace(before, result=before.result.model_copy(update={"content": edit.result.content}))

    changed, refusals = await _run_all(hooks.post_tool_use, moment, apply_edit, history)
    result = changed.result
    if not refusals:
        return result
    explanation = _join_reasons(refusals) or "A hook kept this result out."
    outcome = Outcome.FAILED if result.outcome is Outcome.SUCCEEDED else result.outcome
    return result.model_copy(update={"content": (Text(text=explanation),), "outcome": outcome})


async def run_prompt_hooks(hooks: Hooks, moment: UserPromptSubmit) -> PromptRuling:
    """Ask the hooks about a prompt. Edits chain and change its blocks; a question counts as a denial.

    A denial carries the prompt as it was sent.
    """

    async def apply_edit(before: UserPromptSubmit, edit: HookEdit) -> UserPromptSubmit | str:
        try:
            blocks = validate_message(edit.prompt).blocks
        except WrongUse:
            return _NO_VERDICT
        if not blocks or not all(isinstance(block, Text | Image) for block in blocks):
            return _NO_VERDICT
        return replace(before, prompt=before.prompt.model_copy(update={"blocks": blocks}))

    changed, refusals = await _run_all(hooks.user_prompt_submit, moment, apply_edit, None)
    if refusals:
        reason = _join_reasons(refusals) or "A hook refused this prompt."
        return PromptRuling(allowed=False, reason=reason, prompt=moment.prompt)
    return PromptRuling(allowed=True, reason="", prompt=changed.prompt)


async def _run_all(
    hooks: Sequence[Callable[[Moment], Awaitable[HookVerdict | None]]],
    moment: Moment,
    apply_edit: Callable[[Moment, HookEdit], Awaitable[Moment | str]],
    history: HistoryCopy | None,
) -> tuple[Moment, list[HookAsk | HookDeny]]:
    """Ask all hooks in order; return the moment with their edits, and what they ask or deny.

    `apply_edit` returns the edited moment, or why the edit cannot be applied.
    """
    history = history or HistoryCopy(moment.history)
    refusals: list[HookAsk | HookDeny] = []
    for hook in hooks:
        verdict = await _ask_hook(hook, moment, history)
        if isinstance(verdict, HookEdit):
            changed = await apply_edit(moment, verdict)
            if isinstance(changed, str):
                refusals.append(HookDeny(changed))
            else:
                moment = changed
        elif not isinstance(verdict, HookAllow):
            refusals.append(verdict)
    return moment, refusals


async def _ask_hook(
    hook: Callable[[Moment], Awaitable[HookVerdict | None]], moment: Moment, history: HistoryCopy
) -> HookVerdict:
    """Return a hook's verdict: no answer allows, every fault denies. A cancel goes through to the hook."""
    name = getattr(hook, "__qualname__", type(hook).__name__)

    async def ask() -> HookVerdict:
        answer = await hook(replace(await _copy_moment(moment), history=await history.copied()))
        return HookAllow() if answer is None else answer

    answer = await call_within(ask, TIME_LIMIT, _GRACE, f"the hook {name}")
    if isinstance(answer, Fault) and isinstance(answer.error, OutOfTime):
        _log.warning("the hook %s did not end within %g s", name, TIME_LIMIT)
        return HookDeny(f"A hook did not answer within {TIME_LIMIT:g} s, which counts as a denial.")
    if isinstance(answer, Fault):
        # The type alone: the text of an exception may be secret.
        _log.warning("the hook %s raised %s", name, answer.kind)
        return HookDeny(f"A hook failed ({answer.kind}), which counts as a denial.")
    return answer if _is_verdict(answer) else HookDeny(_NO_VERDICT)


def _is_verdict(answer: object) -> bool:
    reason: object = getattr(answer, "reason", None)
    return isinstance(answer, HookVerdict) and (reason is None or isinstance(reason, str))


async def _copy_moment(moment: Moment) -> Moment:
    """Copy everything but the history, deeply."""
    bare = replace(moment, history=())
    return await run_by_size(lambda: deep_copy(bare), *(getattr(bare, field.name) for field in fields(bare)))


def _join_reasons(verdicts: Sequence[HookAsk | HookDeny]) -> str:
    return " ".join(dict.fromkeys(verdict.reason for verdict in verdicts if verdict.reason))
