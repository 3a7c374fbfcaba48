"""What happens to a tool call before it may run: names and registry, hooks, rules and mode, doom loop, approval."""

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from dataclasses import replace
from typing import Any

from desktop_agent.agent.hooks import run_pre_tool_hooks
from desktop_agent.agent.tool_calls.doom_loop import DoomLoopDetector, is_same_call, reason_to_ask
from desktop_agent.agent.tool_calls.tool_execution import STOPPED_BEFORE_START, BatchContext, CallStatus, ToolExecution
from desktop_agent.permissions.approvals import Approval, Resolution, explain_preview, preview_failed
from desktop_agent.permissions.gate import Allowed, Ask, Denied, Verdict
from desktop_agent.processes.foreign_code import Fault, call_foreign
from desktop_agent.processes.worker_threads import run_by_size
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.blocks import JsonObject, Outcome, ToolUse
from desktop_agent.types.engine_events import ApprovalResolved, DoomLoopSuspected
from desktop_agent.types.errors import Sentence, ToolFailed, WrongUse
from desktop_agent.types.messages import new_id
from desktop_agent.types.policies import PreToolUse
from desktop_agent.types.tool_calls import (
    DENIED_BY_PERSON,
    DENIED_SAYING,
    AllowAlways,
    AllowForConversation,
    AllowOnce,
    Deny,
    DenyAndStop,
    Preview,
    TextPreview,
    ToolClass,
    is_same_json,
)

_log = logging.getLogger(__name__)

# The timeout for a tool's questions about a call (subjects, preview), in seconds.
TOOL_QUERY_TIMEOUT = 10.0
_HOOK_ASKS = Sentence("A hook wants a person to decide.")
_NOT_JUDGED = Sentence("The rules could not be applied to this call in time, so you decide.")
_TOOL_REMOVED = (
    "Not run: the tool “{name}” is no longer there. Either the server that offers it has ended. It is started when it "
    "is needed: call again. Or it was turned off or removed after the call was made: if it is missing then too, find "
    "another way, or have it turned on in the settings."
)
_TOOL_REPLACED = (
    "Not run: the tool “{name}” is another one now, it was changed after the call was made. Look at what it says "
    "of itself, then call again if it is still needed."
)


async def checked_arguments(call: ToolExecution, tool: AnyTool) -> Any:
    """Return the arguments as the tool wants them. Raises ToolInputInvalid."""
    return await run_by_size(lambda: tool.checked(call.input), call.input)


