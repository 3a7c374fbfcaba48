"""Which calls run at once: neighbours that read together, neighbours that hand work on together, all others alone."""

import asyncio
from collections.abc import Generator, Iterable, Sequence
from itertools import islice, takewhile

from desktop_agent.agent.calls.call import Call, Kind
from desktop_agent.agent.calls.judging.asking import Asking
from desktop_agent.agent.calls.running.execution import Execution
from desktop_agent.agent.calls.scope import Scope


def batches(calls: Iterable[Call]) -> Generator[Sequence[Call]]:
    """In call order; a batch begins when all before it have ended, and is of those that are neighbours by then."""
    waiting, at = list(calls), 0
    while at < len(waiting):
        kind = waiting[at].kind
        end = at + 1
        if kind is not Kind.MUTATING:
            end += sum(1 for _ in takewhile(lambda call, kind=kind: call.kind is kind, islice(waiting, end, None)))
        yield waiting[at:end]
        at = end


class Schedule:
    """Works through the calls of one round."""

    def __init__(self, scope: Scope, asking: Asking, execution: Execution) -> None:
        self._scope = scope
        self._asking = asking
        self._execution = execution
        self._begun: Sequence[Call] = ()
        self._begun_at = 0
        self._put_off: list[Call] = []

    async def run(self) -> None:
        """Until every call has its result, or the round is stopped."""
        await self._in_order([call for call in self._scope.calls if call.is_open])

    async def _in_order(self, calls: Sequence[Call]) -> None:
        for batch in batches(calls):
            await self._together(batch)
            if self._put_off:
                put_off, self._put_off = sorted(self._put_off, key=batch.index), []
                await self._in_order(put_off)

    async def _together(self, batch: Sequence[Call]) -> None:
        self._begun, self._begun_at = batch, self._scope.version
        tasks = [self._begin(call) for call in batch if call.is_open and not self._scope.is_closed]
        if tasks:
            await asyncio.wait(tasks)

    def _begin(self, call: Call) -> asyncio.Task[None]:
        call.begun_as = call.kind
        call.doing = self._scope.spawn(self._answer(call))
        return call.doing

    def _must_wait(self, call: Call) -> bool:
        """Whether it, or one before it that has not ended, is of another kind by now and runs alone."""
        if call.is_out_of_place:
            return True
        if not self._put_off and self._begun_at == self._scope.version:
            return False
        before = takewhile(lambda each: each is not call, self._begun)
        return any(each.is_out_of_place and each.is_open for each in before)

    def _is_of_specialist(self, call: Call) -> bool:
        return any(each.name == call.use.name for each in self._scope.around.specialists)

    async def _answer(self, call: Call) -> None:
        """Wait for the person without a slot, then for a slot, then run; or put it off until the others have ended."""
        slots = self._scope.delegates if call.kind is Kind.DELEGATING else self._scope.around.slots
        while call.is_open and not self._scope.is_closed:
            if not call.answered.is_set():
                await call.answered.wait()
                continue
            if call.tool is None:
                return
            if self._must_wait(call):
                self._put_off.append(call)
                return
            async with slots.taken(call.tool, pooled=call.begun_as is not Kind.MUTATING):
                if not call.answered.is_set() or self._must_wait(call):
                    continue
                clock = self._scope.clock
                with clock.handing_on() if self._is_of_specialist(call) else clock.working():
                    is_done = await self._execution.run(call)
            if is_done:
                return
            await self._asking.ask(call)
