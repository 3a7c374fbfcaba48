"""The rows of the journal, run by run."""

import sqlite3
from collections.abc import Collection, Sequence
from datetime import datetime

from desktop_agent.storage.database.checkpoints import RunInDatabase
from desktop_agent.storage.database.connection import text_of, text_or_none
from desktop_agent.storage.json_form import event_to_json, read_event
from desktop_agent.storage.records import InterruptedRuns, JournalEntry
from desktop_agent.vocabulary.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    Envelope,
    RunFinished,
    ToolFinished,
)
from desktop_agent.vocabulary.errors import Sentence, WrittenElsewhere, WrongUse

_SEQ_BITS = 32
_DELTAS = "('content_delta', 'thinking_delta', 'tool_args_delta')"
_JOURNAL_COLUMNS = "number, parent_run_id, turn_id, at, type, event"
_SELECT_ROWS = "SELECT number, parent_run_id, turn_id, at, event FROM journal WHERE number >= ? AND number < ?"
# Results may be large, and of those only how they ended is wanted.
_EVENT_WITHOUT_CONTENT = """CASE WHEN type = 'tool_finished' AND json_valid(event)
        THEN json_set(event, '$.result.content', json('[]')) ELSE event END"""
_CALL_TYPES = "('tool_call_pending', 'approval_requested', 'approval_resolved', 'tool_started', 'tool_finished')"
_SELECT_CALL_ENTRIES = f"""
SELECT journal.number, conversations.id, conversations.title, runs.id, parent_run_id, turn_id, at,
    {_EVENT_WITHOUT_CONTENT}
FROM journal
JOIN runs ON runs.number = journal.number >> 32
JOIN conversations ON conversations.number = runs.conversation
WHERE journal.number < ? AND deleted_at IS NULL
    AND type IN {_CALL_TYPES}
ORDER BY journal.number DESC LIMIT ?
"""  # noqa: S608  constants
_SELECT_CALLS_OF_RUN = f"""
SELECT number, parent_run_id, turn_id, at, {_EVENT_WITHOUT_CONTENT} FROM journal
WHERE number > ? AND number < ? AND at >= ? AND type IN {_CALL_TYPES}
ORDER BY number LIMIT ?
"""  # noqa: S608  constants
_SELECT_APPROVALS = f"""
SELECT {_EVENT_WITHOUT_CONTENT} FROM journal
WHERE number >= ? AND number < ? AND type IN ('approval_requested', 'approval_resolved', 'tool_finished')
    AND parent_run_id IS NULL
ORDER BY number
"""  # noqa: S608  constants
_SECONDS_LENGTH = len("2000-01-01T00:00:00")
_MAX_ROW = (1 << 63) - 1
_USAGE_TYPES = "('usage', 'approval_requested', 'approval_resolved')"


class CallRows:
    """What was decided about calls, of one conversation."""

    def __init__(self, run: RunInDatabase) -> None:
        self._run = run

    async def since(
        self, conversation_id: str, moment: datetime, after: int = -1, limit: int = 500
    ) -> tuple[tuple[Envelope, ...], int | None]:
        """Since a moment, in UTC, to the second, run by run: `limit` rows after a place. Results of calls are left out.

        And the place to go on from, None at the end. Raises StorageFailed.
        """
        return await self._run(lambda db: _calls_since(db, conversation_id, moment, after, limit))


def append_rows(connection: sqlite3.Connection, conversation: int, envelopes: Sequence[Envelope]) -> None:
    """Add rows inside the caller's transaction. To append the very same row again is harmless.

    Raises WrittenElsewhere where another one has its place: then a second process writes this run.
    """
    runs: dict[str, int] = {}
    for envelope in envelopes:
        if envelope.run_id not in runs:
            runs[envelope.run_id] = _run_number(connection, conversation, envelope.run_id)
        run = runs[envelope.run_id]
        row = (
            _row_number(run, envelope.seq),
            envelope.parent_run_id,
            envelope.turn_id,
            envelope.at.isoformat(),
            envelope.event.type,
            event_to_json(envelope.event),
        )
        try:
            connection.execute(f"INSERT INTO journal ({_JOURNAL_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", row)  # noqa: S608  a constant
        except sqlite3.IntegrityError as error:
            if not _is_same_row(connection, row):
                detail = f"{envelope.event.type} at {envelope.run_id}/{envelope.seq}"
                raise written_elsewhere_error(detail) from error
        if isinstance(envelope.event, RunFinished):
            connection.execute("UPDATE runs SET finished = 1 WHERE number = ?", (run,))


def written_elsewhere_error(detail: str) -> WrittenElsewhere:
    """Another process has written where this one was about to. `detail`: how that was seen."""
    words = "Another process has written in this conversation, so nothing more is written here."
    return WrittenElsewhere(words, detail=detail)


