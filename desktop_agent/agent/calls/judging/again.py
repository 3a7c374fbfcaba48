"""Rules or mode changed: whatever has not started is judged again, at once."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from desktop_agent.agent.calls.call import ToolExecution
from desktop_agent.agent.calls.judging.asking import ApprovalFlow, needs_approval
from desktop_agent.agent.calls.judging.gates import ToolGate
from desktop_agent.agent.calls.scope import BatchContext
from desktop_agent.permissions.gate import Allowed, Denied

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