class ToolGate:
    """Evaluates the calls of one batch."""

    def __init__(self, batch: BatchContext) -> None:
        self._batch = batch
        self._doom_loop = DoomLoopDetector(batch.history, [call.use for call in batch.calls])

    async def pass_through(self, call: ToolExecution) -> None:
        """Take a call through all gates, once. Afterwards it has a verdict to run or to ask, or its result."""
        repeats = self._doom_loop.count(call.use)
        if not await self._apply_recovered(call):
            if reason_to_ask(repeats) is not None:
                call.repeat_count, call.repeated_use = repeats, call.use
            await self._run_hooks(call)
        if not call.is_open:
            return
        verdict = await self.evaluate(call)
        self._resolve_recovered_request(call, verdict)
        if isinstance(verdict, Denied):
            self._batch.answer(call, verdict.outcome, str(verdict.sentence))

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
            call.ask_reasons.append(Sentence("{why}", {"why": request.reason}))
        return True

    async def _apply_recovered_decision(self, call: ToolExecution, decided: ApprovalResolved) -> bool:
        batch = self._batch
        if decided.decision == "withdrawn":
            batch.answer(call, Outcome.CANCELLED, STOPPED_BEFORE_START)
        elif decided.decision in {"deny", "deny_and_stop"}:
            batch.answer(call, Outcome.DENIED, _denial_text(decided.message, by_person=decided.by == "person"))
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

    async def _digest(self, call: ToolExecution, arguments: JsonObject) -> str | None:
        tool = call.tool
        try:
            return await run_by_size(lambda: tool.digest(arguments), arguments) if tool is not None else None
        except (TypeError, ValueError, RecursionError):
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
            batch.answer(call, Outcome.DENIED, f"Not run: the hooks failed ({ruling.kind}).")
        elif ruling.verdict == "deny":
            batch.answer(call, Outcome.DENIED, f"Not run: {ruling.reason}")
        else:
            if ruling.edited:
                call.set_arguments(ruling.input)
            if ruling.verdict == "ask":
                call.ask_reasons.append(Sentence("{why}", {"why": ruling.reason}) if ruling.reason else _HOOK_ASKS)

    async def _is_denied_before_hooks(self, call: ToolExecution) -> bool:
        """Answer a call about which no hook is asked: a forbidden name, no such tool, or wrong arguments."""
        verdict = await self._policy_verdict(call)
        if not isinstance(verdict, Denied):
            return False
        # A hook may change a call that rules deny.
        if verdict.outcome is Outcome.DENIED and self._batch.context.permission_policy.allows_name(call.use.name):
            return False
        self._batch.answer(call, verdict.outcome, str(verdict.sentence))
        return True

    async def evaluate(self, call: ToolExecution) -> Verdict:
        """Return the verdict by registry, rules and mode as of now, never laxer than hooks or a doom loop demand."""
        version = self._batch.version
        verdict = await self._policy_verdict(call)
        reasons = list(call.ask_reasons)
        if (repeated := reason_to_ask(call.repeat_count)) is not None:
            reasons.append(repeated)
        if reasons and not isinstance(verdict, Denied):
            own = verdict if isinstance(verdict, Ask) else Ask(verdict.digest)
            verdict = replace(own, reasons=(*own.reasons, *reasons))
        if version >= call.evaluated_version:
            call.evaluated_version, call.verdict = version, verdict
        return verdict

    async def _policy_verdict(self, call: ToolExecution) -> Verdict:
        if (refused := self._refresh_tool(call)) is not None:
            return refused
        context, arguments, use = self._batch.context, call.input, call.effective_use
        may_wait = call.tool is not None and call.tool.subjects is not None

        async def verdict() -> Verdict:
            return await context.permission_policy.verdict(use, call.tool, context.tools.names, digest=call.digest)

        run = self._batch.supervisor.run
        result = await (run(verdict, TOOL_QUERY_TIMEOUT) if may_wait else call_foreign(verdict))
        if isinstance(result, Fault):
            _log.error("a call of tool %s could not be judged: %s", call.use.name, result.trace)
            result = await self._verdict_when_unclear(call)
        if not isinstance(result, Denied) and call.input is arguments:
            call.digest = result.digest
        return result

    async def _verdict_when_unclear(self, call: ToolExecution) -> Verdict:
        """Return the verdict about a call that could not be judged: the person is asked, unless its tool is denied."""
        context, use = self._batch.context, call.effective_use

        async def verdict() -> Verdict:
            policy = context.permission_policy
            return await policy.verdict(use, call.tool, context.tools.names, digest=call.digest, is_unclear=True)

        result = await self._batch.supervisor.run(verdict, TOOL_QUERY_TIMEOUT)
        if isinstance(result, Fault):
            words = {"words": result.description}
            return Denied(Outcome.FAILED, Sentence("The call could not be judged. {words}", words))
        if isinstance(result, Denied):
            return result
        own = result if isinstance(result, Ask) else Ask(result.digest)
        return replace(own, reasons=(_NOT_JUDGED, *own.reasons))

    def is_offered(self, call: ToolExecution) -> bool:
        """Return whether the registry still has, under this name, the tool that was evaluated."""
        return call.tool is not None and self._batch.context.tools.get(call.use.name) == call.tool

    def _refresh_tool(self, call: ToolExecution) -> Denied | None:
        """Replace the call's tool by its current version. Return a denial where it is gone, or is another tool."""
        if call.tool is None or self.is_offered(call):
            return None
        tool = self._batch.context.tools.get(call.use.name)
        if tool is None or tool.identity != call.tool.identity:
            return Denied(
                Outcome.FAILED, Sentence(_TOOL_REMOVED if tool is None else _TOOL_REPLACED, {"name": call.use.name})
            )
        call.tool = tool
        return None

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

    async def preview(self, call: ToolExecution, tool: AnyTool) -> Preview | None:
        """Return what the call would do; a preview that fails says why instead of hiding the call."""
        preview_of = tool.preview
        if preview_of is None:
            return None

        async def make_preview() -> Preview | None:
            try:
                return explain_preview(await preview_of(await checked_arguments(call, tool)))
            except ToolFailed as error:
                return TextPreview(error.sentence)

        preview = await self._batch.supervisor.run(make_preview, TOOL_QUERY_TIMEOUT)
        if not isinstance(preview, Fault):
            return preview
        _log.error("the preview of tool %s failed: %s", tool.name, preview.trace)
        return preview_failed(preview.kind)


