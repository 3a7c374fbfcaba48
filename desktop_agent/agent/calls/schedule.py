"""Which calls run at once: neighbours that read together, neighbours that hand work on together, all others alone."""

import asyncio
from collections.abc import Generator, Iterable, Sequence
from itertools import groupby

from desktop_agent.agent.calls.call import Call, Kind
from desktop_agent.agent.calls.judging.asking import Asking
from desktop_agent.agent.calls.running.execution import Execution
from desktop_agent.agent.calls.scope import Scope
from desktop_agent.tools.tool import AnyTool


def batches(calls: Iterable[Call]) -> Generator[Sequence[Call]]:
    """In call order; a batch begins when all before it have ended."""
    for kind, neighbours in groupby(calls, key=lambda call: call.kind):
        if kind is Kind.MUTATING:
            yield from ([call] for call in neighbours)
        else:
            yield list(neighbours)


class Schedule:
    """Works through the calls of one round."""

    def __init__(self, scope: Scope, asking: Asking, execution: Execution) -> None:
        self._scope = scope
        self._asking = asking
        self._execution = execution

    async def run(self) -> None:
        """Until every call has its result, or the round is stopped."""
        for batch in batches([call for call in self._scope.calls if call.is_open]):
            if self._scope.is_closed:
                return
            tasks = [self._begin(call, call.tool) for call in batch if call.is_open and call.tool is not None]
            if tasks:
                await asyncio.wait(tasks)

    def _begin(self, call: Call, tool: AnyTool) -> asyncio.Task[None]:
        call.doing = self._scope.spawn(self._answer(call, tool))
        return call.doing

    def _is_of_specialist(self, call: Call) -> bool:
        return any(each.name == call.use.name for each in self._scope.around.specialists)

    async def _answer(self, call: Call, tool: AnyTool) -> None:
        """Wait for the person without a slot, then for a slot, then run."""
        slots = self._scope.delegates if call.kind is Kind.DELEGATING else self._scope.around.slots
        while call.is_open and not self._scope.is_closed:
            if not call.answered.is_set():
                await call.answered.wait()
                continue
            async with slots.taken(tool, pooled=call.kind is not Kind.MUTATING):
                if not call.answered.is_set():
                    continue
                clock = self._scope.clock
                with clock.handing_on() if self._is_of_specialist(call) else clock.working():
                    is_done = await self._execution.run(call, tool)
            if is_done:
                return
            await self._asking.ask(call)
