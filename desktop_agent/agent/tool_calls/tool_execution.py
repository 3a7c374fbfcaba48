"""The state of one tool call, what the calls of one batch share, and what the result of a stopped call says."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from time import monotonic
from typing import Any

from desktop_agent.agent.model_request import RunSettings
from desktop_agent.agent.run_context import LESS_GRACE_PER_LEVEL, MAX_PARALLEL_DELEGATES, Budget, RunContext, ToolSlots
from desktop_agent.agent.tool_calls.tool_results import content_size, visible_text, with_edit_note
from desktop_agent.conversation.history import missing_result
from desktop_agent.permissions.approvals import Approval
from desktop_agent.permissions.gate import Allowed, Verdict
from desktop_agent.processes.foreign_code import HistoryCopy, TaskSupervisor, strip_terminal_sequences
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.blocks import JsonObject, Outcome, ToolResult, ToolUse
from desktop_agent.types.engine_events import ApprovalRequested, ApprovalResolved, CostUpdated, Event, ToolFinished
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Message
from desktop_agent.types.permissions import Rule
from desktop_agent.types.provider_events import Usage
from desktop_agent.types.tool_calls import Effect, FileChanges, Preview, ToolClass, is_same_json


class CallKind(Enum):
    """Which neighbours a call may run beside: those of its kind, or none."""

    READING = auto()
    DELEGATING = auto()
    MUTATING = auto()


class CallStatus(Enum):
    """The phase of a tool call, in order; one that must be approved, or must wait, goes back to PENDING."""

    LOST = auto()
    """It was running when its process died: it only gets its result."""
    GATING = auto()
    PREPARING_APPROVAL = auto()
    PENDING = auto()
    """Past its gates, it waits for an approval, for earlier calls or for a slot."""
    STARTING = auto()
    JOURNALLED = auto()
    """Its start is journalled, so that it may have had its effect."""
    RUNNING = auto()
    FINISHING = auto()
    """Its tool has ended; the result is validated, and hooks see it."""
    STOPPING = auto()
    """A person stopped it after its tool had begun: no hook sees its result."""
    ENDED = auto()


_BEGUN = frozenset({CallStatus.RUNNING, CallStatus.FINISHING, CallStatus.STOPPING})


@dataclass(slots=True, eq=False)
class ToolExecution:
    """The state of one tool call. `input` is what would run: after the hooks, and as the person edited it.

    `digest` is that of the input, where computed. `ask_reasons` are why a person is asked whatever rules and mode
    allow. `person_permit` is the person's permit; `is_bound_to_preview`: it covers no more than the preview that was
    shown. `is_edited`: a person changed the arguments. `started_as` is the kind with which it was started; `started_at`
    and `ended_at` are when its tool began and ended. `output_tail` is the end of its live output, `reported_progress`
    what its tool says it has done so far, `changes` what it did to files. `fallback_result` is the result should Stop
    come before the hooks.
    """

    use: ToolUse
    tool: AnyTool | None
    input: JsonObject
    is_reported: bool = True
    digest: str | None = None
    # From the journal of a dead process.
    recovered_decision: ApprovalResolved | None = None
    recovered_request: ApprovalRequested | None = None
    status: CallStatus = CallStatus.GATING
    # Gates.
    verdict: Verdict | None = None
    evaluated_version: int = -1
    ask_reasons: list[Sentence] = field(default_factory=list[Sentence])
    repeat_count: int = 0
    repeated_use: ToolUse | None = None
    # Approval.
    preview: Preview | None = None
    proposals: tuple[Rule, ...] = ()
    approval: Approval | None = None
    approval_task: asyncio.Task[None] | None = None
    approval_resolved: asyncio.Event = field(default_factory=asyncio.Event)
    person_permit: Allowed | None = None
    is_bound_to_preview: bool = False
    is_edited: bool = False
    # Execution.
    started_as: CallKind = CallKind.MUTATING
    task: asyncio.Task[None] | None = None
    checked_version: int = -1
    permit: Allowed | None = None
    started_at: float | None = None
    ended_at: float | None = None
    output_tail: str = ""
    reported_progress: str = ""
    changes: FileChanges | None = None
    tool_task: asyncio.Task[Any] | None = None
    stop_signal: asyncio.Future[None] | None = None
    fallback_result: ToolResult | None = None
    result: ToolResult | None = None

    def __post_init__(self) -> None:
        self.approval_resolved.set()

    @property
    def is_open(self) -> bool:
        return self.status is not CallStatus.ENDED

    @property
    def has_begun(self) -> bool:
        """Return whether its tool has begun, and its result is not set yet."""
        return self.status in _BEGUN

    @property
    def is_running(self) -> bool:
        """Return whether its tool is at work, also one that did not end within its grace."""
        return self.tool_task is not None and not self.tool_task.done()

    @property
    def seconds(self) -> float:
        """Return how long its tool took, or has taken until now; 0 where it did not begin."""
        return 0.0 if self.started_at is None else (self.ended_at or monotonic()) - self.started_at

    @property
    def kind(self) -> CallKind:
        """Return the kind of its tool. A mutating tool runs alone, even when it delegates."""
        if self.tool is None or self.tool.tool_class is ToolClass.MUTATING:
            return CallKind.MUTATING
        return CallKind.DELEGATING if Effect.DELEGATE in self.tool.effects else CallKind.READING

    @property
    def must_run_alone(self) -> bool:
        return self.started_as is not CallKind.MUTATING and self.kind is not self.started_as

    @property
    def effective_use(self) -> ToolUse:
        return self.use if self.input is self.use.input else self.use.model_copy(update={"input": self.input})

    @property
    def effective_input(self) -> JsonObject | None:
        """Return the arguments that would run, or None where the model asked for just these."""
        return None if is_same_json(self.input, self.use.input) else self.input

    def advance(self, status: CallStatus) -> None:
        """Enter this phase, unless the call has ended."""
        if self.is_open:
            self.status = status

    def end(self, result: ToolResult) -> None:
        """Set the result, which ends the call."""
        self.result = result
        self.advance(CallStatus.ENDED)

    def set_arguments(self, arguments: JsonObject, digest: str | None = None) -> None:
        """Run with these arguments instead."""
        self.input, self.digest = arguments, digest

    def cancel_tool(self) -> None:
        """Cancel its tool, once: a second cancel would disturb the clean-up that the first began."""
        if self.tool_task is not None and self.stop_signal is not None and not self.stop_signal.done():
            self.stop_signal.set_result(None)
            self.tool_task.cancel()


@dataclass(frozen=True)
class RecoveredCalls:
    """What the journal says of the calls of a dead process, by call id.

    `waiting` are those with an open approval, `announced` all that had an event. `guard_iterations` is how often each
    guard, by name, had made the run go on.
    """

    finished: Mapping[str, ToolResult] = field(default_factory=dict[str, ToolResult])
    started: frozenset[str] = frozenset()
    decided: Mapping[str, ApprovalResolved] = field(default_factory=dict[str, ApprovalResolved])
    waiting: Mapping[str, ApprovalRequested] = field(default_factory=dict[str, ApprovalRequested])
    announced: frozenset[str] = frozenset()
    guard_iterations: Mapping[str, int] = field(default_factory=dict[str, int])

    def apply_to(self, call: ToolExecution) -> None:
        """Apply what is known to the call. A call that was finished or started never runs again."""
        id_ = call.use.id
        if (result := self.finished.get(id_)) is not None:
            call.end(result)
        elif id_ in self.started:
            call.advance(CallStatus.LOST)
        call.recovered_decision = self.decided.get(id_)
        call.recovered_request = None if call.recovered_decision else self.waiting.get(id_)

    def has_record_of(self, call: ToolExecution) -> bool:
        """Return whether anything of the call was journalled after the model had asked for it."""
        id_ = call.use.id
        known = (self.announced, self.finished, self.started, self.decided, self.waiting)
        return any(id_ in ids for ids in known)


class WorkClock:
    """Pauses the budget while the calls of one answer do nothing themselves."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._working = 0
        self._waiting = 0
        self._pause: ExitStack | None = None

    @contextmanager
    def working(self) -> Generator[None]:
        """Mark that a call is evaluated, or runs."""
        self._working += 1
        self._update()
        try:
            yield
        finally:
            self._working -= 1
            self._update()

    @contextmanager
    def delegating(self) -> Generator[None]:
        """Mark that a specialist works on a call; the budget of its own run says whether it works or waits."""
        self.begin_waiting()
        try:
            yield
        finally:
            self.end_waiting()

    def begin_waiting(self) -> None:
        """Count one more call that waits for the person."""
        self._waiting += 1
        self._update()

    def end_waiting(self) -> None:
        """Count one call less: it was decided, or withdrawn."""
        self._waiting -= 1
        self._update()

    def _update(self) -> None:
        is_idle = self._waiting > 0 and self._working == 0
        if is_idle and self._pause is None:
            self._pause = ExitStack()
            self._pause.enter_context(self._budget.paused())
        elif not is_idle and self._pause is not None:
            pause, self._pause = self._pause, None
            pause.close()