# After so many calls the event loop runs other tasks.
_YIELD_EVERY = 50


class ApprovalFlow:
    """The approvals of one batch: requested, resolved, withdrawn by Stop, re-evaluated when rules or mode change."""

    def __init__(self, batch: BatchContext, gate: ToolGate) -> None:
        self._batch = batch
        self._gate = gate
        self._reevaluations: set[asyncio.Task[None]] = set()

    async def prepare(self, call: ToolExecution) -> None:
        """Prepare what the person will be shown: the preview, and rules that they may create from the call."""
        tool, policy = call.tool, self._batch.context.permission_policy
        if tool is None:
            return
        call.preview = await self._gate.preview(call, tool)
        use = call.effective_use
        rules = await self._batch.supervisor.run(
            lambda: policy.proposals(use, tool, digest=call.digest), TOOL_QUERY_TIMEOUT
        )
        if isinstance(rules, Fault):
            _log.warning("no rules can be proposed for a call of tool %s: %s", tool.name, rules.trace)
        call.proposals = () if isinstance(rules, Fault) else rules

    def request_all(self, calls: Iterable[ToolExecution]) -> None:
        """Request approval for those that need it and are prepared, in call order."""
        for call in calls:
            if call.is_open and not self._batch.is_closed and needs_approval(call, call.verdict):
                self._request(call)

    async def request(self, call: ToolExecution) -> None:
        """Prepare and request approval for a call that did not need one before."""
        if call.status is CallStatus.PREPARING_APPROVAL:
            return
        call.advance(CallStatus.PREPARING_APPROVAL)
        call.approval_resolved.clear()
        try:
            await self.prepare(call)
        finally:
            call.advance(CallStatus.PENDING)
            call.approval_resolved.set()
        if call.is_open and not self._batch.is_closed:
            self._request(call)

    def _request(self, call: ToolExecution) -> None:
        batch, tool, verdict = self._batch, call.tool, call.verdict
        if tool is None or not isinstance(verdict, Ask):
            return
        if call.repeat_count and call.recovered_request is None:
            batch.emit(DoomLoopSuspected(call.use.id, call.repeat_count))
        reopened = self._reopen_approval(call, tool, verdict)
        approval = reopened or self._open_approval(call, tool, verdict)
        call.recovered_request = None
        call.approval = approval
        call.approval_resolved.clear()
        batch.clock.begin_waiting()
        if reopened is None:
            batch.emit(approval.requested_event)
        call.approval_task = batch.spawn(self._await_resolution(call, approval))

    def _reopen_approval(self, call: ToolExecution, tool: AnyTool, verdict: Ask) -> Approval | None:
        """Return the approval card from before the program died, if it is still open."""
        if call.recovered_request is None:
            return None
        try:
            return self._open_approval(call, tool, verdict, call.recovered_request.approval_id)
        except WrongUse:
            return None

    def _open_approval(
        self, call: ToolExecution, tool: AnyTool, verdict: Ask, approval_id: str | None = None
    ) -> Approval:
        approval = Approval(
            approval_id or new_id(),
            call.use,
            tool,
            call.preview,
            arguments=call.effective_input,
            verdict=verdict,
            proposals=call.proposals,
            agent_path=self._batch.context.agent_path,
        )
        return self._batch.context.approvals.open(approval, is_reopened=approval_id is not None)

    async def _await_resolution(self, call: ToolExecution, approval: Approval) -> None:
        resolution = await approval.resolution()
        if call.approval is approval:
            self._on_resolved(call, approval, resolution)

    def withdraw(self, call: ToolExecution) -> None:
        """Withdraw the approval of a call; a decision that was already made still counts."""
        approval = call.approval
        if approval is None:
            return
        broker = self._batch.context.approvals
        broker.withdraw(approval.approval_id)
        if call.approval_task is not None:
            call.approval_task.cancel()
        resolution = broker.report(approval.approval_id).resolution
        if resolution is not None:
            self._on_resolved(call, approval, resolution)

    def _on_resolved(self, call: ToolExecution, approval: Approval, resolution: Resolution) -> None:
        """Apply the resolution without awaiting, so that nothing can start in between."""
        batch, decision = self._batch, resolution.decision
        call.approval = None
        batch.clock.end_waiting()
        message = decision.message if isinstance(decision, Deny | DenyAndStop) else ""
        word = decision.type if decision is not None else "withdrawn"
        changed = None if is_same_json(resolution.input, call.use.input) else resolution.input
        batch.emit(
            ApprovalResolved(
                approval.approval_id, call.use.id, word, resolution.by, changed, message, resolution.digest
            )
        )
        if resolution.rule is not None:
            batch.context.permission_policy.add(resolution.rule)
        if resolution.allows:
            self._on_allowed(call, resolution)
        elif isinstance(decision, Deny | DenyAndStop):
            batch.answer(call, Outcome.DENIED, _denial_text(message, by_person=resolution.by == "person"))
            if isinstance(decision, DenyAndStop):
                batch.stop()
        elif not batch.is_closed:
            batch.answer(call, Outcome.CANCELLED, STOPPED_BEFORE_START)
        call.approval_resolved.set()

    def _on_allowed(self, call: ToolExecution, resolution: Resolution) -> None:
        if resolution.by != "person":
            # The rules are checked again before the start.
            return
        call.person_permit = resolution.verdict
        call.is_edited = resolution.edited and not is_same_json(resolution.input, call.input)
        call.set_arguments(resolution.input, resolution.digest)
        decision = resolution.decision
        call.is_bound_to_preview = isinstance(decision, AllowOnce) and not resolution.edited
        if call.repeated_use is not None and isinstance(decision, AllowForConversation | AllowAlways):
            self._clear_suspicion(call.repeated_use)

    def _clear_suspicion(self, repeated: ToolUse) -> None:
        """Clear the doom loop: whoever allows the call from now on has seen that it repeats."""
        for other in self._batch.calls:
            if other.repeated_use is not None and is_same_call(other.repeated_use, repeated):
                other.repeat_count = 0
        self.policy_changed()

    def policy_changed(self) -> None:
        """Re-evaluate whatever has not started: rules or mode have changed."""
        self._batch.version += 1
        self._spawn(self._reevaluate_all(self._batch.version))

    def cancel(self) -> None:
        """Stop all re-evaluation."""
        for task in self._reevaluations:
            task.cancel()

    async def _reevaluate_all(self, version: int) -> None:
        for position, call in enumerate(self._batch.calls, start=1):
            if self._is_outdated(version):
                return
            if position % _YIELD_EVERY == 0:
                await asyncio.sleep(0)
            if not _waits_to_start(call):
                continue
            if call.tool is not None and call.tool.subjects is not None:
                # Its tool may take time to name the call's subjects; the others do not wait for that.
                self._spawn(self._reevaluate(call, version))
            else:
                await self._reevaluate(call, version)

    async def _reevaluate(self, call: ToolExecution, version: int) -> None:
        verdict = await self._gate.evaluate(call)
        if self._is_outdated(version) or not _waits_to_start(call):
            return
        broker, approval = self._batch.context.approvals, call.approval
        if approval is not None:
            approval.tool = call.tool or approval.tool
            if not isinstance(verdict, Ask):
                why = str(verdict.sentence) if isinstance(verdict, Denied) else ""
                broker.resolve_by_rule(approval.approval_id, allow=isinstance(verdict, Allowed), why=why)
        elif isinstance(verdict, Denied):
            self._batch.answer(call, verdict.outcome, str(verdict.sentence))
        elif needs_approval(call, verdict):
            await self.request(call)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._batch.spawn(work)
        self._reevaluations.add(task)
        task.add_done_callback(self._reevaluations.discard)

    def _is_outdated(self, version: int) -> bool:
        """Return whether Stop, or a later change that re-evaluates everything itself, came meanwhile."""
        return version != self._batch.version or self._batch.is_closed


def needs_approval(call: ToolExecution, verdict: Verdict | None) -> bool:
    """Return whether nobody has allowed exactly what would run."""
    if not isinstance(verdict, Ask) or call.approval is not None or call.tool is None:
        return False
    return call.person_permit is None or call.person_permit.digest != verdict.digest


def _waits_to_start(call: ToolExecution) -> bool:
    """Return whether the call is past its gates, and its own start does not check the rules anyway."""
    return call.status in {CallStatus.PENDING, CallStatus.PREPARING_APPROVAL}


def _denial_text(message: str, *, by_person: bool) -> str:
    if not by_person:
        return message or "This call is denied."
    return f"{DENIED_SAYING}{message}" if message else DENIED_BY_PERSON
