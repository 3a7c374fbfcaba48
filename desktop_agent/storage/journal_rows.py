"""The rows of the journal, run by run, and following along while another process writes them."""

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import merge
from itertools import pairwise
from typing import Any, Literal

from desktop_agent.storage import conversation_rows
from desktop_agent.storage.branch_parts import load_branch_end
from desktop_agent.storage.connection import RunInDatabase, text_of, text_or_none
from desktop_agent.storage.records import (
    BranchPart,
    ConversationRecord,
    JournalEntry,
    LoadedConversation,
    event_to_json,
    message_from_row,
    read_event,
)
from desktop_agent.types.engine_events import ContextCompacted, Envelope, RunFinished
from desktop_agent.types.errors import Sentence, WrittenElsewhere, WrongUse
from desktop_agent.types.messages import Message

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
# What is needed of a turn whose answer is committed: how much was used, and how long it worked.
_COUNTED_TYPES = """('run_started', 'turn_started', 'tool_started', 'tool_finished', 'tool_results_received',
    'approval_requested', 'approval_resolved', 'question_asked', 'question_answered', 'context_compacted',
    'continuation_injected', 'cost_updated')"""
_SELECT_COUNTED_ROWS = f"""
SELECT number, parent_run_id, turn_id, at, {_EVENT_WITHOUT_CONTENT} FROM journal
WHERE number >= ? AND number < ? AND type IN {_COUNTED_TYPES}"""  # noqa: S608  constants
_ANSWER_ID = "CASE WHEN json_valid(j.event) THEN j.event ->> 'message_id' END"
_SELECT_STARTS = f"""
SELECT j.type, j.number, m.number FROM journal j LEFT JOIN messages m
    ON j.type = 'turn_started' AND m.conversation = ? AND m.id = {_ANSWER_ID}
WHERE j.number >= ? AND j.number < ? AND j.type IN ('run_started', 'turn_started') AND j.parent_run_id IS NULL
ORDER BY j.number"""  # noqa: S608  constants
_SELECT_LAST_TURN = """
SELECT number FROM journal WHERE number >= ? AND number < ? AND type = 'turn_started' AND parent_run_id IS NULL
ORDER BY number DESC LIMIT 1"""
_SELECT_ANSWERS = f"""
SELECT m.id, m.role, m.state,
    CASE WHEN json_valid(m.body) THEN json_set(m.body, '$.blocks', json('[]')) ELSE m.body END
FROM runs r
CROSS JOIN journal j ON j.number >= r.number << 32 AND j.number < (r.number + 1) << 32
CROSS JOIN messages m ON m.conversation = r.conversation AND m.id = {_ANSWER_ID}
WHERE r.conversation = ? AND r.finished = 0 AND j.type = 'turn_started' AND j.parent_run_id IS NULL
ORDER BY m.number"""  # noqa: S608  constants
_SELECT_SUMMARIES = """
SELECT id, role, state, body FROM messages
WHERE conversation = ? AND number <= ? AND role = 'system' ORDER BY number"""
_SECONDS_LENGTH = len("2000-01-01T00:00:00")
_MAX_ROW = (1 << 63) - 1
_USAGE_TYPES = "('usage', 'context_compacted', 'approval_requested', 'approval_resolved')"


class CallRows:
    """The journal rows about calls, of one conversation."""

    def __init__(self, run: RunInDatabase) -> None:
        self._run = run

    async def since(
        self, conversation_id: str, moment: datetime, after: int = -1, limit: int = 500
    ) -> tuple[tuple[Envelope, ...], int | None]:
        """Return up to `limit` rows since a moment (UTC, to the second), run by run, after a place.

        The second value is the place to continue from, None at the end. Results of calls are left out. Raises
        StorageFailed.
        """
        return await self._run(lambda db: _calls_since(db, conversation_id, moment, after, limit))


