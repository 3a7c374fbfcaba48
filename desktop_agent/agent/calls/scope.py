"""What all parts of one round share: its calls, whom it works with, and how a call gets its result."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from desktop_agent.agent.budget import Budget
from desktop_agent.agent.calls.call import Call
from desktop_agent.agent.calls.fence import Fence
from desktop_agent.agent.calls.results import as_seen, size_of, with_edit_note
from desktop_agent.agent.calls.work_clock import WorkClock
from desktop_agent.agent.conduct.slots import PARALLEL_DELEGATES, Slots
from desktop_agent.agent.surroundings import Surroundings
from desktop_agent.conversation.repair import missing_result
from desktop_agent.permissions.foreign_messages import ShownHistory
from desktop_agent.tools.answers import plain
from desktop_agent.vocabulary.blocks import Outcome, ToolResult
from desktop_agent.vocabulary.conduct.limits import Limits
from desktop_agent.vocabulary.engine_events import CostUpdated, Event, ToolFinished
from desktop_agent.vocabulary.messages import Message
from desktop_agent.vocabulary.usage import Usage

# Tools get this long to end by themselves once they were cancelled, in seconds: less than the run around them has, and
# more than the runs that they may hold have.
_GRACE = 1.9
_LESS_FOR_EACH_LEVEL = 0.25


class Scope:
    """Shared by the parts of one round. `version` counts changes of rules and mode; `is_closed`: nothing starts."""

    def __init__(self, calls: Sequence[Call], around: Surroundings, budget: Budget, limits: Limits) -> None:
        self.calls = calls
        self.around = around
        self.budget = budget
        self.limits = limits
        self.grace = _GRACE - _LESS_FOR_EACH_LEVEL * budget.depth
        self.fence = Fence()
        self.clock = WorkClock(budget)
        # Calls that hand work on are counted for this answer alone: one that is nested must not wait for its parent.
        self.delegates = Slots(PARALLEL_DELEGATES)
        self.version = 0
        self.is_closed = False
        self.trouble: BaseException | None = None
        self.stop: Callable[[], None] = lambda: None
        self.history: tuple[Message, ...] = ()
        self.for_hooks = ShownHistory(())
        self.message_id = ""
        self.tasks: set[asyncio.Task[None]] = set()
        self._is_over = False
        self._exceeded: str | None = None

    def begin(self) -> None:
        """Look at what the calls stand in."""
        self.history = self.around.recorder.history()
        self.for_hooks = ShownHistory(self.history)
        first = self.calls[0].use if self.calls else None
        self.message_id = next(
            (each.id for each in reversed(self.history) if first is not None and first in each.tool_uses), ""
        )
        self._exceeded = self.budget.exceeded

    @property
    def is_used_up(self) -> bool:
        """Whether a limit was reached since the round began, so that nothing more may start."""
        exceeded = self.budget.exceeded_by_use or self.budget.exceeded
        return exceeded is not None and exceeded != self._exceeded

    def emit(self, event: Event) -> None:
        """Tell, until all results are in."""
        if not self._is_over:
            self.around.recorder.emit(event)

    def spend(self, usage: Usage) -> None:
        """Count what a tool had a model use. Nothing of a tool is trusted: what is no usage is passed over."""
        if type(usage) is not Usage:
            return
        self.budget.add_usage(usage)
        if usage.cost is not None and self.budget.cost is not None:
            self.emit(CostUpdated(self.budget.cost))

    def end(self) -> None:
        """All results are in; whatever still comes changes nothing."""
        self._is_over = True

    def finish(self, call: Call, result: ToolResult, seconds: float = 0.0) -> None:
        """The call's result, once."""
        if call.result is not None:
            return
        if call.is_edited and call.began_at is not None:
            result = with_edit_note(result, call.use.input, call.input)
        call.result = result
        self.budget.add_characters(sum(size_of(part) for part in result.content))
        if call.is_told:
            self.emit(ToolFinished(call.use.id, result, seconds, call.changes))

    def answer(self, call: Call, outcome: Outcome, why: str, seconds: float = 0.0) -> None:
        """A result of words alone; some of them may be a tool's own."""
        said = as_seen(plain(why), self.limits.result_characters)
        self.finish(call, missing_result(call.use, outcome, said), seconds)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task of the round's own; a fault in it ends the round."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.trouble = self.trouble or error
            self.stop()
