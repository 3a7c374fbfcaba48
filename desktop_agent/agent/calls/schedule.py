"""Which calls run at once: neighbours that read together, neighbours that hand work on together, all others alone."""

import asyncio
from collections.abc import Generator, Iterable, Sequence
from itertools import islice, takewhile

from desktop_agent.agent.calls.call import CallKind, ToolExecution
from desktop_agent.agent.calls.judging.asking import ApprovalFlow
from desktop_agent.agent.calls.running.execution import ToolRunner
from desktop_agent.agent.calls.scope import BatchContext


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
