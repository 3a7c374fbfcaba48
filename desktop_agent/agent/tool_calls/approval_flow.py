"""Approvals of tool calls: requested, resolved, withdrawn by Stop, and re-evaluated when rules or mode change."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from desktop_agent.agent.tool_calls.tool_execution import BatchContext, CallStatus, ToolExecution
from desktop_agent.agent.tool_calls.tool_gate import ToolGate, build_preview, denial_text, is_same_call, propose_rules
from desktop_agent.permissions.approvals import Approval, Resolution
from desktop_agent.permissions.gate import Allowed, Ask, Denied, Verdict
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.blocks import Outcome, ToolUse
from desktop_agent.types.engine_events import ApprovalRequested, ApprovalResolved, DoomLoopSuspected
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.tool_calls import (
    AllowAlways,
    AllowForConversation,
    AllowOnce,
    Deny,
    DenyAndStop,
    is_same_json,
)

_WITHDRAWN = "The call was stopped before it was started."


class ApprovalFlow:
    """The approvals of one batch."""

    def __init__(self, batch: BatchContext) -> None:
        self._batch = batch
        # Set by the owner of the re-evaluation.
        self.on_suspicion_lifted: Callable[[], None] = lambda: None

    async def prepare(self, call: ToolExecution) -> None:
        """Prepare what the person will be shown: preview and proposed rules."""
        if call.tool is not None:
            batch = self._batch
            call.preview = await build_preview(call, call.tool, batch.supervisor)
            call.proposals = await propose_rules(call, call.tool, batch.supervisor, batch.context.permission_policy)

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
        call.approval_settled.clear()
        try:
            await self.prepare(call)
        finally:
            call.advance(CallStatus.PENDING)
            call.approval_settled.set()
        if call.is_open and not self._batch.is_closed:
            self._request(call)

    def withdraw(self, call: ToolExecution) -> None:
        """Withdraw the approval of a call; a decision that was already made still counts."""
        approval = call.approval
        if approval is None:
            return
        broker = self._batch.context.approvals
        broker.withdraw(approval.approval_id)
        if call.approval_task is not None:
            call.approval_task.cancel()
        # It has ended one way or the other; asking once more changes nothing and tells how.
        resolution = broker.resolve_by_rule(approval.approval_id, allow=False).stands
        if resolution is not None:
            self._on_resolved(call, approval, resolution)

    def _request(self, call: ToolExecution) -> None:
        tool, verdict = call.tool, call.verdict
        if tool is None or not isinstance(verdict, Ask):
            return
        if call.repeat_count and call.recovered_request is None:
            self._batch.emit(DoomLoopSuspected(call.use.id, call.repeat_count))
        reopened = self._reopen_approval(call, tool, verdict)
        approval = reopened or self._open_approval(call, tool, verdict)
        call.recovered_request = None
        call.approval = approval
        call.approval_settled.clear()
        self._batch.clock.begin_waiting()
        if reopened is None:
            path, digest = self._batch.context.agent_path, approval.digest
            self._batch.emit(
                ApprovalRequested(approval.approval_id, call.use.id, digest, path, verdict.reason, call.effective_input)
            )
        call.approval_task = self._batch.spawn(self._await_resolution(call, approval))

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
        return self._batch.context.approvals.open(
            call.use,
            tool,
            call.preview,
            arguments=call.effective_input,
            verdict=verdict,
            proposals=call.proposals,
            agent_path=self._batch.context.agent_path,
            approval_id=approval_id,
        )

    async def _await_resolution(self, call: ToolExecution, approval: Approval) -> None:
        resolution = await approval.resolution()
        if call.approval is approval:
            self._on_resolved(call, approval, resolution)

    def _on_resolved(self, call: ToolExecution, approval: Approval, resolution: Resolution) -> None:
        """Apply the resolution without awaiting, so that nothing can start in between."""
        call.approval = None
        self._batch.clock.end_waiting()
        self._emit_resolved(call, approval, resolution)
        if resolution.rule is not None:
            self._batch.context.permission_policy.add(resolution.rule)
        if resolution.allows:
            self._on_allowed(call, resolution)
        else:
            self._on_not_allowed(call, resolution)
        call.approval_settled.set()

    def _emit_resolved(self, call: ToolExecution, approval: Approval, resolution: Resolution) -> None:
        decision = resolution.decision
        message = decision.message if isinstance(decision, Deny | DenyAndStop) else ""
        word = decision.type if decision is not None else "withdrawn"
        changed = None if is_same_json(resolution.input, call.use.input) else resolution.input
        self._batch.emit(
            ApprovalResolved(
                approval.approval_id, call.use.id, word, resolution.by, changed, message, resolution.digest
            )
        )

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
        self.on_suspicion_lifted()

    def _on_not_allowed(self, call: ToolExecution, resolution: Resolution) -> None:
        decision = resolution.decision
        if isinstance(decision, Deny | DenyAndStop):
            text = denial_text(decision.message, by_person=resolution.by == "person")
            self._batch.answer(call, Outcome.DENIED, text)
            if isinstance(decision, DenyAndStop):
                self._batch.stop()
        elif not self._batch.is_closed:
            self._batch.answer(call, Outcome.CANCELLED, _WITHDRAWN)


def needs_approval(call: ToolExecution, verdict: Verdict | None) -> bool:
    """Return whether nobody has allowed exactly what would run."""
    if not isinstance(verdict, Ask) or call.approval is not None or call.tool is None:
        return False
    return call.person_permit is None or call.person_permit.digest != verdict.digest


# After so many calls the event loop runs other tasks.
_YIELD_EVERY = 50


class Reevaluation:
    """Re-evaluates the calls of one batch when rules or mode change."""

    def __init__(self, batch: BatchContext, gate: ToolGate, approvals: ApprovalFlow) -> None:
        self._batch = batch
        self._gate = gate
        self._approvals = approvals
        self._tasks: set[asyncio.Task[None]] = set()

    def policy_changed(self) -> None:
        """Re-evaluate whatever has not started: rules or mode have changed."""
        self._batch.version += 1
        self._spawn(self._reevaluate_all(self._batch.version))

    def cancel(self) -> None:
        """Stop all re-evaluation."""
        for task in self._tasks:
            task.cancel()

    async def _reevaluate_all(self, version: int) -> None:
        for position, call in enumerate(self._batch.calls, start=1):
            if self._is_outdated(version):
                return
            if position % _YIELD_EVERY == 0:
                await asyncio.sleep(0)
            if not self._can_reevaluate(call):
                continue
            if call.tool is not None and call.tool.subjects is not None:
                # Its tool may take time to name the call's subjects; the others do not wait for that.
                self._spawn(self._reevaluate(call, version))
            else:
                await self._reevaluate(call, version)

    async def _reevaluate(self, call: ToolExecution, version: int) -> None:
        verdict = await self._gate.evaluate(call)
        if self._is_outdated(version) or not self._can_reevaluate(call):
            return
        broker, approval = self._batch.context.approvals, call.approval
        if approval is not None:
            approval.tool = call.tool or approval.tool
            if isinstance(verdict, Allowed):
                broker.resolve_by_rule(approval.approval_id, allow=True)
            elif isinstance(verdict, Denied):
                broker.resolve_by_rule(approval.approval_id, allow=False, why=str(verdict.sentence))
        elif isinstance(verdict, Denied):
            self._batch.answer(call, verdict.outcome, str(verdict.sentence))
        elif needs_approval(call, verdict):
            await self._approvals.request(call)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._batch.spawn(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _is_outdated(self, version: int) -> bool:
        """Return whether Stop, or a later change that re-evaluates everything itself, came meanwhile."""
        return version != self._batch.version or self._batch.is_closed

    def _can_reevaluate(self, call: ToolExecution) -> bool:
        """Return whether the call is past its gates and its own start does not check the rules anyway."""
        return call.status in {CallStatus.PENDING, CallStatus.PREPARING_APPROVAL} and not call.is_stopped
