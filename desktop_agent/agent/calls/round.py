"""The calls of one answer, from their gates to their results."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from enum import StrEnum
from time import monotonic
from typing import Any, Literal

from desktop_agent.agent.budget import Budget
from desktop_agent.agent.calls.call import Call
from desktop_agent.agent.calls.judging.again import Again
from desktop_agent.agent.calls.judging.asking import Asking, needs_a_person
from desktop_agent.agent.calls.judging.gates import Gates
from desktop_agent.agent.calls.left_over import LeftOver
from desktop_agent.agent.calls.running.broken_off import words_of_stop
from desktop_agent.agent.calls.running.execution import Execution
from desktop_agent.agent.calls.running.start import Start
from desktop_agent.agent.calls.schedule import Schedule
from desktop_agent.agent.calls.scope import Scope
from desktop_agent.agent.surroundings import Surroundings
from desktop_agent.vocabulary.blocks import Outcome, ToolResult, ToolUse
from desktop_agent.vocabulary.conduct.limits import Limits
from desktop_agent.vocabulary.engine_events import LimitReached, ToolCallPending
from desktop_agent.vocabulary.tool_calls import ToolClass

_NOT_STARTED: dict[Outcome, str] = {
    Outcome.CANCELLED: "The call was cancelled before it was started.",
    Outcome.LIMIT: "The call was not run: a limit was reached.",
}
_LOST = "The program ended while this call was running. Whether it took effect is not known; it is not run again."
_TWICE = "Not run: an earlier call of the same answer has the same id. Call again."
_TOO_MANY = "Not run: at most {most:,} calls of one answer are. Call again with fewer at once."
# So many calls are announced before others have their turn on the event loop.
_AT_ONCE = 100


class RoundEnd(StrEnum):
    """Why the round ended: every call has its result, or it was stopped."""

    ANSWERED = "answered"
    STOPPED = "stopped"


class CallRound:
    """The calls of one answer. `run` works through them; `close` answers what is still open, whatever happened."""

    def __init__(
        self,
        uses: Sequence[ToolUse],
        around: Surroundings,
        budget: Budget,
        limits: Limits,
        left: LeftOver | None = None,
    ) -> None:
        calls = [Call(use, around.tools.get(use.name), use.input) for use in uses]
        self._scope = Scope(calls, around, budget, limits)
        self._scope.stop = self.stop
        self._left = left
        self._calls: dict[str, Call] = {}
        self._asking: Asking | None = None
        for call in calls:
            self._take_up(call)

    @property
    def count(self) -> int:
        """How many calls there are."""
        return len(self._scope.calls)

    async def run(self) -> RoundEnd:
        """Answer every call. Ends soon after a cancel, whatever the tools do."""
        scope = self._scope
        if scope.is_closed:
            return RoundEnd.STOPPED
        scope.begin()
        gates = Gates(scope)
        self._asking = asking = Asking(scope)
        again = Again(scope, gates, asking)
        asking.suspicion_lifted = again.standing_changed
        schedule = Schedule(scope, asking, Execution(scope, Start(scope, gates)))
        scope.around.standing.on_change(again.standing_changed)
        try:
            await self._judge(gates, asking, again)
            await schedule.run()
        except BaseException:
            self.stop()
            raise
        finally:
            scope.around.standing.off_change(again.standing_changed)
            await self._come_to_rest(again)
        if scope.trouble is not None:
            raise scope.trouble
        return RoundEnd.STOPPED if scope.is_closed else RoundEnd.ANSWERED

    def stop(self) -> None:
        """Start nothing more, take back what a person is asked, and signal the tools. Idempotent."""
        if self._scope.is_closed:
            return
        self._scope.is_closed = True
        for call in self._scope.calls:
            _signal(call)
        for call in self._scope.calls:
            self._withdraw(call)

    def stop_call(self, tool_use_id: str) -> bool:
        """End one call as cancelled; the others go on. False: there is none of this id that is open."""
        call = self._calls.get(tool_use_id)
        if call is None or not call.is_open:
            return False
        call.is_stopped = True
        _signal(call)
        self._withdraw(call)
        if call.ended is not None:
            self._scope.finish(call, call.ended, _seconds(call))
        elif not call.is_running and not call.is_settling:
            self._scope.answer(call, Outcome.CANCELLED, words_of_stop(call))
        return True

    def close(self, outcome: Literal[Outcome.CANCELLED, Outcome.LIMIT]) -> list[ToolResult]:
        """All results in call order; calls without one get `outcome`. Nothing starts or is told after this."""
        self.stop()
        for call in self._scope.calls:
            if call.is_lost:
                self._scope.answer(call, Outcome.UNKNOWN, _LOST)
            elif call.ended is not None:
                self._scope.finish(call, call.ended, _seconds(call))
            elif call.is_open:
                why = _NOT_STARTED[outcome] if call.began_at is None else words_of_stop(call)
                self._scope.answer(call, outcome, why, _seconds(call))
        self._scope.end()
        return [call.result for call in self._scope.calls if call.result is not None]

    def _take_up(self, call: Call) -> None:
        """Results pair with calls by id: a second call of the same id is answered for itself, and not told of."""
        if call.use.id in self._calls:
            call.is_told = False
            self._scope.answer(call, Outcome.FAILED, _TWICE)
            return
        self._calls[call.use.id] = call
        if self._left is not None:
            self._left.note(call)

    def _withdraw(self, call: Call) -> None:
        if self._asking is not None:
            self._asking.withdraw(call)

    async def _judge(self, gates: Gates, asking: Asking, again: Again) -> None:
        scope = self._scope
        await self._announce()
        for call in scope.calls:
            if call.is_open and not scope.is_closed:
                await self._in_tasks([call], gates.enter)
        await self._in_tasks([call for call in scope.calls if needs_a_person(call, call.verdict)], asking.prepare)
        if scope.is_closed:
            return
        asking.open_together(scope.calls)
        for call in scope.calls:
            call.is_gated = True
        if any(call.is_open and call.judged_at != scope.version for call in scope.calls):
            again.standing_changed()

    async def _announce(self) -> None:
        """Every call is told of before the first is judged; of those that never run, also the end."""
        scope, most = self._scope, self._scope.limits.calls_per_turn
        path, left = scope.around.agent_path, self._left
        for position, call in enumerate(self._calls.values(), start=1):
            if call.is_open and (left is None or not left.knows(call)):
                tool_class = call.tool.tool_class if call.tool else ToolClass.MUTATING
                scope.emit(ToolCallPending(call.use.id, call.use.name, call.use.input, tool_class, path))
            if position % _AT_ONCE == 0:
                await asyncio.sleep(0)
        for call in self._calls.values():
            if call.is_lost:
                scope.answer(call, Outcome.UNKNOWN, _LOST)
        await self._leave_out([call for call in scope.calls[most:] if call.is_open])

    async def _leave_out(self, calls: Sequence[Call]) -> None:
        """What is too much for one answer."""
        if not calls or self._scope.is_closed:
            return
        self._scope.emit(LimitReached("calls of one answer"))
        why = _TOO_MANY.format(most=self._scope.limits.calls_per_turn)
        for position, call in enumerate(calls, start=1):
            self._scope.answer(call, Outcome.LIMIT, why)
            if position % _AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _in_tasks(self, calls: Sequence[Call], work: Callable[[Call], Coroutine[Any, Any, None]]) -> None:
        """Each in a task of its own, so that one call can be stopped and the round goes on."""
        with self._scope.clock.working():
            for call in calls:
                is_wanted = call.is_open and not self._scope.is_closed
                call.doing = self._scope.spawn(work(call)) if is_wanted else None
            tasks = [call.doing for call in calls if call.doing is not None]
            if tasks:
                await asyncio.wait(tasks)

    async def _come_to_rest(self, again: Again) -> None:
        """Leave no task behind but those of tools that had their grace."""
        scope, clock = self._scope, asyncio.get_running_loop().time
        end = clock() + scope.grace
        again.end()
        while (tasks := scope.tasks | scope.fence.inside) and (left := end - clock()) > 0:
            try:
                await asyncio.wait(tasks, timeout=left)
            except asyncio.CancelledError:
                # Once more: the run that was cancelled ends as such all the same, and within the grace.
                self.stop()


def _seconds(call: Call) -> float:
    return 0.0 if call.began_at is None else monotonic() - call.began_at


def _signal(call: Call) -> None:
    """Whatever is done for the call just now is to end."""
    if call.is_running:
        call.halt()
    elif call.doing is not None and call.doing is not asyncio.current_task():
        call.doing.cancel()
