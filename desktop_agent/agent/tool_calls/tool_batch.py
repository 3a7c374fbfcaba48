"""The tool calls of one answer, from their gates to their results: announced, evaluated, scheduled, closed."""

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from enum import StrEnum
from itertools import islice, takewhile
from time import monotonic
from typing import Any, Literal

from desktop_agent.agent.run_context import Budget, RunContext
from desktop_agent.agent.tool_calls.approval_flow import ApprovalFlow, Reevaluation, needs_approval
from desktop_agent.agent.tool_calls.tool_execution import (
    BatchContext,
    CallKind,
    RecoveredCalls,
    ToolExecution,
    stop_text,
)
from desktop_agent.agent.tool_calls.tool_gate import ToolGate
from desktop_agent.agent.tool_calls.tool_runner import PreflightCheck, ToolRunner
from desktop_agent.types.blocks import Outcome, ToolResult, ToolUse
from desktop_agent.types.engine_events import LimitReached, ToolCallPending
from desktop_agent.types.policies import Limits
from desktop_agent.types.tool_calls import ToolClass


def parallel_groups(calls: Iterable[ToolExecution]) -> Generator[Sequence[ToolExecution]]:
    """In call order; a batch begins when all before it have ended, and is of those that are neighbours by then."""
    waiting, at = list(calls), 0
    while at < len(waiting):
        kind = waiting[at].kind
        end = at + 1
        if kind is not CallKind.MUTATING:
            end += sum(1 for _ in takewhile(lambda call, kind=kind: call.kind is kind, islice(waiting, end, None)))
        yield waiting[at:end]
        at = end


class ToolScheduler:
    """Works through the calls of one round."""

    def __init__(self, scope: BatchContext, asking: ApprovalFlow, execution: ToolRunner) -> None:
        self._scope = scope
        self._approvals = asking
        self._runner = execution
        self._group: Sequence[ToolExecution] = ()
        self._group_version = 0
        self._deferred: list[ToolExecution] = []

    async def run(self) -> None:
        """Until every call has its result, or the round is stopped."""
        await self._run_in_order([call for call in self._scope.calls if call.is_open])

    async def _run_in_order(self, calls: Sequence[ToolExecution]) -> None:
        for batch in parallel_groups(calls):
            await self._run_group(batch)
            if self._deferred:
                put_off, self._deferred = sorted(self._deferred, key=batch.index), []
                await self._run_in_order(put_off)

    async def _run_group(self, batch: Sequence[ToolExecution]) -> None:
        self._group, self._group_version = batch, self._scope.version
        tasks = [self._start(call) for call in batch if call.is_open and not self._scope.is_closed]
        if tasks:
            await asyncio.wait(tasks)

    def _start(self, call: ToolExecution) -> asyncio.Task[None]:
        call.started_as = call.kind
        call.task = self._scope.spawn(self._run_call(call))
        return call.task

    def _must_wait(self, call: ToolExecution) -> bool:
        """Whether it, or one before it that has not ended, is of another kind by now and runs alone."""
        if call.must_run_alone:
            return True
        if not self._deferred and self._group_version == self._scope.version:
            return False
        before = takewhile(lambda each: each is not call, self._group)
        return any(each.must_run_alone and each.is_open for each in before)

    def _is_delegation(self, call: ToolExecution) -> bool:
        return any(each.name == call.use.name for each in self._scope.context.specialists)

    async def _run_call(self, call: ToolExecution) -> None:
        """Wait for the person without a slot, then for a slot, then run; or put it off until the others have ended."""
        slots = self._scope.delegate_slots if call.kind is CallKind.DELEGATING else self._scope.context.slots
        while call.is_open and not self._scope.is_closed:
            if not call.approval_settled.is_set():
                await call.approval_settled.wait()
                continue
            if call.tool is None:
                return
            if self._must_wait(call):
                self._deferred.append(call)
                return
            async with slots.acquire(call.tool, pooled=call.started_as is not CallKind.MUTATING):
                if not call.approval_settled.is_set() or self._must_wait(call):
                    continue
                clock = self._scope.clock
                with clock.delegating() if self._is_delegation(call) else clock.working():
                    is_done = await self._runner.run(call)
            if is_done:
                return
            await self._approvals.request(call)


