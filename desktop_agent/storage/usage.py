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

COUNTS = (
    "answers",
    "uncounted",
    "unpriced",
    "tokens",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "cost_nanos",
    "saved_nanos",
)
_COLUMNS = ", ".join(COUNTS)
_DECLARED = ",\n".join(f"    {name} INTEGER NOT NULL DEFAULT 0" for name in COUNTS)
# What is counted is added to what there is.
_ADD_UP = "ON CONFLICT (day, model, project) DO UPDATE SET " + ", ".join(
    f"{name} = {name} + excluded.{name}" for name in COUNTS
)
_INSERT = (
    f"INSERT INTO usage (day, model, project, {_COLUMNS}) VALUES (?, ?, ?, {', '.join('?' * len(COUNTS))}) {_ADD_UP}"
)
_SUMS = ", ".join(f"sum({name})" for name in COUNTS)

# How the table is filled from the messages of a database that had none.
# What is JSON of `Usage`, or NULL, becomes the counts of one answer. What the cache saved is not known any more.
_COUNTED = """
    1, CASE WHEN coalesce(nullif(usage ->> 'total_tokens', 0), nullif(coalesce(usage ->> 'input_tokens', 0)
        + coalesce(usage ->> 'output_tokens', 0), 0)) IS NULL THEN 1 ELSE 0 END, usage ->> 'cost' IS NULL,
    coalesce(usage ->> 'total_tokens', coalesce(usage ->> 'input_tokens', 0) + coalesce(usage ->> 'output_tokens', 0)),
    coalesce(usage ->> 'input_tokens', 0), coalesce(usage ->> 'output_tokens', 0),
    coalesce(usage ->> 'cache_read_tokens', 0), coalesce(usage ->> 'cache_write_tokens', 0),
    coalesce(usage ->> 'reasoning_tokens', 0), CAST(round(coalesce(usage ->> 'cost', 0) * 1e9) AS INTEGER), 0"""
# Answers and summaries, of all branches; then what titles and specialists used, on the day of the last message.
# What was brought in from elsewhere, copies, and the demo cost nothing here. The demo's server is called “demo”.
_FROM_MESSAGES = """
    SELECT date(m.created_at, 'localtime') AS day, coalesce(m.body ->> 'model', c.model, '') AS model,
        coalesce(c.workspace, '') AS project, json_extract(m.body, '$.usage') AS usage, m.role = 'assistant' AS counts
    FROM messages m CROSS JOIN conversations c ON c.number = m.conversation
    WHERE m.role IN ('assistant', 'system') AND c.origin IS NULL AND coalesce(c.endpoint_id, '') <> 'demo'
        AND json_valid(m.body)"""
_FROM_STATES = """
    SELECT date(updated_at / 1000000, 'unixepoch', 'localtime'), coalesce(model, ''), coalesce(workspace, ''),
        json_extract(state, '$.{name}'), 0
    FROM conversations
    WHERE origin IS NULL AND coalesce(endpoint_id, '') <> 'demo' AND json_valid(state)"""

TABLES = f"""
CREATE TABLE usage (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 115 CHECK (mark = 115),
    day TEXT NOT NULL,  -- the person's local day, such as 2026-03-29
    model TEXT NOT NULL,
    project TEXT NOT NULL,  -- the folder of work, or '' without one
{_DECLARED},
    UNIQUE (day, model, project)
);
INSERT INTO usage (day, model, project, {_COLUMNS})
SELECT day, model, project, {_COUNTED}
FROM (
    {_FROM_MESSAGES}
    UNION ALL {_FROM_STATES.format(name="title_usage")}
    UNION ALL {_FROM_STATES.format(name="specialist_usage")}
)
WHERE day IS NOT NULL AND (counts OR usage IS NOT NULL)
{_ADD_UP};
"""

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