def append_rows(connection: sqlite3.Connection, conversation: int, envelopes: Sequence[Envelope]) -> None:
    """Add rows inside the caller's transaction. To append the very same row again is harmless.

    Raises WrittenElsewhere where another row has its place: then a second process writes this run.
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
    """Return the error for a row that another process has written here. `detail`: how that was noticed."""
    text = "Another process has written to this conversation, so this window no longer saves to it."
    return WrittenElsewhere(text, detail=detail)


def delete_deltas(connection: sqlite3.Connection, conversation: int, run_id: str) -> None:
    """Delete the streamed pieces of a run, inside the caller's transaction: its messages hold them whole."""
    row = connection.execute(
        "SELECT number FROM runs WHERE conversation = ? AND id = ?", (conversation, run_id)
    ).fetchone()
    if row:
        connection.execute(
            f"DELETE FROM journal WHERE number >= ? AND number < ? AND type IN {_DELTAS}",  # noqa: S608  a constant
            conversation_rows.journal_span(row[0]),
        )


_Extent = Literal["whole", "counted", "last turn"]
"""Which rows of an unfinished run to load. Counted: of turns with a committed answer, but for the last one, only the
rows of `_COUNTED_TYPES`, and results of calls without content."""


def load_unfinished(
    connection: sqlite3.Connection, conversation: int, extent: _Extent
) -> tuple[tuple[Envelope, ...], int]:
    """Return the rows of runs without RunFinished, in order, and how many could not be read."""
    runs = connection.execute(
        "SELECT number, id FROM runs WHERE conversation = ? AND finished = 0 ORDER BY number", (conversation,)
    ).fetchall()
    envelopes: list[Envelope] = []
    skipped = 0
    for number, run_id in runs:
        for row in _rows_of_extent(connection, conversation, number, extent):
            envelope = _envelope(text_of(run_id), *row)
            if envelope:
                envelopes.append(envelope)
            else:
                skipped += 1
    return tuple(envelopes), skipped


def _rows_of_extent(
    connection: sqlite3.Connection, conversation: int, run: int, extent: _Extent
) -> Iterator[tuple[Any, ...]]:
    begin, end = span = conversation_rows.journal_span(run)
    if extent == "last turn":
        turn = connection.execute(_SELECT_LAST_TURN, span).fetchone()
        begin = begin if turn is None else turn[0]
    elif extent == "counted":
        starts = connection.execute(_SELECT_STARTS, (conversation, *span)).fetchall()
        for first, following in _joined(_committed_turns(starts)):
            yield from connection.execute(f"{_SELECT_ROWS} ORDER BY number", (begin, first))
            yield from connection.execute(f"{_SELECT_COUNTED_ROWS} ORDER BY number", (first, following))
            begin = following
    yield from connection.execute(f"{_SELECT_ROWS} ORDER BY number", (begin, end))


def _committed_turns(starts: Sequence[tuple[str, int, int | None]]) -> Sequence[tuple[int, int]]:
    """Return the first row of each turn whose answer is committed, but for the last one, and of the turn after it.

    Return none for a run that was resumed: how long it had worked is computed from its last row before that.
    """
    turns = [(row, answer) for kind, row, answer in starts if kind == "turn_started"]
    if len(starts) > len(turns) + 1:
        return ()
    committed = [(begin, end) for (begin, answer), (end, _) in pairwise(turns) if answer is not None]
    # The calls of the last one may be open. Where no turn follows it, it is not in `committed` anyway.
    return committed if turns and turns[-1][1] is not None else committed[:-1]


