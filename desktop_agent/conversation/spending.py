"""What a conversation has used so far: tokens and money, summed over its answers."""

from collections.abc import Callable, Sequence

from desktop_agent.vocabulary.engine_events import CostUpdated, Event, RunFinished, RunStarted, TurnStarted
from desktop_agent.vocabulary.messages import Message, Role
from desktop_agent.vocabulary.provider_events import UsageUpdate
from desktop_agent.vocabulary.usage import Usage

# US dollars: less than this is how sums of fractions differ.
_COST_TOLERANCE = 1e-9


class ConversationUsage:
    """Reads the committed messages, each once, and adds the answer that is on its way.

    `history` answers all committed messages, oldest first. What specialists use while the conversation is open is
    added, and what was paid for nothing, as for a summary that failed; no message of the conversation has that, so it
    is forgotten when that is closed.
    """

    def __init__(self, history: Callable[[], Sequence[Message]]) -> None:
        self._history = history
        self._counted = 0
        self._committed: Usage | None = None
        self._open: Usage | None = None
        self._has_gaps = False
        self._specialists: Usage | None = None
        self._specialists_open: dict[str, Usage] = {}
        self._before_run = 0.0
        self._run_cost = 0.0
        self._wasted_cost = 0.0
        self._count_new()

    @property
    def total(self) -> Usage | None:
        """Of all answers; None while nothing is known."""
        lost = Usage(cost=self._wasted_cost) if self._wasted_cost > _COST_TOLERANCE else None
        parts = (self._committed, self._open, self._specialists, *self._specialists_open.values(), lost)
        known = [part for part in parts if part is not None]
        return sum(known[1:], known[0]) if known else None

    @property
    def is_complete(self) -> bool:
        """Whether the cost of every answer is known; where not, the total's cost is the least that it was."""
        return not self._has_gaps and (self._open is None or self._open.cost is not None)

    def take(self, event: Event, sub_run: str | None = None) -> None:
        """One event of the conversation; `sub_run` is the id of the specialist's run that it belongs to, if any."""
        if sub_run is not None:
            self._on_sub_run_event(event, sub_run)
            return
        match event:
            case UsageUpdate():
                self._open = event.usage if self._open is None else self._open.merge_max(event.usage)
            case RunStarted():
                self._count_new()
                self._before_run, self._run_cost = self._cost, 0.0
            case CostUpdated():
                self._run_cost = event.cost
            case TurnStarted() | RunFinished():
                # The answer before was committed by now, with its usage.
                self._open = None
                self._count_new()
                self._wasted_cost += max(0.0, self._before_run + self._run_cost - self._cost)
            case _:
                pass

    @property
    def _cost(self) -> float:
        total = self.total
        return (total.cost if total is not None else None) or 0.0

    def _on_sub_run_event(self, event: Event, run_id: str) -> None:
        match event:
            case UsageUpdate():
                before = self._specialists_open.get(run_id)
                self._specialists_open[run_id] = event.usage if before is None else before.merge_max(event.usage)
            case TurnStarted() | RunFinished():
                used = self._specialists_open.pop(run_id, None)
                if used is not None:
                    self._has_gaps = self._has_gaps or used.cost is None
                    self._specialists = used if self._specialists is None else self._specialists + used
            case _:
                pass

    def _count_new(self) -> None:
        messages = self._history()
        if len(messages) < self._counted:  # another branch
            self._counted, self._committed, self._has_gaps = 0, None, False
        for message in messages[self._counted :]:
            self._add(message)
        self._counted = len(messages)

    def _add(self, message: Message) -> None:
        usage = message.usage
        # A summary cost something too.
        if message.role is not Role.ASSISTANT and usage is None:
            return
        self._has_gaps = self._has_gaps or usage is None or usage.cost is None
        if usage is not None:
            self._committed = usage if self._committed is None else self._committed + usage
