"""The tool calls of one answer, from their gates to their results: announced, evaluated, scheduled, closed."""

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from itertools import islice, takewhile
from typing import Any, Literal

from desktop_agent.agent.model_request import RunSettings
from desktop_agent.agent.run_context import Budget, RunContext
from desktop_agent.agent.tool_calls.tool_execution import (
    LIMIT_REACHED,
    OUTCOME_UNKNOWN,
    BatchContext,
    CallKind,
    CallStatus,
    RecoveredCalls,
    ToolExecution,
    acquire_slots,
    stop_text,
)
from desktop_agent.agent.tool_calls.tool_gate import ApprovalFlow, ToolGate, needs_approval
from desktop_agent.agent.tool_calls.tool_runner import ToolRunner
from desktop_agent.types.blocks import Outcome, ToolResult, ToolUse
from desktop_agent.types.engine_events import LimitReached, ToolCallPending
from desktop_agent.types.errors import Sentence
from desktop_agent.types.tool_calls import ToolClass


def parallel_groups(calls: Iterable[ToolExecution]) -> Generator[Sequence[ToolExecution]]:
    """Yield groups of neighbouring calls of one kind, in call order; the kinds are read when a group begins."""
    remaining, start = list(calls), 0
    while start < len(remaining):
        kind = remaining[start].kind
        end = start + 1
        if kind is not CallKind.MUTATING:
            end += sum(1 for _ in takewhile(lambda call, kind=kind: call.kind is kind, islice(remaining, end, None)))
        yield remaining[start:end]
        start = end


class ToolScheduler:
    """Works through the calls of one batch."""

    def __init__(self, batch: BatchContext, approvals: ApprovalFlow, runner: ToolRunner) -> None:
        self._batch = batch
        self._approvals = approvals
        self._runner = runner
        self._group: Sequence[ToolExecution] = ()
        self._group_version = 0
        self._deferred: list[ToolExecution] = []

    async def run(self) -> None:
        """Return when every call has its result, or the batch is stopped."""
        await self._run_in_order([call for call in self._batch.calls if call.is_open])

    async def _run_in_order(self, calls: Sequence[ToolExecution]) -> None:
        for group in parallel_groups(calls):
            await self._run_group(group)
            if self._deferred:
                deferred, self._deferred = sorted(self._deferred, key=group.index), []
                await self._run_in_order(deferred)

    async def _run_group(self, group: Sequence[ToolExecution]) -> None:
        self._group, self._group_version = group, self._batch.version
        tasks = [self._start(call) for call in group if call.is_open and not self._batch.is_closed]
        if tasks:
            await asyncio.wait(tasks)

    def _start(self, call: ToolExecution) -> asyncio.Task[None]:
        call.started_as = call.kind
        call.task = self._batch.spawn(self._run_call(call))
        return call.task

    def _must_wait(self, call: ToolExecution) -> bool:
        """Return whether this call, or an open one before it, has changed its kind and must now run alone."""
        if call.must_run_alone:
            return True
        if not self._deferred and self._group_version == self._batch.version:
            return False
        before = takewhile(lambda other: other is not call, self._group)
        return any(other.must_run_alone and other.is_open for other in before)

    def _is_delegation(self, call: ToolExecution) -> bool:
        return any(specialist.name == call.use.name for specialist in self._batch.context.specialists)

    async def _run_call(self, call: ToolExecution) -> None:
        """Wait for the person without a slot, then for a slot, then run; or defer it until the others have ended."""
        slots = self._batch.delegate_slots if call.kind is CallKind.DELEGATING else self._batch.context.slots
        while call.is_open and not self._batch.is_closed:
            if not call.approval_resolved.is_set():
                await call.approval_resolved.wait()
                continue
            if call.tool is None:
                return
            if self._must_wait(call):
                self._deferred.append(call)
                return
            async with acquire_slots(slots, call.tool, pooled=call.started_as is not CallKind.MUTATING):
                if not call.approval_resolved.is_set() or self._must_wait(call):
                    continue
                clock = self._batch.clock
                with clock.delegating() if self._is_delegation(call) else clock.working():
                    await self._runner.run(call)
            if call.status is not CallStatus.PENDING:
                return
            await self._approvals.request(call)