def delete_deltas(connection: sqlite3.Connection, conversation: int, run_id: str) -> None:
    """Delete the streamed pieces of a run, inside the caller's transaction: its messages hold them whole."""
    row = connection.execute(
        "SELECT number FROM runs WHERE conversation = ? AND id = ?", (conversation, run_id)
    ).fetchone()
    if row:
        connection.execute(
            f"DELETE FROM journal WHERE number >= ? AND number < ? AND type IN {_DELTAS}",  # noqa: S608  a constant
            (row[0] << _SEQ_BITS, (row[0] + 1) << _SEQ_BITS),
        )


def load_unfinished(connection: sqlite3.Connection, conversation: int) -> tuple[tuple[Envelope, ...], int]:
    """The rows of runs that never said RunFinished, in order, and how many could not be read."""
    runs = connection.execute(
        "SELECT number, id FROM runs WHERE conversation = ? AND finished = 0 ORDER BY number", (conversation,)
    ).fetchall()
    envelopes: list[Envelope] = []
    skipped = 0
    for number, run_id in runs:
        span = (number << _SEQ_BITS, (number + 1) << _SEQ_BITS)
        for row in connection.execute(f"{_SELECT_ROWS} ORDER BY number", span):
            envelope = _envelope(text_of(run_id), *row)
            if envelope:
                envelopes.append(envelope)
            else:
                skipped += 1
    return tuple(envelopes), skipped


def find_interrupted(connection: sqlite3.Connection) -> tuple[InterruptedRuns, ...]:
    """Conversations that are not in the trash with runs that never said RunFinished."""
    rows = connection.execute(
        "SELECT conversations.id, runs.number FROM runs JOIN conversations ON conversations.number = conversation"
        " WHERE finished = 0 AND deleted_at IS NULL ORDER BY runs.number"
    ).fetchall()
    found: dict[str, bool] = {}
    for conversation, run in rows:
        id_ = text_of(conversation)
        found[id_] = found.get(id_, False) or _waits_for_approval(connection, run)
    return tuple(InterruptedRuns(id_, waits) for id_, waits in found.items())


def _waits_for_approval(connection: sqlite3.Connection, run: int) -> bool:
    span = (run << _SEQ_BITS, (run + 1) << _SEQ_BITS)
    waiting: set[str] = set()
    for (text,) in connection.execute(_SELECT_APPROVALS, span):
        match read_event(text):
            case ApprovalRequested(tool_use_id=id_):
                waiting.add(id_)
            case ApprovalResolved(tool_use_id=id_) | ToolFinished(id=id_):
                waiting.discard(id_)
            case _:
                pass
    return bool(waiting)


def last_rows_of_open_runs(connection: sqlite3.Connection, conversation: int) -> list[tuple[int, int]]:
    """The runs that never said RunFinished, and the last row of each."""
    runs = connection.execute(
        "SELECT number FROM runs WHERE conversation = ? AND finished = 0", (conversation,)
    ).fetchall()
    return [(run, _last_row(connection, run)) for (run,) in runs]


def last_run_number(connection: sqlite3.Connection, conversation: int) -> int:
    """The number of the newest run, or 0."""
    row = connection.execute("SELECT max(number) FROM runs WHERE conversation = ?", (conversation,)).fetchone()
    return row[0] or 0


def runs_after(
    connection: sqlite3.Connection, conversation: int, last: int, others: Collection[int]
) -> list[tuple[int, str]]:
    """Runs newer than `last`, and these others; number and id."""
    marks = ", ".join(map(str, others)) or "0"
    sql = f"SELECT number, id FROM runs WHERE conversation = ? AND (number > ? OR number IN ({marks})) ORDER BY number"  # noqa: S608  numbers
    return [(number, text_of(id_)) for number, id_ in connection.execute(sql, (conversation, last))]


def rows_after(
    connection: sqlite3.Connection, run: int, run_id: str, last: int | None
) -> tuple[tuple[Envelope, ...], int]:
    """The rows of a run behind `last`, in order, and the number of the last one that there is."""
    begin = (run << _SEQ_BITS) if last is None else last + 1
    rows = connection.execute(f"{_SELECT_ROWS} ORDER BY number", (begin, (run + 1) << _SEQ_BITS)).fetchall()
    found = tuple(known for row in rows if (known := _envelope(run_id, *row)) is not None)
    return found, rows[-1][0] if rows else begin - 1


def seq_of(row: int) -> int:
    """Which row of its run a row is."""
    return row & ((1 << _SEQ_BITS) - 1)


