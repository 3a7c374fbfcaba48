"""Scheduled prompts and their runs.

A run is claimed before its prompt is sent. The transaction that stores the prompt marks its run as started, by a
trigger, so after a kill there is no doubt whether it was sent.
"""

from datetime import datetime
from typing import get_args

from desktop_agent.storage.connection import DatabaseConnection, RunInDatabase, text_of, text_or_none, transaction
from desktop_agent.storage.conversation_rows import from_microseconds, to_microseconds
from desktop_agent.types.schedules import RunResult, RunState, ScheduledPrompt, ScheduledRun, StoredSchedule

_SAVE = """
    INSERT INTO schedules (id, body, revision, checked_until) VALUES (?, ?, 1, ?) ON CONFLICT (id) DO UPDATE
    SET body = excluded.body, revision = revision + 1, checked_until = excluded.checked_until,
        conversation = iif(?, conversation, NULL)"""

KEPT_RUNS = 10_000
"""So many runs of one prompt are remembered: none of these is made twice, however the clock is set."""

_SELECT_RUN = "SELECT schedule, slot, conversation, message, state, result, claimed_at FROM schedule_runs"
_INSERT_RUN = """
    INSERT INTO schedule_runs (schedule, slot, conversation, message, state, result, claimed_at)
    VALUES (?, ?, ?, ?, ?, ?, ?)"""
_FORGET_OLD = f"""
    DELETE FROM schedule_runs WHERE schedule = :schedule AND number <= (
        SELECT number FROM schedule_runs WHERE schedule = :schedule ORDER BY number DESC LIMIT 1 OFFSET {KEPT_RUNS})"""  # noqa: S608  a constant
_STATES: dict[str, RunState] = {state: state for state in get_args(RunState)}
_RESULTS: dict[str, RunResult] = {result: result for result in get_args(RunResult) if result}
# As the journal says it of a run whose process died.
_RESULTS["aborted"] = "interrupted"


class RunRows:
    """The runs. All methods raise StorageFailed."""

    def __init__(self, run: RunInDatabase) -> None:
        self._run = run

    async def claim(
        self, schedule: StoredSchedule, slot: str, conversation_id: str, message_id: str, now: datetime, *, is_due: bool
    ) -> bool:
        """Claim the run for `slot`; return False where it is not to be made.

        That is so where somebody claimed it before, another run of this prompt has not ended, or the person changed or
        deleted the prompt meanwhile. With `is_due`, all times up to now are dealt with.
        """
        row = (schedule.prompt.id, slot, conversation_id, message_id, "claimed", "", to_microseconds(now))

        def work(db: DatabaseConnection) -> bool:
            with transaction(db):
                is_open = "SELECT 1 FROM schedule_runs WHERE schedule = ? AND state <> 'ended'"
                if db.execute(is_open, row[:1]).fetchone() is not None:
                    return False
                if not _insert_run(db, schedule, row, now if is_due else None):
                    return False
                db.execute(_FORGET_OLD, {"schedule": schedule.prompt.id})
                if schedule.prompt.target == "same":
                    update = "UPDATE schedules SET conversation = ? WHERE id = ?"
                    db.execute(update, (conversation_id, schedule.prompt.id))
            return True

        return await self._run(work)

    async def skip(self, schedule: StoredSchedule, slot: str, now: datetime) -> bool:
        """Note that the run for `slot` was missed, and is not made; return False where it is known already."""
        row = (schedule.prompt.id, slot, "", "", "ended", "missed", to_microseconds(now))

        def work(db: DatabaseConnection) -> bool:
            with transaction(db):
                return _insert_run(db, schedule, row, now)

        return await self._run(work)

    async def set_checked(self, schedule: StoredSchedule, until: datetime) -> None:
        """Note that all times up to `until` are dealt with; nothing happens where the prompt was changed meanwhile."""

        def work(db: DatabaseConnection) -> None:
            with transaction(db):
                if _is_current(db, schedule):
                    _set_checked(db, schedule, until)

        await self._run(work)

    async def unfinished(self) -> tuple[ScheduledRun, ...]:
        """Return the runs that have not ended, oldest first."""
        return await self._run(
            lambda db: tuple(map(_run_from, db.execute(f"{_SELECT_RUN} WHERE state <> 'ended' ORDER BY number")))
        )

    async def move(self, run: ScheduledRun, conversation_id: str) -> None:
        """Let a claimed run go into another conversation."""
        sql = "UPDATE schedule_runs SET conversation = ? WHERE schedule = ? AND slot = ? AND state = 'claimed'"
        await self._run(lambda db: db.execute(sql, (conversation_id, run.schedule_id, run.slot)))

    async def end(self, run: ScheduledRun, result: RunResult) -> None:
        """Note how a run ended; one that has ended keeps its result."""
        sql = (
            "UPDATE schedule_runs SET state = 'ended', result = ? WHERE schedule = ? AND slot = ? AND state <> 'ended'"
        )
        await self._run(lambda db: db.execute(sql, (result, run.schedule_id, run.slot)))

    async def outcome(self, run: ScheduledRun) -> RunResult | None:
        """Return how a started run ended; None while a run in its conversation has not ended.

        One whose conversation is in the trash is cancelled, also while it waits for approval.
        """
        return await self._run(lambda db: _outcome(db, run.conversation_id))


