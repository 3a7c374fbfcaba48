"""What all parts of one round share: its calls, whom it works with, and how a call gets its result."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from desktop_agent.agent.budget import Budget
from desktop_agent.agent.calls.call import ToolExecution
from desktop_agent.agent.calls.fence import TaskSupervisor
from desktop_agent.agent.calls.results import content_size, visible_text, with_edit_note
from desktop_agent.agent.calls.work_clock import WorkClock
from desktop_agent.agent.conduct.slots import MAX_PARALLEL_DELEGATES, ToolSlots
from desktop_agent.agent.surroundings import RunContext
from desktop_agent.conversation.repair import missing_result
from desktop_agent.permissions.foreign_messages import HistoryCopy
from desktop_agent.tools.answers import plain_text
from desktop_agent.vocabulary.blocks import Outcome, ToolResult
from desktop_agent.vocabulary.conduct.limits import Limits
from desktop_agent.vocabulary.engine_events import CostUpdated, Event, ToolFinished
from desktop_agent.vocabulary.messages import Message
from desktop_agent.vocabulary.usage import Usage

# Tools get this long to end by themselves once they were cancelled, in seconds: less than the run around them has, and
# more than the runs that they may hold have.
_GRACE_SECONDS = 1.9
_LESS_PER_LEVEL = 0.25


class BatchContext:
    """Shared by the parts of one round. `version` counts changes of rules and mode; `is_closed`: nothing starts."""

    def __init__(self, calls: Sequence[ToolExecution], context: RunContext, budget: Budget, limits: Limits) -> None:
        self.calls = calls
        self.context = context
        self.budget = budget
        self.limits = limits
        self.grace = _GRACE_SECONDS - _LESS_PER_LEVEL * budget.depth
        self.supervisor = TaskSupervisor()
        self.clock = WorkClock(budget)
        # Calls that hand work on are counted for this answer alone: one that is nested must not wait for its parent.
        self.delegate_slots = ToolSlots(MAX_PARALLEL_DELEGATES)
        self.version = 0
        self.is_closed = False
        self.trouble: BaseException | None = None
        self.stop: Callable[[], None] = lambda: None
        self.history: tuple[Message, ...] = ()
        self.hook_history = HistoryCopy(())
        self.message_id = ""
        self.tasks: set[asyncio.Task[None]] = set()
        self._is_over = False
        self._exceeded_at_start: str | None = None

    def begin(self) -> None:
        """Look at what the calls stand in."""
        self.history = self.context.recorder.history()
        self.hook_history = HistoryCopy(self.history)
        first = self.calls[0].use if self.calls else None
        self.message_id = next(
            (each.id for each in reversed(self.history) if first is not None and first in each.tool_uses), ""
        )
        self._exceeded_at_start = self.budget.exceeded_limit

    @property
    def is_limit_reached(self) -> bool:
        """Whether a limit was reached since the round began, so that nothing more may start."""
        exceeded = self.budget.exceeded_shared_limit or self.budget.exceeded_limit
        return exceeded is not None and exceeded != self._exceeded_at_start

    def emit(self, event: Event) -> None:
        """Tell, until all results are in."""
        if not self._is_over:
            self.context.recorder.emit(event)

    def add_usage(self, usage: Usage) -> None:
        """Count what a tool had a model use. Nothing of a tool is trusted: what is no usage is passed over."""
        if type(usage) is not Usage:
            return
        self.budget.add_usage(usage)
        if usage.cost is not None and self.budget.cost is not None:
            self.emit(CostUpdated(self.budget.cost))

    def end(self) -> None:
        """All results are in; whatever still comes changes nothing."""
        self._is_over = True

    def finish(self, call: ToolExecution, result: ToolResult, seconds: float = 0.0) -> None:
        """The call's result, once."""
        if call.result is not None:
            return
        if call.is_edited and call.started_at is not None:
            result = with_edit_note(result, call.use.input, call.input)
        call.result = result
        self.budget.add_characters(sum(content_size(part) for part in result.content))
        if call.is_reported:
            self.emit(ToolFinished(call.use.id, result, seconds, call.changes))

    def answer(self, call: ToolExecution, outcome: Outcome, why: str, seconds: float = 0.0) -> None:
        """A result of words alone; some of them may be a tool's own."""
        said = visible_text(plain_text(why), self.limits.result_characters)
        self.finish(call, missing_result(call.use, outcome, said), seconds)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task of the round's own; a fault in it ends the round."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._on_task_end)
        return task

    def _on_task_end(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.trouble = self.trouble or error
            self.stop()