_NOT_STARTED: dict[Outcome, str] = {
    Outcome.CANCELLED: "The call was cancelled before it was started.",
    Outcome.LIMIT: "The call was not run: a limit was reached.",
}
_LOST = "The program ended while this call was running. Whether it took effect is not known; it is not run again."
_DUPLICATE_ID = "Not run: an earlier call of the same answer has the same id. Call again."
_TOO_MANY = "Not run: at most {most:,} calls of one answer are. Call again with fewer at once."
# So many calls are announced before others have their turn on the event loop.
_YIELD_EVERY = 100


class BatchEnd(StrEnum):
    """Why the round ended: every call has its result, or it was stopped."""

    ANSWERED = "answered"
    STOPPED = "stopped"


class ToolBatch:
    """The calls of one answer. `run` works through them; `close` answers what is still open, whatever happened."""

    def __init__(
        self,
        uses: Sequence[ToolUse],
        context: RunContext,
        budget: Budget,
        limits: Limits,
        left: RecoveredCalls | None = None,
    ) -> None:
        calls = [ToolExecution(use, context.tools.get(use.name), use.input) for use in uses]
        self._scope = BatchContext(calls, context, budget, limits)
        self._scope.stop = self.stop
        self._recovered = left
        self._calls: dict[str, ToolExecution] = {}
        self._approvals: ApprovalFlow | None = None
        for call in calls:
            self._register(call)

    @property
    def count(self) -> int:
        """How many calls there are."""
        return len(self._scope.calls)

    async def run(self) -> BatchEnd:
        """Answer every call. Ends soon after a cancel, whatever the tools do."""
        scope = self._scope
        if scope.is_closed:
            return BatchEnd.STOPPED
        scope.begin()
        gates = ToolGate(scope)
        self._approvals = asking = ApprovalFlow(scope)
        again = Reevaluation(scope, gates, asking)
        asking.on_suspicion_lifted = again.policy_changed
        schedule = ToolScheduler(scope, asking, ToolRunner(scope, PreflightCheck(scope, gates)))
        scope.context.permission_policy.on_change(again.policy_changed)
        try:
            await self._evaluate(gates, asking, again)
            await schedule.run()
        except BaseException:
            self.stop()
            raise
        finally:
            scope.context.permission_policy.off_change(again.policy_changed)
            await self._wait_for_tasks(again)
        if scope.trouble is not None:
            raise scope.trouble
        return BatchEnd.STOPPED if scope.is_closed else BatchEnd.ANSWERED

    def stop(self) -> None:
        """Start nothing more, take back what a person is asked, and signal the tools. Idempotent."""
        if self._scope.is_closed:
            return
        self._scope.is_closed = True
        for call in self._scope.calls:
            _cancel_work(call)
        for call in self._scope.calls:
            self._withdraw(call)

    def stop_call(self, tool_use_id: str) -> bool:
        """End one call as cancelled; the others go on. False: there is none of this id that is open."""
        call = self._calls.get(tool_use_id)
        if call is None or not call.is_open:
            return False
        call.is_stopped = True
        _cancel_work(call)
        self._withdraw(call)
        if call.fallback_result is not None:
            self._scope.finish(call, call.fallback_result, _elapsed(call))
        elif not call.is_running and not call.is_finishing:
            self._scope.answer(call, Outcome.CANCELLED, stop_text(call))
        return True

    def close(self, outcome: Literal[Outcome.CANCELLED, Outcome.LIMIT]) -> list[ToolResult]:
        """All results in call order; calls without one get `outcome`. Nothing starts or is told after this."""
        self.stop()
        for call in self._scope.calls:
            if call.is_lost:
                self._scope.answer(call, Outcome.UNKNOWN, _LOST)
            elif call.fallback_result is not None:
                self._scope.finish(call, call.fallback_result, _elapsed(call))
            elif call.is_open:
                why = _NOT_STARTED[outcome] if call.started_at is None else stop_text(call)
                self._scope.answer(call, outcome, why, _elapsed(call))
        self._scope.end()
        return [call.result for call in self._scope.calls if call.result is not None]

    def _register(self, call: ToolExecution) -> None:
        """Results pair with calls by id: a second call of the same id is answered for itself, and not told of."""
        if call.use.id in self._calls:
            call.is_reported = False
            self._scope.answer(call, Outcome.FAILED, _DUPLICATE_ID)
            return
        self._calls[call.use.id] = call
        if self._recovered is not None:
            self._recovered.apply_to(call)

    def _withdraw(self, call: ToolExecution) -> None:
        if self._approvals is not None:
            self._approvals.withdraw(call)

    async def _evaluate(self, gates: ToolGate, asking: ApprovalFlow, again: Reevaluation) -> None:
        scope = self._scope
        await self._announce()
        for call in scope.calls:
            if call.is_open and not scope.is_closed:
                await self._run_in_tasks([call], gates.pass_through)
        await self._run_in_tasks([call for call in scope.calls if needs_approval(call, call.verdict)], asking.prepare)
        if scope.is_closed:
            return
        asking.request_all(scope.calls)
        for call in scope.calls:
            call.has_passed_gates = True
        if any(call.is_open and call.evaluated_version != scope.version for call in scope.calls):
            again.policy_changed()

    async def _announce(self) -> None:
        """Every call is told of before the first is judged; of those that never run, also the end."""
        scope, most = self._scope, self._scope.limits.calls_per_turn
        path, left = scope.context.agent_path, self._recovered
        for position, call in enumerate(self._calls.values(), start=1):
            if call.is_open and (left is None or not left.has_record_of(call)):
                tool_class = call.tool.tool_class if call.tool else ToolClass.MUTATING
                scope.emit(ToolCallPending(call.use.id, call.use.name, call.use.input, tool_class, path))
            if position % _YIELD_EVERY == 0:
                await asyncio.sleep(0)
        for call in self._calls.values():
            if call.is_lost:
                scope.answer(call, Outcome.UNKNOWN, _LOST)
        await self._reject_excess([call for call in scope.calls[most:] if call.is_open])

    async def _reject_excess(self, calls: Sequence[ToolExecution]) -> None:
        """What is too much for one answer."""
        if not calls or self._scope.is_closed:
            return
        self._scope.emit(LimitReached("calls of one answer"))
        why = _TOO_MANY.format(most=self._scope.limits.calls_per_turn)
        for position, call in enumerate(calls, start=1):
            self._scope.answer(call, Outcome.LIMIT, why)
            if position % _YIELD_EVERY == 0:
                await asyncio.sleep(0)

    async def _run_in_tasks(
        self, calls: Sequence[ToolExecution], work: Callable[[ToolExecution], Coroutine[Any, Any, None]]
    ) -> None:
        """Each in a task of its own, so that one call can be stopped and the round goes on."""
        with self._scope.clock.working():
            for call in calls:
                is_wanted = call.is_open and not self._scope.is_closed
                call.task = self._scope.spawn(work(call)) if is_wanted else None
            tasks = [call.task for call in calls if call.task is not None]
            if tasks:
                await asyncio.wait(tasks)

    async def _wait_for_tasks(self, again: Reevaluation) -> None:
        """Leave no task behind but those of tools that had their grace."""
        scope, clock = self._scope, asyncio.get_running_loop().time
        end = clock() + scope.grace
        again.cancel()
        while (tasks := scope.tasks | scope.supervisor.unfinished) and (left := end - clock()) > 0:
            try:
                await asyncio.wait(tasks, timeout=left)
            except asyncio.CancelledError:
                # Once more: the run that was cancelled ends as such all the same, and within the grace.
                self.stop()


def _elapsed(call: ToolExecution) -> float:
    return 0.0 if call.started_at is None else monotonic() - call.started_at


def _cancel_work(call: ToolExecution) -> None:
    """Whatever is done for the call just now is to end."""
    if call.is_running:
        call.cancel_tool()
    elif call.task is not None and call.task is not asyncio.current_task():
        call.task.cancel()