def _last_row(connection: sqlite3.Connection, run: int) -> int:
    span = (run << _SEQ_BITS, (run + 1) << _SEQ_BITS)
    row = connection.execute("SELECT max(number) FROM journal WHERE number >= ? AND number < ?", span).fetchone()
    return row[0] if row[0] is not None else span[0]


def load_sub_run_rows(
    connection: sqlite3.Connection, conversation: int, run_ids: Collection[str]
) -> tuple[Envelope, ...]:
    """What runs that are over, and that these or runs below these started, used and were asked; in order."""
    above = set(run_ids)
    envelopes: list[Envelope] = []
    # A run is numbered behind the one that started it.
    runs = connection.execute(
        "SELECT number, id FROM runs WHERE conversation = ? AND finished = 1 AND number >"
        " (SELECT min(number) FROM runs WHERE conversation = ? AND finished = 0) ORDER BY number",
        (conversation, conversation),
    ).fetchall()
    for number, run_id in runs:
        span = (number << _SEQ_BITS, (number + 1) << _SEQ_BITS)
        sql = "SELECT parent_run_id FROM journal WHERE number >= ? AND number < ? ORDER BY number LIMIT 1"
        first = connection.execute(sql, span).fetchone()
        if first is None or text_or_none(first[0]) not in above:
            continue
        above.add(text_of(run_id))
        rows = connection.execute(f"{_SELECT_ROWS} AND type IN {_USAGE_TYPES} ORDER BY number", span)
        envelopes += [known for row in rows if (known := _envelope(text_of(run_id), *row)) is not None]
    return tuple(envelopes)


def load_call_entries(
    connection: sqlite3.Connection, before: int | None, limit: int
) -> tuple[tuple[JournalEntry, ...], int | None]:
    """What was decided about calls, in all conversations that are not in the trash: the newest `limit` rows.

    They come oldest first. `before` is where the last reading stopped, and so is the number that is answered; None at
    the end.
    """
    rows = connection.execute(_SELECT_CALL_ENTRIES, (before if before is not None else _MAX_ROW, limit)).fetchall()
    found = [
        JournalEntry(text_of(conversation), text_of(title), known)
        for number, conversation, title, run, *rest in reversed(rows)
        if (known := _envelope(text_of(run), number, *rest)) is not None
    ]
    return tuple(found), int(rows[-1][0]) if len(rows) == limit else None


def _calls_since(
    connection: sqlite3.Connection, conversation_id: str, since: datetime, after: int, limit: int
) -> tuple[tuple[Envelope, ...], int | None]:
    runs = connection.execute(
        "SELECT runs.number, runs.id FROM runs JOIN conversations ON conversations.number = conversation"
        " WHERE conversations.id = ? AND runs.number >= ? ORDER BY runs.number",
        (conversation_id, after >> _SEQ_BITS),
    ).fetchall()
    moment = since.isoformat()[:_SECONDS_LENGTH]
    found: list[Envelope] = []
    left = limit
    for number, run_id in runs:
        span = (max((number << _SEQ_BITS) - 1, after), (number + 1) << _SEQ_BITS)
        rows = connection.execute(_SELECT_CALLS_OF_RUN, (*span, moment, left)).fetchall()
        found += [known for row in rows if (known := _envelope(text_of(run_id), *row)) is not None]
        left -= len(rows)
        if left == 0:
            return tuple(found), int(rows[-1][0])
    return tuple(found), None


def _envelope(
    run_id: str, number: int, parent: str | bytes | None, turn: str | bytes | None, at: str, event: str
) -> Envelope | None:
    known = read_event(event)
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return None
    if known is None:
        return None
    return Envelope(seq_of(number), run_id, text_or_none(parent), text_or_none(turn), moment, known)


def _is_same_row(connection: sqlite3.Connection, row: tuple[int, str | None, str | None, str, str, str]) -> bool:
    """Whether this very row was written before. Text that is no UTF-8 is stored as bytes."""
    sql = f"SELECT {_JOURNAL_COLUMNS} FROM journal WHERE number = ?"  # noqa: S608  a constant
    there = connection.execute(sql, row[:1]).fetchone()
    return (
        there is not None and tuple(value if isinstance(value, int) else text_or_none(value) for value in there) == row
    )


def _row_number(run: int, seq: int) -> int:
    if not 0 <= seq < 1 << _SEQ_BITS:
        raise WrongUse(Sentence("“{seq}” is no place in a run.", {"seq": str(seq)}))
    return run << _SEQ_BITS | seq


def _run_number(connection: sqlite3.Connection, conversation: int, run_id: str) -> int:
    connection.execute("INSERT OR IGNORE INTO runs (conversation, id) VALUES (?, ?)", (conversation, run_id))
    row = connection.execute(
        "SELECT number FROM runs WHERE conversation = ? AND id = ?", (conversation, run_id)
    ).fetchone()
    return int(row[0])