@asynccontextmanager
async def acquire_slots(slots: ToolSlots, tool: AnyTool, *, pooled: bool) -> AsyncGenerator[None]:
    """Wait for a slot of the tool, and if `pooled` for one of the pool; both are released at the end."""
    async with AsyncExitStack() as acquired:
        if tool.concurrency is not None:
            own = slots.by_tool.setdefault(tool.identity, asyncio.Semaphore(max(1, tool.concurrency)))
            await acquired.enter_async_context(own)
        if pooled:
            await acquired.enter_async_context(slots.pool)
        yield


# Seconds that cancelled tools have to end by themselves: less than their run has, and more than the runs below it have.
_GRACE_SECONDS = 1.9


class BatchContext:
    """What the parts of one batch share. `version` counts changes of rules and mode; `is_closed`: nothing starts."""

    def __init__(
        self, calls: Sequence[ToolExecution], context: RunContext, budget: Budget, settings: RunSettings
    ) -> None:
        self.calls = calls
        self.context = context
        self.budget = budget
        self.limits = settings.limits
        self.conversation_id = settings.conversation_id
        self.grace = _GRACE_SECONDS - LESS_GRACE_PER_LEVEL * budget.depth
        self.supervisor = TaskSupervisor()
        self.clock = WorkClock(budget)
        # Delegating calls have slots for this answer alone: a nested one must not wait for its parent.
        self.delegate_slots = ToolSlots(asyncio.Semaphore(MAX_PARALLEL_DELEGATES))
        self.version = 0
        self.is_closed = False
        self.trouble: BaseException | None = None
        self.stop: Callable[[], None] = lambda: None
        self.history: tuple[Message, ...] = ()
        self.hook_history = HistoryCopy(())
        self.message_id = ""
        self.tasks: set[asyncio.Task[None]] = set()
        self._is_over = False
        self._exceeded_at_start: Sentence | None = None

    def begin(self) -> None:
        """Read the history and the budget at the beginning."""
        self.history = self.context.recorder.history()
        self.hook_history = HistoryCopy(self.history)
        first = self.calls[0].use if self.calls else None
        self.message_id = next(
            (message.id for message in reversed(self.history) if first is not None and first in message.tool_uses), ""
        )
        self._exceeded_at_start = self.budget.exceeded_limit

    @property
    def is_limit_reached(self) -> bool:
        """Return whether a limit was reached since the batch began, so that nothing more may start."""
        exceeded = self.budget.exceeded_shared_limit or self.budget.exceeded_limit
        return exceeded is not None and exceeded != self._exceeded_at_start

    def emit(self, event: Event) -> None:
        """Emit an event, until all results are in."""
        if not self._is_over:
            self.context.recorder.emit(event)

    def add_usage(self, usage: Usage) -> None:
        """Count the usage of a model that a tool asked."""
        self.budget.add_usage(usage)
        if usage.cost is not None and self.budget.cost is not None:
            self.emit(CostUpdated(self.budget.cost))

    def end(self) -> None:
        """Emit nothing more: all results are in."""
        self._is_over = True

    def finish(self, call: ToolExecution, result: ToolResult) -> None:
        """Set the call's result, once."""
        if not call.is_open:
            return
        if call.is_edited and call.started_at is not None:
            result = with_edit_note(result, call.use.input, call.input)
        call.end(result)
        self.budget.add_characters(sum(content_size(part) for part in result.content))
        if call.is_reported:
            self.emit(ToolFinished(call.use.id, result, call.seconds, call.changes))

    def answer(self, call: ToolExecution, outcome: Outcome, why: str) -> None:
        """Set a result that is text alone; some of the text may come from a tool."""
        text = visible_text(why, self.limits.result_characters)
        self.finish(call, missing_result(call.use, outcome, text))

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task of the batch; an exception in it ends the batch."""
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


OUTCOME_UNKNOWN = (
    "The program ended while this call was running. Whether it took effect is not known; it is not run again."
)
LIMIT_REACHED = "The call was not run: a limit was reached."
STOPPED_BEFORE_START = "The call was stopped before it was started."
STOPPED_WHILE_RUNNING = "The call was stopped while it was running."
_EFFECT_UNKNOWN = "It may have taken effect."
_ONLY_READS = "It only reads: nothing was changed."
_ABANDONED = "It did not end when it was told to, and may still be at work."


def stop_text(call: ToolExecution) -> str:
    """Return the result text of a stopped call, started or not, with the end of its live output."""
    return STOPPED_BEFORE_START if call.started_at is None else _with_report(STOPPED_WHILE_RUNNING, call)


def timeout_text(call: ToolExecution, seconds: float) -> str:
    """Return the result text of a call that took too long."""
    return _with_report(f"The call took longer than {seconds:g} s and was stopped.", call)


def _with_report(reason: str, call: ToolExecution) -> str:
    """Put the report of what the call did at the end: a card shows the end of a long text."""
    done = " ".join([_effect_text(call), *([_ABANDONED] if call.is_running else [])])
    output = strip_terminal_sequences(call.output_tail)
    if not output.strip():
        return f"{reason} {done}"
    end = "" if output.endswith("\n") else "\n"
    return f"{reason} The end of what it had written until then:\n{output}{end}{done}"


def _effect_text(call: ToolExecution) -> str:
    if call.reported_progress.strip():
        return call.reported_progress.strip()
    tool = call.tool
    harmless = tool is not None and tool.tool_class is ToolClass.READ_ONLY and Effect.DELEGATE not in tool.effects
    return _ONLY_READS if harmless else _EFFECT_UNKNOWN
