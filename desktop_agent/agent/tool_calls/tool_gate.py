"""The gates before a tool call: names and registry, hooks, rules and mode, doom loop; and its preview."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from desktop_agent.agent.tool_calls.tool_execution import BatchContext, ToolExecution
from desktop_agent.permissions.approvals import copy_preview
from desktop_agent.permissions.gate import Allowed, Ask, Denied, Verdict
from desktop_agent.permissions.hooks import run_pre_tool_hooks
from desktop_agent.permissions.policy import PermissionPolicy
from desktop_agent.processes.foreign_code import Fault, TaskSupervisor, deep_copy, plain_text
from desktop_agent.processes.worker_threads import run_by_size
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.blocks import JsonObject, Outcome, ToolUse
from desktop_agent.types.engine_events import ApprovalResolved
from desktop_agent.types.errors import Sentence, ToolFailed
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.permissions import Rule
from desktop_agent.types.policies import PreToolUse
from desktop_agent.types.tool_calls import Preview, TextPreview, ToolClass, is_same_json

# The third identical call in a row asks a person, and so does each that follows it.
REPEATS_BEFORE_ASKING = 3


class DoomLoopDetector:
    """Counts identical calls in a row, over the turns since the person last wrote."""

    def __init__(self, history: Sequence[Message], uses: Sequence[ToolUse]) -> None:
        """Scan the history, which may end with the message of these very calls."""
        self._last: ToolUse | None = None
        self._count = 0
        if uses:
            self._scan_history(history, uses)

    def count(self, use: ToolUse) -> int:
        """Return how many identical calls in a row this one makes; to be called in call order."""
        self._count = self._count + 1 if self._last is not None and is_same_call(use, self._last) else 1
        self._last = use
        return self._count

    def _scan_history(self, history: Sequence[Message], uses: Sequence[ToolUse]) -> None:
        is_newest = True
        for message in reversed(history):
            if message.role is Role.USER and message.injected_by is None:
                return
            if message.role is not Role.ASSISTANT:
                continue
            earlier = message.tool_uses
            if is_newest and list(earlier) == list(uses):
                earlier = ()
            is_newest = False
            if not self._count_backwards(earlier):
                return

    def _count_backwards(self, earlier: Sequence[ToolUse]) -> bool:
        """Count backwards; return False when the row ends."""
        for use in reversed(earlier):
            if self._last is not None and not is_same_call(use, self._last):
                return False
            self._last = use
            self._count += 1
        return True


def is_same_call(first: ToolUse, second: ToolUse) -> bool:
    """Return whether tool and arguments are the same, as JSON: 1 is not true."""
    return (first.name, first.malformed) == (second.name, second.malformed) and is_same_json(first.input, second.input)


_log = logging.getLogger(__name__)

# The timeout for a tool's questions about a call (subjects, preview), in seconds.
TOOL_QUERY_TIMEOUT = 10.0


def copy_arguments(arguments: JsonObject) -> JsonObject:
    """Return a copy for code that may change it. Arguments nested too deep are refused before anybody reads them."""
    try:
        return deep_copy(arguments)
    except RecursionError:
        return arguments


async def validated_arguments(call: ToolExecution, tool: AnyTool) -> Any:
    """Return the arguments as the tool wants them; the call's own stay unchanged, whatever it does to them."""
    return await run_by_size(lambda: tool.checked(copy_arguments(call.input)), call.input)


async def arguments_with_digest(call: ToolExecution, tool: AnyTool) -> tuple[str, Any]:
    """Return the digest and the arguments for the tool to run with, of one copy that nobody else can change."""

    def made() -> tuple[str, Any]:
        own = copy_arguments(call.input)
        return tool.digest(own), tool.checked(own)

    return await run_by_size(made, call.input)


async def copy_call(use: ToolUse) -> ToolUse:
    """Return the call with a copy of its arguments."""
    return await run_by_size(lambda: use.model_copy(update={"input": copy_arguments(use.input)}), use.input)


async def build_preview(call: ToolExecution, tool: AnyTool, supervisor: TaskSupervisor) -> Preview | None:
    """Return what the call would do; a preview that fails says why instead of hiding the call."""
    make = tool.preview
    if make is None:
        return None

    async def look() -> Preview | None:
        try:
            return copy_preview(await make(await validated_arguments(call, tool)))
        except ToolFailed as error:
            return TextPreview(plain_text(str(error)))

    preview = await supervisor.run(look, TOOL_QUERY_TIMEOUT)
    if not isinstance(preview, Fault):
        return preview
    _log.error("the preview of tool %s failed: %s", tool.name, preview.trace)
    return TextPreview(f"What it would do cannot be shown ({preview.kind}).")


