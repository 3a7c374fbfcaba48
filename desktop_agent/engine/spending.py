"""What models used in the data folder, and the person's budgets for it."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime
from itertools import chain

from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.processes.foreign_code import notify
from desktop_agent.providers.catalogue.catalogue import Pricing
from desktop_agent.providers.provider import Provider
from desktop_agent.storage.records import ConversationRecord
from desktop_agent.storage.usage import UsageRows
from desktop_agent.types.errors import StorageFailed
from desktop_agent.types.preferences import UsagePreferences
from desktop_agent.types.provider_events import Usage
from desktop_agent.types.providers import DEMO_ENDPOINT
from desktop_agent.types.spending import (
    NANOS,
    NO_USAGE,
    BudgetPeriod,
    BudgetReached,
    BudgetState,
    UsageFigures,
    UsageGrouping,
    UsageKey,
    UsageReport,
    first_reached,
)


def local_day() -> date:
    """Return the person's day now."""
    return datetime.now().astimezone().date()


class Spending:
    """Counts every answer, whoever asked: runs, specialists, summaries, titles, MCP servers. The demo is free.

    What the disk refuses waits in memory and is written with the next answer. All processes on one data folder count
    together: each reads the sums anew before it asks a model. `preferences` returns the budgets.
    """

    def __init__(self, rows: UsageRows, preferences: Callable[[], UsagePreferences]) -> None:
        self._rows = rows
        self._preferences = preferences
        self._waiting: defaultdict[UsageKey, UsageFigures] = defaultdict(UsageFigures)
        self._lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._budget_overrides: set[str] = set()
        self._last_sums: dict[BudgetPeriod, UsageFigures] = {}
        self._listeners: list[Callable[[], None]] = []

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` after something was counted."""
        self._listeners.append(listener)

    def count(self, endpoint_id: str | None, provider: Provider, answer: AnswerBuilder, project: str = "") -> None:
        """Count an answer, also one that broke off, unless nothing of it came."""
        usage = answer.total_usage
        if endpoint_id == DEMO_ENDPOINT or (usage is None and not answer.has_content):
            return
        price = provider.model_info(answer.model).price
        saved = 0.0 if price is None or usage is None else Pricing(price).saved(usage)
        self._add(answer.model, project, UsageFigures.of(usage, saved))

    def count_recovered(self, record: ConversationRecord, model: str | None, usage: Usage | None) -> None:
        """Count an answer that broke off when its process died. What the cache saved is not known."""
        if usage is not None and record.endpoint_id != DEMO_ENDPOINT:
            self._add(model or record.model or "", record.workspace or "", UsageFigures.of(usage))

    def _add(self, model: str, project: str, figures: UsageFigures) -> None:
        self._waiting[UsageKey(local_day(), model, project)] += figures
        task = asyncio.create_task(self._write_soon())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def report(
        self, grouping: UsageGrouping, since: date | None = None, until: date | None = None
    ) -> UsageReport:
        """Return what was used from one day to another, both included. Raises StorageFailed."""
        async with self._lock:
            with suppress(StorageFailed):
                await self._write()
        return await self._rows.report(grouping, since, until)

    async def budgets(self) -> tuple[BudgetState, ...]:
        """Return the budgets that the person has set; where the disk refuses, with what was last read."""
        preferences, today = self._preferences(), local_day()
        if not preferences.has_budget:
            return ()
        async with self._lock:
            with suppress(StorageFailed):
                await self._write()
                for period, day in _first_days(today).items():
                    self._last_sums[period] = await self._rows.used_since(day)
        states = (_states(preferences, period, self._sum(period, day)) for period, day in _first_days(today).items())
        return tuple(chain.from_iterable(states))

    async def check(self, endpoint_id: str | None, conversation_id: str = "") -> None:
        """Raise BudgetReached where a budget is used up, unless the conversation may exceed it."""
        if (
            endpoint_id == DEMO_ENDPOINT
            or conversation_id in self._budget_overrides
            or not self._preferences().has_budget
        ):
            return
        reached = first_reached(await self.budgets())
        if reached is not None:
            raise BudgetReached(reached)

    def override_budget(self, conversation_id: str) -> None:
        """Let this conversation exceed budgets until `end_budget_override`."""
        self._budget_overrides.add(conversation_id)

    def end_budget_override(self, conversation_id: str) -> None:
        """Hold the conversation to the budgets again. Harmless when repeated."""
        self._budget_overrides.discard(conversation_id)

    async def close(self) -> None:
        """Write what waits; what the disk refuses is lost."""
        if self._tasks:
            await asyncio.wait(self._tasks)
        async with self._lock:
            with suppress(StorageFailed):
                await self._write()

    def _sum(self, period: BudgetPeriod, first_day: date) -> UsageFigures:
        waiting = (figures for key, figures in self._waiting.items() if key.day >= first_day)
        return sum(waiting, self._last_sums.get(period, NO_USAGE))

    async def _write_soon(self) -> None:
        async with self._lock:
            with suppress(StorageFailed):
                await self._write()
        for listener in tuple(self._listeners):
            notify(listener)

    async def _write(self) -> None:
        written = dict(self._waiting)
        if not written:
            return
        self._waiting.clear()
        try:
            # Also when the caller is cancelled it is written.
            await self._rows.add(written)
        except StorageFailed:
            for key, figures in written.items():
                self._waiting[key] += figures
            raise


def _first_days(today: date) -> dict[BudgetPeriod, date]:
    return {"day": today, "month": today.replace(day=1)}


def _states(preferences: UsagePreferences, period: BudgetPeriod, used: UsageFigures) -> list[BudgetState]:
    cost, tokens = {
        "day": (preferences.cost_per_day, preferences.tokens_per_day),
        "month": (preferences.cost_per_month, preferences.tokens_per_month),
    }[period]
    states: list[BudgetState] = []
    if cost is not None:
        states.append(BudgetState(period, "cost", cost, used.cost_nanos / NANOS, lacks_prices=used.unpriced > 0))
    if tokens is not None:
        states.append(BudgetState(period, "tokens", tokens, used.tokens))
    return states