_NOT_STARTED: dict[Outcome, str] = {
    Outcome.CANCELLED: "The call was cancelled before it was started.",
    Outcome.LIMIT: LIMIT_REACHED,
}
_DUPLICATE_ID = "Not run: an earlier call of the same answer has the same id. Call again."
_TOO_MANY = "Not run: at most {most:,} calls of one answer are run. Call again with fewer at once."
# After so many announcements the event loop runs other tasks.
_YIELD_EVERY = 100


class ToolBatch:
    """The calls of one answer. `run` works through them; `close` answers what is still open, whatever happened."""

    def __init__(
        self,
        uses: Sequence[ToolUse],
        context: RunContext,
        budget: Budget,
        settings: RunSettings,
        recovered: RecoveredCalls | None = None,
    ) -> None:
        calls = [ToolExecution(use, context.tools.get(use.name), use.input) for use in uses]
        self._batch = BatchContext(calls, context, budget, settings)
        self._batch.stop = self.stop
        self._recovered = recovered
        self._calls: dict[str, ToolExecution] = {}
        self._approvals: ApprovalFlow | None = None
        self._is_finding_tools = False
        for call in calls:
            self._register(call)

    @property
    def count(self) -> int:
        return len(self._batch.calls)

    @property
    def only_waits(self) -> bool:
        """Return whether a call waits for the person, and no other one is at its gates or at work."""
        calls = [call for call in self._batch.calls if call.is_open]
        is_waiting = any(not call.approval_resolved.is_set() for call in calls)
        return self._is_finding_tools or (is_waiting and all(call.status is CallStatus.PENDING for call in calls))

    async def find_tools(self) -> None:
        """Find the tools that calls of a dead process lack: MCP servers may not have been started yet."""
        lacking = [call for call in self._batch.calls if call.tool is None and call.status is CallStatus.GATING]
        if not lacking:
            return
        self._is_finding_tools = True
        try:
            await self._batch.context.tools_ready()
        finally:
            self._is_finding_tools = False
        for call in lacking:
            call.tool = self._batch.context.tools.get(call.use.name)

    async def run(self) -> bool:
        """Answer every call; return whether all were, as it was not stopped. Ends soon after a cancel in any case."""
        batch = self._batch
        if batch.is_closed:
            return False
        batch.begin()
        gate = ToolGate(batch)
        self._approvals = approvals = ApprovalFlow(batch, gate)
        scheduler = ToolScheduler(batch, approvals, ToolRunner(batch, gate))
        try:
            with batch.context.permission_policy.watched(approvals.policy_changed):
                await self._evaluate(gate, approvals)
                await scheduler.run()
        except BaseException:
            self.stop()
            raise
        finally:
            await self._wait_for_tasks(approvals)
        if batch.trouble is not None:
            raise batch.trouble
        return not batch.is_closed

    def stop(self) -> None:
        """Start nothing more, withdraw approvals, and signal the tools. Idempotent."""
        if self._batch.is_closed:
            return
        self._batch.is_closed = True
        for call in self._batch.calls:
            _cancel_work(call)
        for call in self._batch.calls:
            self._withdraw(call)

    def stop_call(self, tool_use_id: str) -> bool:
        """End one call as cancelled; the others go on. Return False where no open call has this id."""
        call = self._calls.get(tool_use_id)
        if call is None or not call.is_open:
            return False
        if call.has_begun:
            call.advance(CallStatus.STOPPING)
        _cancel_work(call)
        self._withdraw(call)
        if call.fallback_result is not None:
            self._batch.finish(call, call.fallback_result)
        elif not call.has_begun:
            self._batch.answer(call, Outcome.CANCELLED, stop_text(call))
        return True

    def close(self, outcome: Literal[Outcome.CANCELLED, Outcome.LIMIT]) -> list[ToolResult]:
        """Return all results in call order; calls without one get `outcome`. Nothing is emitted after this."""
        self.stop()
        for call in self._batch.calls:
            if call.status is CallStatus.LOST:
                self._batch.answer(call, Outcome.UNKNOWN, OUTCOME_UNKNOWN)
            elif call.fallback_result is not None:
                self._batch.finish(call, call.fallback_result)
            elif call.is_open:
                why = _NOT_STARTED[outcome] if call.started_at is None else stop_text(call)
                self._batch.answer(call, outcome, why)
        self._batch.end()
        return [call.result for call in self._batch.calls if call.result is not None]

    def _register(self, call: ToolExecution) -> None:
        """Register a call by its id. A second call of the same id fails at once, without events: results pair by id."""
        if call.use.id in self._calls:
            call.is_reported = False
            self._batch.answer(call, Outcome.FAILED, _DUPLICATE_ID)
            return
        self._calls[call.use.id] = call
        if self._recovered is not None:
            self._recovered.apply_to(call)

    def _withdraw(self, call: ToolExecution) -> None:
        if self._approvals is not None:
            self._approvals.withdraw(call)

    async def _evaluate(self, gate: ToolGate, approvals: ApprovalFlow) -> None:
        batch = self._batch
        await self._announce()
        for call in batch.calls:
            if call.is_open and not batch.is_closed:
                await self._run_in_tasks([call], gate.pass_through)
        await self._run_in_tasks(
            [call for call in batch.calls if needs_approval(call, call.verdict)], approvals.prepare
        )
        if batch.is_closed:
            return
        approvals.request_all(batch.calls)
        for call in batch.calls:
            call.advance(CallStatus.PENDING)
        if any(call.is_open and call.evaluated_version != batch.version for call in batch.calls):
            approvals.policy_changed()

    async def _announce(self) -> None:
        """Announce every call before the first is evaluated; those that never run are answered."""
        batch, limit = self._batch, self._batch.limits.calls_per_turn
        path, recovered = batch.context.agent_path, self._recovered
        for position, call in enumerate(self._calls.values(), start=1):
            if call.is_open and (recovered is None or not recovered.has_record_of(call)):
                tool_class = call.tool.tool_class if call.tool else ToolClass.MUTATING
                batch.emit(ToolCallPending(call.use.id, call.use.name, call.use.input, tool_class, path))
            if position % _YIELD_EVERY == 0:
                await asyncio.sleep(0)
        for call in self._calls.values():
            if call.status is CallStatus.LOST:
                batch.answer(call, Outcome.UNKNOWN, OUTCOME_UNKNOWN)
        await self._reject_excess([call for call in batch.calls[limit:] if call.is_open])

    async def _reject_excess(self, calls: Sequence[ToolExecution]) -> None:
        if not calls or self._batch.is_closed:
            return
        self._batch.emit(LimitReached.of(Sentence("calls of one answer")))
        why = _TOO_MANY.format(most=self._batch.limits.calls_per_turn)
        for position, call in enumerate(calls, start=1):
            self._batch.answer(call, Outcome.LIMIT, why)
            if position % _YIELD_EVERY == 0:
                await asyncio.sleep(0)

    async def _run_in_tasks(
        self, calls: Sequence[ToolExecution], work: Callable[[ToolExecution], Coroutine[Any, Any, None]]
    ) -> None:
        """Run each in a task of its own, so that one call can be stopped and the batch goes on."""
        with self._batch.clock.working():
            for call in calls:
                may_run = call.is_open and not self._batch.is_closed
                call.task = self._batch.spawn(work(call)) if may_run else None
            tasks = [call.task for call in calls if call.task is not None]
            if tasks:
                await asyncio.wait(tasks)

    async def _wait_for_tasks(self, approvals: ApprovalFlow) -> None:
        """Wait, within the grace, for all tasks; only tools that ignored it are left behind."""
        batch, clock = self._batch, asyncio.get_running_loop().time
        end = clock() + batch.grace
        approvals.cancel()
        while (tasks := batch.tasks | batch.supervisor.unfinished) and (remaining := end - clock()) > 0:
            try:
                await asyncio.wait(tasks, timeout=remaining)
            except asyncio.CancelledError:
                # Cancelled again: the run ends as cancelled all the same, and within the grace.
                self.stop()


def _cancel_work(call: ToolExecution) -> None:
    if call.is_running:
        call.cancel_tool()
    elif call.task is not None and call.task is not asyncio.current_task():
        call.task.cancel()
