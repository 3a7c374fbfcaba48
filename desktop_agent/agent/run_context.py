"""What a run works with (recorder, slots), and its budget: what it may still use."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Protocol

from desktop_agent.agent.guards import Guards
from desktop_agent.agent.model_request import PictureReader, PreparedHistory
from desktop_agent.agent.modes import ModeSwitch
from desktop_agent.agent.prompt_policies import PromptPolicies
from desktop_agent.agent.retry import RetryPolicy
from desktop_agent.agent.steering_queue import SteeringQueue
from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.conversation.picture_preparation import PictureFitter
from desktop_agent.permissions.approvals import ApprovalBroker
from desktop_agent.permissions.policy import PermissionPolicy
from desktop_agent.providers.provider import Provider
from desktop_agent.tools.checkpoints.checkpointer import Checkpointer
from desktop_agent.tools.tool import ToolRegistry
from desktop_agent.types.engine_events import Event
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Message
from desktop_agent.types.policies import Hooks, Limits, Specialist
from desktop_agent.types.provider_events import Usage
from desktop_agent.types.spending import tokens_used


class Recorder(Protocol):
    """Shows and journals what one run does. The app's implementation belongs to the session."""

    @property
    def run_id(self) -> str: ...

    def emit(self, event: Event, pieces: Sequence[Event] = ()) -> None:
        """Show this event now and journal it soon. `pieces` are those that it was joined from, if it was."""
        ...

    async def flush(self) -> None:
        """Return when everything emitted so far is durable. Raises StorageFailed."""
        ...

    async def commit(self, *messages: Message) -> None:
        """Add finished messages to the history; kept in memory and retried when the disk refuses."""
        ...

    def history(self) -> tuple[Message, ...]:
        """Return all committed messages of the branch, oldest first."""
        ...

    def nested(self) -> "Recorder":
        """Return a recorder for a run that a call of this one starts: its events name this run as their parent.

        Its messages are kept in memory while it works, and are not part of the conversation.
        """
        ...


# Characters that each turn of a nested run counts at least: else runs that only start other runs would have as many
# turns as the product of their limits.
_TURN_CHARACTERS = 1_000


@dataclass(frozen=True, slots=True)
class PriorUse:
    """What a resumed run had used when its process died; its limits cover both parts.

    The work of specialists is included. `cost` is in US dollars, `seconds` is time at work. Characters in memory are
    not included: they went with the process.
    """

    turns: int = 0
    tool_batches: int = 0
    tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0


NO_PRIOR_USE = PriorUse()
# Seconds by which a nested run, and its tools, have less time to end after Stop, so that they end first.
LESS_GRACE_PER_LEVEL = 0.25


