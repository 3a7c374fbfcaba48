"""What models used, by day, model and project: kept as answers end, whatever becomes of their conversations.

A row is what all answers of one day, model and project used. Nothing refers to a conversation: deleting one does not
lower what was spent. The day is the person's at the moment of the answer, so that neither a change of the clocks nor a
journey moves what was counted. Money is in billionths of a US dollar.
"""

import sqlite3
from collections.abc import Mapping
from datetime import date

from desktop_agent.storage.connection import RunInDatabase, text_of, transaction
from desktop_agent.types.spending import (
    FIGURE_NAMES,
    NO_USAGE,
    UsageFigures,
    UsageGrouping,
    UsageKey,
    UsageReport,
    UsageRow,
)

# ruff: noqa: S608  the words in the queries are our own

_COLUMNS = ", ".join(FIGURE_NAMES)
# Figures are added to those of the row that is there.
_ADD_UP = "ON CONFLICT (day, model, project) DO UPDATE SET " + ", ".join(
    f"{name} = {name} + excluded.{name}" for name in FIGURE_NAMES
)
_PLACES = ", ".join("?" * len(FIGURE_NAMES))
_INSERT = f"INSERT INTO usage (day, model, project, {_COLUMNS}) VALUES (?, ?, ?, {_PLACES}) {_ADD_UP}"
_SUMS = ", ".join(f"sum({name})" for name in FIGURE_NAMES)

# Of a model or project, the dearest first; where nothing has a price, the one with the most tokens.
_ORDERS: Mapping[UsageGrouping, str] = {
    "day": "day",
    "model": "sum(cost_nanos) DESC, sum(tokens) DESC, model",
    "project": "sum(cost_nanos) DESC, sum(tokens) DESC, project",
}
_FIRST_DAY, _LAST_DAY = "0000-01-01", "9999-12-31"


class UsageRows:
    """What models used in this data folder. All methods raise StorageFailed."""

    def __init__(self, run: RunInDatabase) -> None:
        self._run = run

    async def add(self, used: Mapping[UsageKey, UsageFigures]) -> None:
        """Add what answers used to what is there, all or nothing."""
        rows = [
            (key.day.isoformat(), key.model, key.project, *(getattr(figures, name) for name in FIGURE_NAMES))
            for key, figures in used.items()
        ]

        def work(db: sqlite3.Connection) -> None:
            with transaction(db):
                db.executemany(_INSERT, rows)

        await self._run(work)

    async def report(
        self, grouping: UsageGrouping, since: date | None = None, until: date | None = None
    ) -> UsageReport:
        """Return what was used from one day to another, both included."""
        days = (since.isoformat() if since else _FIRST_DAY, until.isoformat() if until else _LAST_DAY)
        sql = (
            f"SELECT {grouping}, {_SUMS} FROM usage WHERE day BETWEEN ? AND ?"
            f" GROUP BY {grouping} ORDER BY {_ORDERS[grouping]}"
        )

        def work(db: sqlite3.Connection) -> UsageReport:
            rows = db.execute(sql, days).fetchall()
            return UsageReport(grouping, tuple(UsageRow(text_of(row[0]), UsageFigures(*row[1:])) for row in rows))

        return await self._run(work)

    async def used_since(self, day: date) -> UsageFigures:
        """Return what was used on this day and later."""

        def work(db: sqlite3.Connection) -> UsageFigures:
            row = db.execute(f"SELECT {_SUMS} FROM usage WHERE day >= ?", (day.isoformat(),)).fetchone()
            return NO_USAGE if row[0] is None else UsageFigures(*row)

        return await self._run(work)