def _is_current(connection: DatabaseConnection, schedule: StoredSchedule) -> bool:
    sql = "SELECT 1 FROM schedules WHERE id = ? AND revision = ?"
    return connection.execute(sql, (schedule.prompt.id, schedule.revision)).fetchone() is not None


def _insert_run(
    connection: DatabaseConnection,
    schedule: StoredSchedule,
    row: tuple[str, str, str, str, str, str, int],
    checked_until: datetime | None,
) -> bool:
    """Insert a run, unless its prompt was changed or its slot is known; times up to `checked_until` are dealt with."""
    if not _is_current(connection, schedule):
        return False
    if checked_until is not None:
        _set_checked(connection, schedule, checked_until)
    is_known = "SELECT 1 FROM schedule_runs WHERE schedule = ? AND slot = ?"
    if connection.execute(is_known, row[:2]).fetchone() is not None:
        return False
    connection.execute(_INSERT_RUN, row)
    return True


def _set_checked(connection: DatabaseConnection, schedule: StoredSchedule, until: datetime) -> None:
    sql = "UPDATE schedules SET checked_until = ? WHERE id = ?"
    connection.execute(sql, (to_microseconds(until), schedule.prompt.id))


def _outcome(connection: DatabaseConnection, conversation_id: str) -> RunResult | None:
    in_trash = "SELECT 1 FROM conversations WHERE id = ? AND deleted_at IS NOT NULL"
    if connection.execute(in_trash, (conversation_id,)).fetchone() is not None:
        # A call that waits there would hold up the prompt until somebody takes it out again.
        return "cancelled"
    sql = "SELECT number, finished FROM runs WHERE conversation = (SELECT number FROM conversations WHERE id = ?)"
    rows = connection.execute(f"{sql} ORDER BY number DESC", (conversation_id,)).fetchall()
    if any(not finished for _, finished in rows):
        return None
    for number, _ in rows:
        ended = connection.execute(
            "SELECT event ->> '$.reason' FROM journal WHERE number >= ? << 32 AND number < (? + 1) << 32"
            " AND type = 'run_finished' AND parent_run_id IS NULL AND json_valid(event) ORDER BY number DESC LIMIT 1",
            (number, number),
        ).fetchone()
        if ended is not None:
            return _RESULTS.get(text_of(ended[0] or ""), "interrupted")
    return "interrupted"


def _run_from(row: tuple[str, str, str, str, str, str, int]) -> ScheduledRun:
    schedule, slot, conversation, message, state, result, claimed_at = row
    return ScheduledRun(
        text_of(schedule),
        text_of(slot),
        text_of(conversation),
        text_of(message),
        _STATES.get(text_of(state), "ended"),
        _RESULTS.get(text_of(result), ""),
        from_microseconds(claimed_at),
    )


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
        newest = f"{_SELECT_RUN} WHERE schedule = ? ORDER BY number DESC LIMIT 1"
        row = connection.execute(newest, (prompt.id,)).fetchone()
        last_run = None if row is None else _run_from(row)
        moment = from_microseconds(checked_until)
        stored.append(StoredSchedule(prompt, moment, int(revision), text_or_none(conversation), last_run))
    return tuple(stored)