async def propose_rules(
    call: ToolExecution, tool: AnyTool, supervisor: TaskSupervisor, permission_policy: PermissionPolicy
) -> tuple[Rule, ...]:
    """Return rules that the person may make of this call; none where that fails."""
    copy = await copy_call(call.effective_use)
    rules = await supervisor.run(
        lambda: permission_policy.proposals(copy, tool, digest=call.digest), TOOL_QUERY_TIMEOUT
    )
    if not isinstance(rules, Fault):
        return rules
    _log.warning("no rules can be proposed for a call of tool %s: %s", tool.name, rules.trace)
    return ()


_DENIED_BY_HOOK = "A hook denied this call."
_HOOK_ASKS = Sentence("A hook wants a person to decide.")
_STOPPED_BEFORE = "The call was stopped before it was started."
_TOOL_REMOVED = (
    "Not run: the tool “{name}” is no longer there. Either the server that offers it has ended. It is started when it "
    "is needed: call again. Or it was turned off or removed after the call was made: if it is missing then too, find "
    "another way, or have it turned on in the settings."
)
_TOOL_REPLACED = (
    "Not run: the tool “{name}” is another one now, it was changed after the call was made. Look at what it says "
    "of itself, then call again if it is still needed."
)


class ToolGate:
    """Evaluates the calls of one batch."""

    def __init__(self, batch: BatchContext) -> None:
        self._batch = batch
        self._doom_loop = DoomLoopDetector(batch.history, [call.use for call in batch.calls])

    async def pass_through(self, call: ToolExecution) -> None:
        """Take a call through all gates, once. Afterwards it has a verdict to run or to ask, or its result."""
        repeats = self._doom_loop.count(call.use)
        if not await self._apply_recovered(call):
            if repeats >= REPEATS_BEFORE_ASKING:
                call.repeat_count, call.repeated_use = repeats, call.use
            await self._run_hooks(call)
        if not call.is_open:
            return
        verdict = await self.evaluate(call)
        self._resolve_recovered_request(call, verdict)
        if isinstance(verdict, Denied):
            self._batch.answer(call, verdict.outcome, str(verdict.sentence))

    async def evaluate(self, call: ToolExecution) -> Verdict:
        """Return the verdict by registry, rules and mode as of now, never laxer than hooks or a doom loop demand."""
        version = self._batch.version
        verdict = await self._policy_verdict(call)
        reasons = list(call.asks)
        if call.repeat_count >= REPEATS_BEFORE_ASKING:
            template = "The agent made this very call {count} times in a row."
            reasons.append(Sentence(template, {"count": str(call.repeat_count)}))
        if reasons and not isinstance(verdict, Denied):
            own = verdict if isinstance(verdict, Ask) else Ask(verdict.digest)
            verdict = replace(own, reasons=(*own.reasons, *reasons))
        if version >= call.evaluated_version:
            call.evaluated_version, call.verdict = version, verdict
        return verdict

    async def _policy_verdict(self, call: ToolExecution) -> Verdict:
        context, arguments = self._batch.context, call.input
        # A copy: validation is the tool's own code, which may change its arguments.
        copy = await copy_call(call.effective_use)

        if (refused := self._refresh_tool(call)) is not None:
            return refused

        async def verdict() -> Verdict:
            return await context.permission_policy.verdict(copy, call.tool, context.tools.names, digest=call.digest)

        may_wait = call.tool is not None and call.tool.subjects is not None
        supervisor = self._batch.supervisor
        result = await (supervisor.run(verdict, TOOL_QUERY_TIMEOUT) if may_wait else supervisor.run_inline(verdict))
        if not isinstance(result, Fault):
            if not isinstance(result, Denied) and call.input is arguments:
                call.digest = result.digest
            return result
        _log.error("a call of tool %s could not be judged: %s", call.use.name, result.trace)
        return Denied(Outcome.FAILED, Sentence("The call could not be judged. {words}", {"words": result.description}))

    def is_offered(self, call: ToolExecution) -> bool:
        """Return whether the name still stands for the tool that was evaluated."""
        return call.tool is not None and self._batch.context.tools.get(call.use.name) == call.tool

    def _refresh_tool(self, call: ToolExecution) -> Denied | None:
        """Take over the current version of the tool. A tool with another identity was never asked for: deny."""
        if call.tool is None or self.is_offered(call):
            return None
        tool = self._batch.context.tools.get(call.use.name)
        if tool is None or tool.identity != call.tool.identity:
            return Denied(
                Outcome.FAILED, Sentence(_TOOL_REMOVED if tool is None else _TOOL_REPLACED, {"name": call.use.name})
            )
        call.tool = tool
        return None

    async def _run_hooks(self, call: ToolExecution) -> None:
        """Run the hooks: after names and registry, before rules and mode."""
        batch, hooks = self._batch, self._batch.context.hooks
        if not hooks.pre_tool_use or await self._is_denied_before_hooks(call):
            return
        tool_class = call.tool.tool_class if call.tool else ToolClass.MUTATING
        path = batch.context.agent_path
        moment = PreToolUse(call.use.id, call.use.name, call.use.input, tool_class, agent_path=path)
        ruling = await batch.supervisor.run(
            lambda: run_pre_tool_hooks(hooks, moment, call.tool, history=batch.hook_history)
        )
        if isinstance(ruling, Fault):
            _log.error("the hooks before a call failed: %s", ruling.trace)
            batch.answer(call, Outcome.DENIED, f"Not run: the hooks failed ({type(ruling.error).__name__}).")
        elif ruling.verdict == "deny":
            batch.answer(call, Outcome.DENIED, f"Not run: {ruling.reason or _DENIED_BY_HOOK}")
        else:
            if ruling.edited:
                call.set_arguments(ruling.input)
            if ruling.verdict == "ask":
                call.asks.append(Sentence("{why}", {"why": ruling.reason}) if ruling.reason else _HOOK_ASKS)

    async def _is_denied_before_hooks(self, call: ToolExecution) -> bool:
        """Answer a call that no hook is asked about: a forbidden name, no such tool, or wrong arguments."""
        verdict = await self._policy_verdict(call)
        if not isinstance(verdict, Denied):
            return False
        # What rules deny, a hook may make something else of.
        if verdict.outcome is Outcome.DENIED and self._batch.context.permission_policy.allows_name(call.use.name):
            return False
        self._batch.answer(call, verdict.outcome, str(verdict.sentence))
        return True

    async def _apply_recovered(self, call: ToolExecution) -> bool:
        """Apply what was decided, or asked, before the program died. Return False to begin at the first gate."""
        if call.recovered_decision is not None:
            return await self._apply_recovered_decision(call, call.recovered_decision)
        request = call.recovered_request
        if request is None or call.tool is None:
            return False
        arguments = call.use.input if request.effective_input is None else request.effective_input
        if await self._digest(call, arguments) != request.digest:
            call.recovered_request = None
            return False
        call.set_arguments(arguments, request.digest)
        if request.reason:
            call.asks.append(Sentence("{why}", {"why": request.reason}))
        return True

    async def _apply_recovered_decision(self, call: ToolExecution, decided: ApprovalResolved) -> bool:
        batch = self._batch
        if decided.decision == "withdrawn":
            batch.answer(call, Outcome.CANCELLED, _STOPPED_BEFORE)
        elif decided.decision in {"deny", "deny_and_stop"}:
            batch.answer(call, Outcome.DENIED, denial_text(decided.message, by_person=decided.by == "person"))
            if decided.decision == "deny_and_stop":
                batch.stop()
        else:
            arguments = call.use.input if decided.effective_input is None else decided.effective_input
            if call.tool is None or await self._digest(call, arguments) != decided.digest:
                return False
            call.set_arguments(arguments, decided.digest)
            if decided.by == "person":
                call.person_permit = Allowed(decided.digest, "person")
                call.is_edited = decided.effective_input is not None
        return True

    def _resolve_recovered_request(self, call: ToolExecution, verdict: Verdict) -> None:
        """Resolve an approval card from before the program died that nobody has to answer any more."""
        request = call.recovered_request
        if request is None or isinstance(verdict, Ask):
            return
        call.recovered_request = None
        word = "allow_once" if isinstance(verdict, Allowed) else "deny"
        message = str(verdict.sentence) if isinstance(verdict, Denied) else ""
        resolved = ApprovalResolved(
            request.approval_id, call.use.id, word, "rule", call.effective_input, message, request.digest
        )
        self._batch.emit(resolved)

    async def _digest(self, call: ToolExecution, arguments: dict[str, object]) -> str | None:
        tool = call.tool
        try:
            return await run_by_size(lambda: tool.digest(arguments), arguments) if tool is not None else None
        except (TypeError, ValueError, RecursionError):
            return None


def denial_text(message: str, *, by_person: bool) -> str:
    """Return the result text of a denied call, for the model."""
    if not by_person:
        return message or "This call is denied."
    return f"The person denied this call and said: {message}" if message else "The person denied this call."
