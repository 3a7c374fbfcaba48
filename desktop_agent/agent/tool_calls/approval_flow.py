"""Approvals of tool calls: requested together, resolved, withdrawn by Stop, and re-evaluated when rules or mode
change.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from desktop_agent.agent.tool_calls.tool_execution import BatchContext, ToolExecution
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
    """The approvals of one round."""

    def __init__(self, scope: BatchContext) -> None:
        self._scope = scope
        # Set by whoever judges again.
        self.on_suspicion_lifted: Callable[[], None] = lambda: None

    async def prepare(self, call: ToolExecution) -> None:
        """Get ready what the person will be shown."""
        if call.tool is not None:
            scope = self._scope
            call.preview = await build_preview(call, call.tool, scope.supervisor)
            call.proposals = await propose_rules(call, call.tool, scope.supervisor, scope.context.permission_policy)

    def request_all(self, calls: Iterable[ToolExecution]) -> None:
        """Ask about those that need it and are prepared, in call order."""
        for call in calls:
            if call.is_open and not self._scope.is_closed and needs_approval(call, call.verdict):
                self._request(call)

    async def request(self, call: ToolExecution) -> None:
        """Ask about one that nobody had to be asked about before."""
        if call.is_preparing_approval:
            return
        call.is_preparing_approval = True
        call.approval_settled.clear()
        try:
            await self.prepare(call)
        finally:
            call.is_preparing_approval = False
            call.approval_settled.set()
        if call.is_open and not self._scope.is_closed:
            self._request(call)

    def withdraw(self, call: ToolExecution) -> None:
        """Take its question back; a decision that was made and not yet heard of counts all the same."""
        approval = call.approval
        if approval is None:
            return
        broker = self._scope.context.approvals
        broker.withdraw(approval.approval_id)
        if call.approval_task is not None:
            call.approval_task.cancel()
        # It has ended one way or the other; asking once more changes nothing and tells how.
        stands = broker.resolve_by_rule(approval.approval_id, allow=False).stands
        if stands is not None:
            self._on_resolved(call, approval, stands)

    def _request(self, call: ToolExecution) -> None:
        tool, verdict = call.tool, call.verdict
        if tool is None or not isinstance(verdict, Ask):
            return
        if call.repeat_count and call.recovered_request is None:
            self._scope.emit(DoomLoopSuspected(call.use.id, call.repeat_count))
        reopened = self._reopen_approval(call, tool, verdict)
        approval = reopened or self._open_approval(call, tool, verdict)
        call.recovered_request = None
        call.approval = approval
        call.approval_settled.clear()
        self._scope.clock.begin_waiting()
        if reopened is None:
            path, digest = self._scope.context.agent_path, approval.digest
            self._scope.emit(
                ApprovalRequested(approval.approval_id, call.use.id, digest, path, verdict.reason, call.effective_input)
            )
        call.approval_task = self._scope.spawn(self._await_resolution(call, approval))

    def _reopen_approval(self, call: ToolExecution, tool: AnyTool, verdict: Ask) -> Approval | None:
        """The card from before the program died, which is still there."""
        if call.recovered_request is None:
            return None
        try:
            return self._open_approval(call, tool, verdict, call.recovered_request.approval_id)
        except WrongUse:
            return None

    def _open_approval(
        self, call: ToolExecution, tool: AnyTool, verdict: Ask, approval_id: str | None = None
    ) -> Approval:
        return self._scope.context.approvals.open(
            call.use,
            tool,
            call.preview,
            arguments=call.effective_input,
            verdict=verdict,
            proposals=call.proposals,
            agent_path=self._scope.context.agent_path,
            approval_id=approval_id,
        )

    async def _await_resolution(self, call: ToolExecution, approval: Approval) -> None:
        resolution = await approval.resolution()
        if call.approval is approval:
            self._on_resolved(call, approval, resolution)

    def _on_resolved(self, call: ToolExecution, approval: Approval, resolution: Resolution) -> None:
        """Tell it, and do what it means. Everything in one go: nothing can start in between."""
        call.approval = None
        self._scope.clock.end_waiting()
        self._emit_resolved(call, approval, resolution)
        if resolution.rule is not None:
            self._scope.context.permission_policy.add(resolution.rule)
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
        self._scope.emit(
            ApprovalResolved(
                approval.approval_id, call.use.id, word, resolution.by, changed, message, resolution.digest
            )
        )

    def _on_allowed(self, call: ToolExecution, resolution: Resolution) -> None:
        if resolution.by != "person":
            # What the rules say is looked at again before the start.
            return
        call.person_permit = resolution.verdict
        call.is_edited = resolution.edited and not is_same_json(resolution.input, call.input)
        call.set_arguments(resolution.input, resolution.digest)
        decision = resolution.decision
        call.is_bound_to_preview = isinstance(decision, AllowOnce) and not resolution.edited
        if call.repeated_use is not None and isinstance(decision, AllowForConversation | AllowAlways):
            self._clear_suspicion(call.repeated_use)

    def _clear_suspicion(self, loop: ToolUse) -> None:
        """Who allows it from now on has seen that it goes round in circles."""
        for other in self._scope.calls:
            if other.repeated_use is not None and is_same_call(other.repeated_use, loop):
                other.repeat_count = 0
        self.on_suspicion_lifted()

    def _on_not_allowed(self, call: ToolExecution, resolution: Resolution) -> None:
        decision = resolution.decision
        if isinstance(decision, Deny | DenyAndStop):
            words = denial_text(decision.message, by_person=resolution.by == "person")
            self._scope.answer(call, Outcome.DENIED, words)
            if isinstance(decision, DenyAndStop):
                self._scope.stop()
        elif not self._scope.is_closed:
            self._scope.answer(call, Outcome.CANCELLED, _WITHDRAWN)


def needs_approval(call: ToolExecution, verdict: Verdict | None) -> bool:
    """Whether nobody has allowed exactly what would run."""
    if not isinstance(verdict, Ask) or call.approval is not None or call.tool is None:
        return False
    return call.person_permit is None or call.person_permit.digest != verdict.digest


# So many calls are judged again before others have their turn on the event loop.
_YIELD_EVERY = 50


class Reevaluation:
    """Judges the calls of one round again."""

    def __init__(self, scope: BatchContext, gates: ToolGate, asking: ApprovalFlow) -> None:
        self._scope = scope
        self._gates = gates
        self._asking = asking
        self._tasks: set[asyncio.Task[None]] = set()

    def policy_changed(self) -> None:
        """Rules or mode are others now: whatever has not started is judged again."""
        self._scope.version += 1
        self._spawn(self._reevaluate_all(self._scope.version))

    def cancel(self) -> None:
        """Nothing is judged again."""
        for task in self._tasks:
            task.cancel()

    async def _reevaluate_all(self, version: int) -> None:
        for position, call in enumerate(self._scope.calls, start=1):
            if self._is_outdated(version):
                return
            if position % _YIELD_EVERY == 0:
                await asyncio.sleep(0)
            if not self._can_reevaluate(call):
                continue
            if call.tool is not None and call.tool.subjects is not None:
                # Its tool may take its time to say what the call is about; the others do not wait for that.
                self._spawn(self._reevaluate(call, version))
            else:
                await self._reevaluate(call, version)

    async def _reevaluate(self, call: ToolExecution, version: int) -> None:
        verdict = await self._gates.evaluate(call)
        if self._is_outdated(version) or not self._can_reevaluate(call):
            return
        broker, approval = self._scope.context.approvals, call.approval
        if approval is not None:
            approval.tool = call.tool or approval.tool
            if isinstance(verdict, Allowed):
                broker.resolve_by_rule(approval.approval_id, allow=True)
            elif isinstance(verdict, Denied):
                broker.resolve_by_rule(approval.approval_id, allow=False, why=str(verdict.sentence))
        elif isinstance(verdict, Denied):
            self._scope.answer(call, verdict.outcome, str(verdict.sentence))
        elif needs_approval(call, verdict):
            await self._asking.request(call)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._scope.spawn(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _is_outdated(self, version: int) -> bool:
        """Whether a later change came, which judges everything by itself; or Stop."""
        return version != self._scope.version or self._scope.is_closed

    def _can_reevaluate(self, call: ToolExecution) -> bool:
        """Not before its gates, nor once its own start looks at what holds now."""
        return call.is_open and call.has_passed_gates and not call.is_starting and not call.is_stopped
