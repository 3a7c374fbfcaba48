"""The scheduled prompts as they are stored."""

from datetime import datetime

from desktop_agent.storage.connection import DatabaseConnection, RunInDatabase, text_of, text_or_none, transaction
from desktop_agent.storage.conversation_rows import from_microseconds, to_microseconds
from desktop_agent.storage.schedules.run_rows import TABLE as _RUNS_TABLE
from desktop_agent.storage.schedules.run_rows import RunRows, read_last_run
from desktop_agent.types.schedules import ScheduledPrompt, StoredSchedule

TABLES = f"""
CREATE TABLE schedules (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 116 CHECK (mark = 116),
    id TEXT NOT NULL UNIQUE,
    body TEXT NOT NULL,
    revision INTEGER NOT NULL,
    checked_until INTEGER NOT NULL,  -- microseconds since 1970, UTC
    conversation TEXT  -- the id of the one that all runs go on in, or NULL
);
{_RUNS_TABLE}
"""
REPAIRS = ("DELETE FROM schedule_runs WHERE schedule NOT IN (SELECT id FROM schedules)",)
"""What a rescue does after rows were lost."""

_SAVE = """
    INSERT INTO schedules (id, body, revision, checked_until) VALUES (?, ?, 1, ?) ON CONFLICT (id) DO UPDATE
    SET body = excluded.body, revision = revision + 1, checked_until = excluded.checked_until,
        conversation = iif(?, conversation, NULL)"""


class ScheduleRows:
    """The scheduled prompts. All methods raise StorageFailed."""

    def __init__(self, run: RunInDatabase) -> None:
        self._run = run
        self.runs = RunRows(run)

    async def all(self) -> tuple[StoredSchedule, ...]:
        """Return all prompts with their last runs, oldest first. Those that this version cannot read are left out."""
        return await self._run(_read_all)

    async def save(self, prompt: ScheduledPrompt, now: datetime) -> None:
        """Store a prompt; one of the same id is replaced. Times before `now` are not made up for."""
        row = (prompt.id, prompt.model_dump_json(), to_microseconds(now), prompt.target == "same")
        await self._run(lambda db: db.execute(_SAVE, row))

    async def delete(self, schedule_id: str) -> None:
        """Delete a prompt and what is known of its runs; the conversations stay. Harmless where there is none."""

        def work(db: DatabaseConnection) -> None:
            with transaction(db):
                db.execute("DELETE FROM schedules WHERE id = ?", (schedule_id,))
                db.execute("DELETE FROM schedule_runs WHERE schedule = ?", (schedule_id,))

        await self._run(work)


def _read_all(connection: DatabaseConnection) -> tuple[StoredSchedule, ...]:
    stored: list[StoredSchedule] = []
    sql = "SELECT body, revision, checked_until, conversation FROM schedules ORDER BY number"
    for body, revision, checked_until, conversation in connection.execute(sql).fetchall():
        try:
            prompt = ScheduledPrompt.model_validate_json(text_of(body))
        except ValueError:
            continue
        stored.append(
            StoredSchedule(
                prompt,
                from_microseconds(checked_until),
                int(revision),
                text_or_none(conversation),
                read_last_run(connection, prompt.id),
            )
        )
    return tuple(stored)
