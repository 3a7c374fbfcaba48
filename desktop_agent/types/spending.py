"""What models used, by day, model and project, and the person's budgets for it.

Money is in billionths of a US dollar here and in the database: whole numbers add up exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date
from typing import ClassVar, Literal, NamedTuple, Self

from desktop_agent.types.errors import AgentError, RemedyAction, Sentence
from desktop_agent.types.provider_events import Usage

UsageGrouping = Literal["day", "model", "project"]
BudgetPeriod = Literal["day", "month"]
BudgetUnit = Literal["cost", "tokens"]

NANOS = 1_000_000_000
MAX_COST = 1_000_000
"""US dollars that one answer counts for at most, as many as the largest budget has: a server may report any number."""
WARNING_SHARE = 0.8
"""The share of a budget at which the person is warned."""


def tokens_used(usage: Usage) -> int:
    """Return the tokens that an answer used: the server's total, or the sum of the known parts."""
    if usage.total_tokens is not None:
        return usage.total_tokens
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)


def _nanos(dollars: float) -> int:
    """Return billionths, as the database has them."""
    return round(max(-MAX_COST, min(dollars, MAX_COST)) * NANOS)


class UsageKey(NamedTuple):
    """What usage is summed up by. `day` is the person's local day; `project` the folder of work, "" without one."""

    day: date
    model: str
    project: str


@dataclass(frozen=True, slots=True)
class UsageFigures:
    """What answers used together.

    `uncounted` are the answers whose tokens nobody knows, `unpriced` those whose cost; the sums are of the others.
    `input_tokens` is the whole prompt with its cached part; `saved_nanos` is what the cache saved, less what writing
    it cost more, where the prices are known.
    """

    answers: int = 0
    uncounted: int = 0
    unpriced: int = 0
    tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost_nanos: int = 0
    saved_nanos: int = 0

    @classmethod
    def of(cls, usage: Usage | None, saved: float = 0.0) -> Self:
        """Return the figures of one answer; `saved` in US dollars."""
        if usage is None:
            return cls(answers=1, uncounted=1, unpriced=1)
        tokens = tokens_used(usage)
        return cls(
            answers=1,
            uncounted=int(tokens == 0),
            unpriced=int(usage.cost is None),
            tokens=tokens,
            input_tokens=usage.input_tokens or 0,
            output_tokens=usage.output_tokens or 0,
            cache_read_tokens=usage.cache_read_tokens or 0,
            cache_write_tokens=usage.cache_write_tokens or 0,
            reasoning_tokens=usage.reasoning_tokens or 0,
            cost_nanos=_nanos(usage.cost or 0.0),
            saved_nanos=_nanos(saved),
        )

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, name) + getattr(other, name) for name in FIGURE_NAMES))

    @property
    def cost(self) -> float | None:
        """Return US dollars: at least so many where `unpriced`; None where nothing is known."""
        return None if self.unpriced >= self.answers else self.cost_nanos / NANOS

    @property
    def known_tokens(self) -> int | None:
        """Return the tokens: at least so many where `uncounted`; None where nothing is known."""
        return None if self.uncounted >= self.answers else self.tokens


FIGURE_NAMES = tuple(field.name for field in fields(UsageFigures))
NO_USAGE = UsageFigures()


@dataclass(frozen=True, slots=True)
class UsageRow:
    """What one day, model or project used. `key` is a date such as 2026-03-29, a name, or a path; "" without one."""

    key: str
    figures: UsageFigures


@dataclass(frozen=True, slots=True)
class UsageReport:
    """The rows of one grouping: days in order, models and projects by cost and tokens, the most first."""

    grouping: UsageGrouping
    rows: tuple[UsageRow, ...] = ()

    @property
    def total(self) -> UsageFigures:
        return sum((row.figures for row in self.rows), NO_USAGE)


@dataclass(frozen=True, slots=True)
class BudgetState:
    """One budget: US dollars or tokens for a day or a month, and how much of that is used.

    `lacks_prices`: answers are among it whose cost nobody knows.
    """

    period: BudgetPeriod
    unit: BudgetUnit
    limit: float
    used: float
    lacks_prices: bool = False

    @property
    def share(self) -> float:
        return self.used / self.limit

    @property
    def is_reached(self) -> bool:
        return self.used >= self.limit

    @property
    def is_near(self) -> bool:
        return self.share >= WARNING_SHARE


_USED_UP = {
    ("day", "cost"): Sentence("The budget of money for today is used up."),
    ("day", "tokens"): Sentence("The budget of tokens for today is used up."),
    ("month", "cost"): Sentence("The budget of money for this month is used up."),
    ("month", "tokens"): Sentence("The budget of tokens for this month is used up."),
}


class BudgetReached(AgentError):
    """The person's budget is used up: no model is asked any more."""

    kind = "budget"
    action: ClassVar[RemedyAction] = RemedyAction.GO_ON
    default_remedy = "Raise the budget in Settings, or ask anyway."

    def __init__(self, state: BudgetState) -> None:
        self.state = state
        super().__init__(_USED_UP[state.period, state.unit])


def first_reached(states: Sequence[BudgetState]) -> BudgetState | None:
    """Return a budget that is used up, or None."""
    return next((state for state in states if state.is_reached), None)
