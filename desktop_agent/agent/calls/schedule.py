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
        self._alone: list[Call] = []

    async def run(self) -> None:
        """Until every call has its result, or the round is stopped."""
        for batch in batches([call for call in self._scope.calls if call.is_open]):
            await self._together(batch)
            while self._alone:
                await self._together([self._alone.pop(0)])

    async def _together(self, batch: Sequence[Call]) -> None:
        tasks = [self._begin(call) for call in batch if call.is_open and not self._scope.is_closed]
        if tasks:
            await asyncio.wait(tasks)

    def _begin(self, call: Call) -> asyncio.Task[None]:
        call.begun_as = call.kind
        call.doing = self._scope.spawn(self._answer(call))
        return call.doing

    def _is_of_specialist(self, call: Call) -> bool:
        return any(each.name == call.use.name for each in self._scope.around.specialists)

    async def _answer(self, call: Call) -> None:
        """Wait for the person without a slot, then for a slot, then run; or put it off, to run alone."""
        slots = self._scope.delegates if call.kind is Kind.DELEGATING else self._scope.around.slots
        while call.is_open and not self._scope.is_closed:
            if not call.answered.is_set():
                await call.answered.wait()
                continue
            if call.tool is None:
                return
            if call.is_out_of_place:
                self._alone.append(call)
                return
            async with slots.taken(call.tool, pooled=call.begun_as is not Kind.MUTATING):
                if not call.answered.is_set():
                    continue
                clock = self._scope.clock
                with clock.handing_on() if self._is_of_specialist(call) else clock.working():
                    is_done = await self._execution.run(call)
            if is_done:
                return
            await self._asking.ask(call)
