"""Reads along while another process writes a conversation: what came since the last look."""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from heapq import merge

from desktop_agent.storage.database import conversations, journal, messages
from desktop_agent.storage.records import ConversationRecord, LoadedConversation
from desktop_agent.vocabulary.engine_events import Envelope
from desktop_agent.vocabulary.messages import Message

# Neighbouring pieces of these are one row, which has the number of the last; of the first three, all are deleted when
# their run is over.
_DELTA_EVENTS = {"content_delta", "thinking_delta", "tool_args_delta", "tool_progress"}


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """How far a conversation was read. `version` changes with every commit of another connection.

    `rows` has the last row of each run that is not over, by the number of the run; runs behind `run` are new.
    """

    version: int
    head: int | None
    run: int
    rows: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class NewRows:
    """What came since a position. `is_continued` False: it does not go on from there, so it must be loaded anew."""

    position: ReadPosition
    record: ConversationRecord
    messages: tuple[Message, ...] = ()
    envelopes: tuple[Envelope, ...] = ()
    is_continued: bool = True


def load_conversation(connection: sqlite3.Connection, id_: str) -> LoadedConversation:
    """The conversation with the branch in view and the journal of what never ended. Raises WrongUse."""
    number = conversations.conversation_number(connection, id_)
    envelopes, skipped = journal.load_unfinished(connection, number)
    below = journal.load_sub_run_rows(connection, number, {envelope.run_id for envelope in envelopes})
    record = conversations.load_record(connection, id_)
    return LoadedConversation(record, messages.load_branch(connection, number), envelopes, skipped, below)


def begin_following(connection: sqlite3.Connection, id_: str) -> tuple[LoadedConversation, ReadPosition]:
    """The same while somebody may write, all of one moment, and where that is."""
    version = _data_version(connection)
    connection.execute("BEGIN")
    try:
        number = conversations.conversation_number(connection, id_)
        rows = dict(journal.last_rows_of_open_runs(connection, number))
        found = ReadPosition(version, _head(connection, number), journal.last_run_number(connection, number), rows)
        return load_conversation(connection, id_), found
    finally:
        connection.execute("COMMIT")


def load_news_since(connection: sqlite3.Connection, id_: str, position: ReadPosition) -> NewRows | None:
    """What came since then; None when nothing was written at all. Raises WrongUse when the conversation is gone."""
    version = _data_version(connection)
    if version == position.version:
        return None
    connection.execute("BEGIN")
    try:
        return _load_news(connection, id_, position, version)
    finally:
        connection.execute("COMMIT")


def _load_news(connection: sqlite3.Connection, id_: str, position: ReadPosition, version: int) -> NewRows:
    number = conversations.conversation_number(connection, id_)
    record = conversations.load_record(connection, id_)
    head = _head(connection, number)
    new, is_behind = messages.messages_after(connection, head, position.head)
    rows = dict(position.rows)
    read: list[tuple[Envelope, ...]] = []
    is_whole = True
    for run, run_id in journal.runs_after(connection, number, position.run, rows):
        found, last = journal.rows_after(connection, run, run_id, rows.get(run))
        is_whole = is_whole and _is_gapless(found, journal.seq_of(rows[run]) if run in rows else None)
        rows[run] = last
        read.append(found)
    now = ReadPosition(version, head, max((position.run, *rows)), rows)
    envelopes = tuple(merge(*read, key=lambda envelope: envelope.at))
    return NewRows(now, record, new, envelopes, is_behind and is_whole)


def _is_gapless(envelopes: tuple[Envelope, ...], last: int | None) -> bool:
    """Whether nothing is missing between these: pieces of a run that was over before it was read are deleted."""
    for envelope in envelopes:
        is_next = last is None or envelope.seq == last + 1
        if not is_next and envelope.event.type not in _DELTA_EVENTS:
            return False
        last = envelope.seq
    return True


def _data_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def _head(connection: sqlite3.Connection, conversation: int) -> int | None:
    return connection.execute("SELECT head FROM conversations WHERE number = ?", (conversation,)).fetchone()[0]