class Budget:
    """The budget of one run. What a specialist's run uses counts for the runs above it too."""

    def __init__(self, limits: Limits, parent: "Budget | None" = None, used: PriorUse = NO_PRIOR_USE) -> None:
        self.limits = limits
        self.cost = used.cost
        # How many runs are above this one.
        self.depth: int = 0 if parent is None else parent.depth + 1
        self._parent = parent
        self._turns = used.turns
        self._tool_batches = used.tool_batches
        self._tokens = used.tokens
        self._characters = 0
        self._worked_seconds = used.seconds
        self._pauses = 0
        self._sub_budgets: set[Budget] = set()
        self._working_since: float | None = monotonic()

    def nested(self, limits: Limits, share: float) -> "Budget":
        """Return a specialist's budget: its own limits, and at most this share of the tokens and the money that are
        left.

        It ends with the current task; until then its time at work is time of this run too.
        """
        own = limits.model_dump()
        tokens = _min_known(limits.tokens, _share_of(self.tokens_left, share))
        own["tokens"] = None if tokens is None else int(tokens)
        own["cost"] = _min_known(limits.cost, _share_of(self.cost_left, share))
        own["depth"] = min(limits.depth, self.limits.depth)
        # Not validated again: a share may be 0, which the first check of the limits finds.
        sub_budget = Budget(limits.model_copy(update=own), self)
        self._sub_budgets.add(sub_budget)
        self.update_clock()
        task = _current_task()
        if task is not None:
            task.add_done_callback(lambda _: self._on_sub_run_end(sub_budget))
        return sub_budget

    def count_turn(self) -> None:
        """Count a turn, before the model is asked."""
        self._turns += 1
        if self._parent is not None:
            self.add_characters(_TURN_CHARACTERS)

    def count_tool_batch(self) -> None:
        """Count a batch of tool calls, before they are evaluated."""
        self._tool_batches += 1

    def add_usage(self, usage: Usage | None) -> None:
        """Add what an answer used, here and above."""
        if usage is None:
            return
        self._tokens += tokens_used(usage)
        if usage.cost is not None:
            self.cost = (self.cost or 0.0) + usage.cost
        if self._parent is not None:
            self._parent.add_usage(usage)

    def add_characters(self, count: int) -> None:
        """Add characters held in memory, here and above."""
        self._characters += count
        if self._parent is not None:
            self._parent.add_characters(count)

    @property
    def exceeded_limit(self) -> Sentence | None:
        """Return which limit is reached, in words for people; None while there is room."""
        if self._turns >= self.limits.turns:
            return Sentence("turns")
        if self._tool_batches >= self.limits.tool_iterations:
            return Sentence("tool rounds")
        # Turns and batches of the run above do not count: it is in the middle of one.
        return self.exceeded_shared_limit

    @property
    def exceeded_shared_limit(self) -> Sentence | None:
        """Return which limit shared between runs is reached; None while there is room."""
        if self.tokens_left == 0:
            return Sentence("tokens")
        if self.cost_left == 0:
            return Sentence("cost")
        if self.seconds_left == 0:
            return Sentence("time")
        if self._characters >= self.limits.characters:
            return Sentence("what one run may pile up in memory")
        return self._parent.exceeded_shared_limit if self._parent is not None else None

    @property
    def tokens_left(self) -> int | None:
        """Return the tokens left; None: no limit."""
        return None if self.limits.tokens is None else max(0, self.limits.tokens - self._tokens)

    @property
    def cost_left(self) -> float | None:
        """Return the US dollars left; None: no limit."""
        return None if self.limits.cost is None else max(0.0, self.limits.cost - (self.cost or 0.0))

    @property
    def is_working(self) -> bool:
        """Return whether the clock runs: something is done, here or below."""
        return self._working_since is not None

    @property
    def seconds_left(self) -> float | None:
        """Return the seconds at work left, here and above; None: no limit."""
        own = None if self.limits.seconds is None else max(0.0, self.limits.seconds - self._seconds_at_work)
        return _min_known(own, self._parent.seconds_left if self._parent is not None else None)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Stop the clock of this run: it does nothing itself. May be entered many times at once.

        The clock runs on, above too, as long as a run below works.
        """
        self._pauses += 1
        self.update_clock()
        try:
            yield
        finally:
            self._pauses -= 1
            self.update_clock()

    def _on_sub_run_end(self, sub_budget: "Budget") -> None:
        self._sub_budgets.discard(sub_budget)
        self.update_clock()

    def update_clock(self) -> None:
        """Start or stop the clock, whichever fits now."""
        works = self._pauses == 0 or any(budget.is_working for budget in self._sub_budgets)
        if works is self.is_working:
            return
        self._worked_seconds, self._working_since = self._seconds_at_work, monotonic() if works else None
        if self._parent is not None:
            self._parent.update_clock()

    @property
    def _seconds_at_work(self) -> float:
        return self._worked_seconds + (monotonic() - self._working_since if self._working_since is not None else 0.0)


def _current_task() -> "asyncio.Task[Any] | None":
    try:
        return asyncio.current_task()
    except RuntimeError:  # no event loop runs
        return None


def _share_of(remaining: float | None, share: float) -> float | None:
    return None if remaining is None else remaining * share


def _min_known(first: float | None, second: float | None) -> float | None:
    return min((value for value in (first, second) if value is not None), default=None)


MAX_PARALLEL_READS = 20
# In one answer. Each asks a model, which may delegate as many again.
MAX_PARALLEL_DELEGATES = 8


@dataclass(frozen=True)
class ToolSlots:
    """Slots of one kind of call. Those for reading are shared by a run and the runs below it. Lives on the event
    loop.

    Whoever holds a slot must not wait for a call that needs one: so each answer has its own slots for delegation.
    """

    pool: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_PARALLEL_READS))
    by_tool: dict[str, asyncio.Semaphore] = field(default_factory=dict[str, asyncio.Semaphore])


async def _no_wait() -> None:
    """Do not wait."""


async def no_instructions() -> tuple[str, ...]:
    """Add nothing."""
    return ()


def _count_nothing(_provider: Provider, _answer: AnswerBuilder) -> None:
    """Ignore the usage: no budget counts it."""


@dataclass(frozen=True)
class RunContext:
    """What a run works with. Objects that the person may change while it runs belong to the session.

    `open_provider` takes the name of a model and returns the provider that serves it now; it raises AgentError where
    none does any more, or a budget is used up. `count_answer` is called once for each answer, whatever became of it.
    `history_ready` is awaited before anything else, `tools_ready` before the first turn. `more_instructions` are read
    for each turn, and are added to those of the settings; it may raise AgentError. `checkpointer` saves what calls are
    about to change; None saves nothing. `prepared_history` caches what was prepared for earlier requests.
    `agent_path` names the specialists from the root down; the root agent's is empty.
    """

    open_provider: Callable[[str], Awaitable[Provider]]
    recorder: Recorder
    tools: ToolRegistry
    approvals: ApprovalBroker
    permission_policy: PermissionPolicy
    modes: ModeSwitch
    read_picture: PictureReader
    count_answer: Callable[[Provider, AnswerBuilder], None] = _count_nothing
    hooks: Hooks = field(default_factory=Hooks)
    queue: SteeringQueue = field(default_factory=SteeringQueue)
    policies: PromptPolicies = field(default_factory=PromptPolicies)
    guards: Guards = field(default_factory=Guards)
    specialists: tuple[Specialist, ...] = ()
    checkpointer: Checkpointer | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    fitter: PictureFitter = field(default_factory=PictureFitter)
    prepared_history: PreparedHistory = field(default_factory=PreparedHistory)
    agent_path: tuple[str, ...] = ()
    history_ready: Callable[[], Awaitable[None]] = _no_wait
    tools_ready: Callable[[], Awaitable[None]] = _no_wait
    more_instructions: Callable[[], Awaitable[tuple[str, ...]]] = no_instructions
    slots: ToolSlots = field(default_factory=ToolSlots)