def _joined(spans: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Return the same rows in as few spans as there can be."""
    joined: list[tuple[int, int]] = []
    for begin, end in spans:
        if joined and joined[-1][1] == begin:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((begin, end))
    return joined


def _load_earlier(
    connection: sqlite3.Connection, conversation: int, part: BranchPart, envelopes: Sequence[Envelope]
) -> tuple[Message, ...]:
    """Return the answers of unfinished runs that a part of the branch lacks, and summaries where they made any.

    The answers have no blocks.
    """
    if part.above is None or not envelopes:
        return ()
    known = {message.id for message in part.messages}
    rows = connection.execute(_SELECT_ANSWERS, (conversation,)).fetchall()
    if any(isinstance(envelope.event, ContextCompacted) for envelope in envelopes):
        rows += connection.execute(_SELECT_SUMMARIES, (conversation, part.above.number)).fetchall()
    return tuple(message_from_row(*row) for row in rows if text_of(row[0]) not in known)


def runs_after(
    connection: sqlite3.Connection, conversation: int, last: int, others: Collection[int]
) -> list[tuple[int, str]]:
    """Return number and id of the runs newer than `last`, and of these others."""
    marks = ", ".join(map(str, others)) or "0"
    sql = f"SELECT number, id FROM runs WHERE conversation = ? AND (number > ? OR number IN ({marks})) ORDER BY number"  # noqa: S608  numbers
    return [(number, text_of(id_)) for number, id_ in connection.execute(sql, (conversation, last))]


def rows_after(
    connection: sqlite3.Connection, run: int, run_id: str, last: int | None
) -> tuple[tuple[Envelope, ...], int]:
    """Return the rows of a run after `last`, in order, and the number of its last one."""
    begin, end = conversation_rows.journal_span(run)
    begin = begin if last is None else last + 1
    rows = connection.execute(f"{_SELECT_ROWS} ORDER BY number", (begin, end)).fetchall()
    envelopes = tuple(envelope for row in rows if (envelope := _envelope(run_id, *row)) is not None)
    return envelopes, rows[-1][0] if rows else begin - 1


def seq_of(row: int) -> int:
    """Return the position of a row in its run."""
    return row & ((1 << conversation_rows.SEQ_BITS) - 1)


def _last_row(connection: sqlite3.Connection, run: int) -> int:
    span = conversation_rows.journal_span(run)
    row = connection.execute("SELECT max(number) FROM journal WHERE number >= ? AND number < ?", span).fetchone()
    return row[0] if row[0] is not None else span[0]


def load_sub_run_rows(
    connection: sqlite3.Connection, conversation: int, run_ids: Collection[str]
) -> tuple[Envelope, ...]:
    """Return, in order, usage and approvals of finished runs below these."""
    ancestors = set(run_ids)
    envelopes: list[Envelope] = []
    # A run has a larger number than the one that started it.
    runs = connection.execute(
        "SELECT number, id FROM runs WHERE conversation = ? AND finished = 1 AND number >"
        " (SELECT min(number) FROM runs WHERE conversation = ? AND finished = 0) ORDER BY number",
        (conversation, conversation),
    ).fetchall()
    for number, run_id in runs:
        span = conversation_rows.journal_span(number)
        sql = "SELECT parent_run_id FROM journal WHERE number >= ? AND number < ? ORDER BY number LIMIT 1"
        first = connection.execute(sql, span).fetchone()
        if first is None or text_or_none(first[0]) not in ancestors:
            continue
        ancestors.add(text_of(run_id))
        rows = connection.execute(f"{_SELECT_ROWS} AND type IN {_USAGE_TYPES} ORDER BY number", span)
        envelopes += [envelope for row in rows if (envelope := _envelope(text_of(run_id), *row)) is not None]
    return tuple(envelopes)


def load_call_entries(
    connection: sqlite3.Connection, before: int | None, limit: int
) -> tuple[tuple[JournalEntry, ...], int | None]:
    """Return the newest `limit` rows about calls in all conversations outside the trash, oldest first.

    `before` is the place where the last page ended; the second value is the one for the next page, None at the end.
    """
    rows = connection.execute(_SELECT_CALL_ENTRIES, (before if before is not None else _MAX_ROW, limit)).fetchall()
    entries = [
        JournalEntry(text_of(conversation), text_of(title), envelope)
        for number, conversation, title, run, *columns in reversed(rows)
        if (envelope := _envelope(text_of(run), number, *columns)) is not None
    ]
    return tuple(entries), int(rows[-1][0]) if len(rows) == limit else None


def _calls_since(
    connection: sqlite3.Connection, conversation_id: str, since: datetime, after: int, limit: int
) -> tuple[tuple[Envelope, ...], int | None]:
    runs = connection.execute(
        "SELECT runs.number, runs.id FROM runs JOIN conversations ON conversations.number = conversation"
        " WHERE conversations.id = ? AND runs.number >= ? ORDER BY runs.number",
        (conversation_id, after >> conversation_rows.SEQ_BITS),
    ).fetchall()
    moment = since.isoformat()[:_SECONDS_LENGTH]
    envelopes: list[Envelope] = []
    remaining = limit
    for number, run_id in runs:
        begin, end = conversation_rows.journal_span(number)
        values = (max(begin - 1, after), end, moment, remaining)
        rows = connection.execute(_SELECT_CALLS_OF_RUN, values).fetchall()
        envelopes += [envelope for row in rows if (envelope := _envelope(text_of(run_id), *row)) is not None]
        remaining -= len(rows)
        if remaining == 0:
            return tuple(envelopes), int(rows[-1][0])
    return tuple(envelopes), None


def _envelope(
    run_id: str, number: int, parent: str | bytes | None, turn: str | bytes | None, at: str, event: str
) -> Envelope | None:
    content = read_event(event)
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return None
    if content is None:
        return None
    return Envelope(seq_of(number), run_id, text_or_none(parent), text_or_none(turn), moment, content)


def _is_same_row(connection: sqlite3.Connection, row: tuple[int, str | None, str | None, str, str, str]) -> bool:
    """Return whether this very row was written before. Text that is no UTF-8 is stored as bytes."""
    sql = f"SELECT {_JOURNAL_COLUMNS} FROM journal WHERE number = ?"  # noqa: S608  a constant
    stored = connection.execute(sql, row[:1]).fetchone()
    if stored is None:
        return False
    return tuple(value if isinstance(value, int) else text_or_none(value) for value in stored) == row


def _row_number(run: int, seq: int) -> int:
    if not 0 <= seq < 1 << conversation_rows.SEQ_BITS:
        raise WrongUse(Sentence("“{seq}” is not a place in a run.", {"seq": str(seq)}))
    return run << conversation_rows.SEQ_BITS | seq


def _run_number(connection: sqlite3.Connection, conversation: int, run_id: str) -> int:
    connection.execute("INSERT OR IGNORE INTO runs (conversation, id) VALUES (?, ?)", (conversation, run_id))
    row = connection.execute(
        "SELECT number FROM runs WHERE conversation = ? AND id = ?", (conversation, run_id)
    ).fetchone()
    return int(row[0])


# Neighbouring pieces of these are one row, which has the number of the last; of the first three, all are deleted when
# their run is over.
_DELTA_EVENTS = {"content_delta", "thinking_delta", "tool_args_delta", "tool_progress"}


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """How far a conversation was read. `version` changes with every commit of another connection.

    `head_id` is the id of the message `head`: the number of one that was deleted is given to another. `rows` has the
    last row of each run that is not over, by the number of the run; runs after `run` are new.
    """

    version: int
    head: int | None
    head_id: str | None
    run: int
    rows: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class NewRows:
    """The rows since a position. `is_continued` False: they do not continue it, so it must be reloaded."""

    position: ReadPosition
    record: ConversationRecord
    messages: tuple[Message, ...] = ()
    envelopes: tuple[Envelope, ...] = ()
    is_continued: bool = True


def load_conversation(
    connection: sqlite3.Connection, id_: str, at_least: int | None = None, extent: _Extent = "counted"
) -> LoadedConversation:
    """Return the conversation with the branch in view and the journal of unfinished runs. Raises WrongUse.

    With `at_least`, about so many messages from the end of the branch, and of the journal the rows of this extent.
    """
    number = conversation_rows.conversation_number(connection, id_)
    envelopes, skipped = load_unfinished(connection, number, "whole" if at_least is None else extent)
    below = load_sub_run_rows(connection, number, {envelope.run_id for envelope in envelopes})
    record = conversation_rows.load_record(connection, id_)
    part = load_branch_end(connection, number, at_least)
    earlier = () if extent == "last turn" else _load_earlier(connection, number, part, envelopes)
    return LoadedConversation(record, part, envelopes, skipped, below, earlier)


Followed = tuple[LoadedConversation, ReadPosition]


def begin_following(connection: sqlite3.Connection, id_: str, at_least: int | None) -> Followed:
    """Load a conversation that another process may write, as of one moment, and return the position of that.

    With `at_least`, about so many messages from the end of the branch, and the journal since the last turn began.
    """
    version = _data_version(connection)
    connection.execute("BEGIN")
    try:
        number = conversation_rows.conversation_number(connection, id_)
        runs = connection.execute("SELECT number FROM runs WHERE conversation = ? AND finished = 0", (number,))
        rows = {run: _last_row(connection, run) for (run,) in runs.fetchall()}
        (newest,) = connection.execute("SELECT max(number) FROM runs WHERE conversation = ?", (number,)).fetchone()
        position = ReadPosition(version, *_head(connection, number), newest or 0, rows)
        return load_conversation(connection, id_, at_least, "last turn"), position
    finally:
        connection.execute("COMMIT")


def load_news_since(connection: sqlite3.Connection, id_: str, position: ReadPosition) -> NewRows | None:
    """Return the rows since then; None when nothing was written. Raises WrongUse when the conversation is gone."""
    version = _data_version(connection)
    if version == position.version:
        return None
    connection.execute("BEGIN")
    try:
        return _load_news(connection, id_, position, version)
    finally:
        connection.execute("COMMIT")


def _load_news(connection: sqlite3.Connection, id_: str, position: ReadPosition, version: int) -> NewRows:
    number = conversation_rows.conversation_number(connection, id_)
    record = conversation_rows.load_record(connection, id_)
    head, head_id = _head(connection, number)
    new, is_behind = conversation_rows.messages_after(connection, head, position.head)
    is_behind = is_behind and _message_id(connection, position.head) == position.head_id
    rows = dict(position.rows)
    read: list[tuple[Envelope, ...]] = []
    is_whole = True
    for run, run_id in runs_after(connection, number, position.run, rows):
        run_rows, last = rows_after(connection, run, run_id, rows.get(run))
        is_whole = is_whole and _is_gapless(run_rows, seq_of(rows[run]) if run in rows else None)
        rows[run] = last
        read.append(run_rows)
    now = ReadPosition(version, head, head_id, max((position.run, *rows)), rows)
    envelopes = tuple(merge(*read, key=lambda envelope: envelope.at))
    return NewRows(now, record, new, envelopes, is_behind and is_whole)


def _is_gapless(envelopes: tuple[Envelope, ...], last: int | None) -> bool:
    """Return whether no rows are missing: streamed pieces of a run that ended before it was read are deleted."""
    for envelope in envelopes:
        is_next = last is None or envelope.seq == last + 1
        if not is_next and envelope.event.type not in _DELTA_EVENTS:
            return False
        last = envelope.seq
    return True


def _data_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def _head(connection: sqlite3.Connection, conversation: int) -> tuple[int | None, str | None]:
    (head,) = connection.execute("SELECT head FROM conversations WHERE number = ?", (conversation,)).fetchone()
    return head, _message_id(connection, head)


def _message_id(connection: sqlite3.Connection, number: int | None) -> str | None:
    row = connection.execute("SELECT id FROM messages WHERE number = ?", (number,)).fetchone()
    return None if row is None else text_of(row[0])
