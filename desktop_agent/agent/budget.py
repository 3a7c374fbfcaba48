"""What a run may still use: turns, rounds of tools, tokens, money, time, memory."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

from desktop_agent.vocabulary.conduct.limits import Limits
from desktop_agent.vocabulary.usage import Usage

# What a turn of a run below piles up however little is said in it, in characters: else runs that only start runs below
# them would have as many turns as their limits multiplied.
_TURN_CHARACTERS = 1_000
_MEMORY_LIMIT = "what one run may pile up in memory"


@dataclass(frozen=True, slots=True)
class PriorUse:
    """What a run had used when its process died: the same run goes on, and its limits are those of all of it.

    Specialists' work included: `tokens`, `cost` in US dollars, `seconds` at work. Memory is not: that went with the
    process.
    """

    turns: int = 0
    tool_batches: int = 0
    tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0


NO_PRIOR_USE = PriorUse()


class Budget:
    """One run's. What a specialist's run uses counts for the runs above it too, and so do their ends for it."""

    def __init__(self, limits: Limits, parent: "Budget | None" = None, used: PriorUse = NO_PRIOR_USE) -> None:
        self.limits = limits
        self.cost = used.cost
        self._parent = parent
        self._turns = used.turns
        self._tool_batches = used.tool_batches
        self._tokens = used.tokens
        self._characters = 0
        self._worked_seconds = used.seconds
        self._pauses = 0
        self._sub_budgets: set[Budget] = set()
        self._working_since: float | None = monotonic()

    @property
    def depth(self) -> int:
        """How many runs stand above this one."""
        return 0 if self._parent is None else self._parent.depth + 1

    def nested(self, limits: Limits, share: float) -> "Budget":
        """For a specialist: its own limits, and at most this share of the tokens and the money that are left.

        Its run is over when the task is that made it; until then its time at work is time of this one too.
        """
        own = limits.model_dump()
        tokens = _min_known(limits.tokens, _share_of(self.tokens_left, share))
        own["tokens"] = None if tokens is None else int(tokens)
        own["cost"] = _min_known(limits.cost, _share_of(self.cost_left, share))
        own["depth"] = min(limits.depth, self.limits.depth)
        # Not validated again: a share of nothing is nothing, and the first look at it says so.
        below = Budget(limits.model_copy(update=own), self)
        self._sub_budgets.add(below)
        self.update_clock()
        task = _current_task()
        if task is not None:
            task.add_done_callback(lambda _: self._on_sub_run_end(below))
        return below

    def count_turn(self) -> None:
        """The model is about to be asked."""
        self._turns += 1
        if self._parent is not None:
            self.add_characters(_TURN_CHARACTERS)

    def count_tool_batch(self) -> None:
        """The calls of an answer are about to be worked on."""
        self._tool_batches += 1

    def add_usage(self, usage: Usage | None) -> None:
        """What an answer used, here and above."""
        if usage is None:
            return
        self._tokens += token_count(usage)
        if usage.cost is not None:
            self.cost = (self.cost or 0.0) + usage.cost
        if self._parent is not None:
            self._parent.add_usage(usage)

    def add_characters(self, count: int) -> None:
        """What was piled up in memory, here and above."""
        self._characters += count
        if self._parent is not None:
            self._parent.add_characters(count)

    @property
    def exceeded_limit(self) -> str | None:
        """Which limit is reached, in words for people; None while there is room."""
        limits = self.limits
        reached = (
            (self._turns >= limits.turns, "turns"),
            (self._tool_batches >= limits.tool_iterations, "tool rounds"),
            (self.tokens_left == 0, "tokens"),
            (self.cost_left == 0, "cost"),
            (self.seconds_left == 0, "time"),
            (self._characters >= limits.characters, _MEMORY_LIMIT),
        )
        own = next((which for is_reached, which in reached if is_reached), None)
        # Turns and rounds of the run above are its own affair: it is in the middle of one.
        return own or (self._parent.exceeded_shared_limit if self._parent is not None else None)

    @property
    def exceeded_shared_limit(self) -> str | None:
        """The same, of what runs share."""
        if self.tokens_left == 0:
            return "tokens"
        if self.cost_left == 0:
            return "cost"
        if self.seconds_left == 0:
            return "time"
        if self._characters >= self.limits.characters:
            return _MEMORY_LIMIT
        return self._parent.exceeded_shared_limit if self._parent is not None else None

    @property
    def tokens_left(self) -> int | None:
        """None: no limit."""
        return None if self.limits.tokens is None else max(0, self.limits.tokens - self._tokens)

    @property
    def cost_left(self) -> float | None:
        """In US dollars; None: no limit."""
        return None if self.limits.cost is None else max(0.0, self.limits.cost - (self.cost or 0.0))

    @property
    def is_working(self) -> bool:
        """Whether time goes on: something is done, here or below."""
        return self._working_since is not None

    @property
    def seconds_left(self) -> float | None:
        """Of time at work, here and above; None: no limit."""
        own = None if self.limits.seconds is None else max(0.0, self.limits.seconds - self._seconds_at_work)
        return _min_known(own, self._parent.seconds_left if self._parent is not None else None)

    @contextmanager
    def paused(self) -> Generator[None]:
        """This run does nothing itself. May be entered many times at once.

        Time stands still while no run below works either: it goes on above too as long as one of them does.
        """
        self._pauses += 1
        self.update_clock()
        try:
            yield
        finally:
            self._pauses -= 1
            self.update_clock()

    def _on_sub_run_end(self, below: "Budget") -> None:
        self._sub_budgets.discard(below)
        self.update_clock()

    def update_clock(self) -> None:
        """Whether time goes on may be another matter now."""
        works = self._pauses == 0 or any(each.is_working for each in self._sub_budgets)
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


def token_count(usage: Usage) -> int:
    """How many tokens an answer used: the server's total, or what is known of its parts."""
    if usage.total_tokens is not None:
        return usage.total_tokens
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)


def _share_of(left: float | None, share: float) -> float | None:
    return None if left is None else left * share


def _min_known(first: float | None, second: float | None) -> float | None:
    return min((each for each in (first, second) if each is not None), default=None)
