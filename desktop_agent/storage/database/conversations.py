"""The rows of conversations and of their drafts."""

import sqlite3
from datetime import UTC, datetime, timedelta
from typing import Any

from desktop_agent.storage.database.connection import (
    INDEX_MISMATCH,
    InconsistentData,
    text_of,
    text_or_none,
    transaction,
)
from desktop_agent.storage.json_form import (
    draft_to_json,
    parameters_to_json,
    read_draft,
    read_parameters,
    read_reasoning,
    read_state,
    reasoning_to_json,
    state_to_json,
)
from desktop_agent.storage.records import ConversationChanges, ConversationRecord, Draft
from desktop_agent.vocabulary.errors import Sentence, WrongUse
from desktop_agent.vocabulary.messages import new_id

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SELECT_CONVERSATION = """
    SELECT id, title, created_at, updated_at, endpoint_id, model, workspace, message_count, title_is_automatic,
        (SELECT messages.id FROM messages WHERE messages.number = head), deleted_at, reasoning, parameters, state
    FROM conversations """
# The index alone would answer with the id that stands in it: what it leads to is looked at as well.
_NUMBER_BY_ID = """
    SELECT number, (SELECT same.id FROM conversations AS same WHERE same.number = conversations.number)
    FROM conversations WHERE id = ?"""
_EXISTS_WITHOUT_INDEX = "SELECT 1 FROM conversations NOT INDEXED WHERE id = ?"
_COUNT_BOTH_WAYS = """
    SELECT (SELECT count(*) FROM conversations INDEXED BY conversations_by_time WHERE deleted_at IS NULL),
        (SELECT count(*) FROM conversations NOT INDEXED WHERE deleted_at IS NULL)"""
_SIMPLE_CHANGES = (
    "title",
    "title_is_automatic",
    "endpoint_id",
    "model",
    "workspace",
    "reasoning",
    "parameters",
    "state",
)
NO_CONVERSATION_NUMBER = 0


def to_microseconds(moment: datetime) -> int:
    """A moment as the columns hold it."""
    return (moment - _EPOCH) // _MICROSECOND


def _from_microseconds(value: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=value)
    except OverflowError:  # carried over from a damaged page
        return _EPOCH


def _now_microseconds() -> int:
    return to_microseconds(datetime.now(UTC))


def _record_from_row(row: tuple[Any, ...]) -> ConversationRecord:
    return ConversationRecord(
        text_of(row[0]),
        text_of(row[1]),
        _from_microseconds(row[2]),
        _from_microseconds(row[3]),
        text_or_none(row[4]),
        text_or_none(row[5]),
        text_or_none(row[6]),
        row[7],
        bool(row[8]),
        text_or_none(row[9]),
        None if row[10] is None else _from_microseconds(row[10]),
        read_reasoning(text_or_none(row[11])),
        read_parameters(text_or_none(row[12])),
        read_state(text_or_none(row[13])),
    )


def list_conversations(
    connection: sqlite3.Connection, limit: int | None, *, in_trash: bool
) -> tuple[ConversationRecord, ...]:
    """The newest first. Raises Contradiction where the index by which they are found lacks one, or has one too many."""
    if not in_trash and len(set(connection.execute(_COUNT_BOTH_WAYS).fetchone())) > 1:
        raise InconsistentData(INDEX_MISMATCH)
    which = "deleted_at IS NOT NULL" if in_trash else "deleted_at IS NULL"
    order = "deleted_at" if in_trash else "updated_at"
    sql = f"{_SELECT_CONVERSATION} WHERE {which} ORDER BY {order} DESC, number DESC LIMIT ?"
    return tuple(map(_record_from_row, connection.execute(sql, (-1 if limit is None else limit,))))


def conversation_number(connection: sqlite3.Connection, id_: str) -> int:
    """The row number. Raises WrongUse if there is no such conversation, and Contradiction if only its index says so."""
    row = connection.execute(_NUMBER_BY_ID, (id_,)).fetchone()
    if row is None or text_or_none(row[1]) != id_:
        # Unknown ids are rare: then all rows are gone through.
        if row is not None or connection.execute(_EXISTS_WITHOUT_INDEX, (id_,)).fetchone() is not None:
            raise InconsistentData(INDEX_MISMATCH)
        raise WrongUse(Sentence("There is no conversation “{id}”.", {"id": id_}))
    return int(row[0])


def load_record(connection: sqlite3.Connection, id_: str) -> ConversationRecord:
    """One record, also from the trash. Raises WrongUse."""
    row = connection.execute(
        f"{_SELECT_CONVERSATION} WHERE number = ?", (conversation_number(connection, id_),)
    ).fetchone()
    return _record_from_row(row)


def create_conversation(
    connection: sqlite3.Connection,
    values: dict[str, str | bool | None],
    given_id: str | None = None,
) -> ConversationRecord:
    """A new conversation with these columns."""
    id_, at = given_id or new_id(), _now_microseconds()
    columns = ("id", "created_at", "updated_at", *values)
    sql = f"INSERT INTO conversations ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608  names come from the store itself
    with transaction(connection):
        connection.execute(sql, (id_, at, at, *values.values()))
    return load_record(connection, id_)


def update_conversation(connection: sqlite3.Connection, id_: str, changes: ConversationChanges) -> ConversationRecord:
    """Change what is given. Raises WrongUse for an unknown conversation, message or property."""
    values: dict[str, Any] = {**changes}
    unknown = set(values) - set(_SIMPLE_CHANGES) - {"head_message_id"}
    if unknown:
        raise WrongUse(Sentence("A conversation has no “{name}” to change.", {"name": min(unknown)}))
    if "title" in values:
        values.setdefault("title_is_automatic", False)
    if "reasoning" in values:
        values["reasoning"] = reasoning_to_json(values["reasoning"])
    if "parameters" in values:
        values["parameters"] = parameters_to_json(values["parameters"])
    if "state" in values:
        values["state"] = state_to_json(values["state"])
    number = conversation_number(connection, id_)
    with transaction(connection):
        if "head_message_id" in values:
            _move_head(connection, number, values.pop("head_message_id"))
        for name, value in values.items():
            connection.execute(f"UPDATE conversations SET {name} = ? WHERE number = ?", (value, number))  # noqa: S608  checked above
    return load_record(connection, id_)


def _move_head(connection: sqlite3.Connection, number: int, message_id: str | None) -> None:
    head, position = None, 0
    if message_id is not None:
        sql = "SELECT number, position FROM messages WHERE conversation = ? AND id = ?"
        row = connection.execute(sql, (number, message_id)).fetchone()
        if row is None:
            raise WrongUse(Sentence("There is no message “{id}” in this conversation.", {"id": message_id}))
        head, position = row
    connection.execute(
        "UPDATE conversations SET head = ?, message_count = ? WHERE number = ?", (head, position, number)
    )


def set_deleted(connection: sqlite3.Connection, id_: str, *, deleted: bool) -> None:
    """Into the trash, or out of it. One that is in the trash already keeps its date. Raises WrongUse."""
    number = conversation_number(connection, id_)
    new = "coalesce(deleted_at, ?)" if deleted else "nullif(?, ?)"
    at = _now_microseconds()
    with transaction(connection):
        connection.execute(
            f"UPDATE conversations SET deleted_at = {new} WHERE number = ?",  # noqa: S608  one of two constants
            (at, number) if deleted else (at, at, number),
        )


def purge_trash(connection: sqlite3.Connection, older_than: timedelta) -> int:
    """Remove for good what has been in the trash for so long; returns how many conversations."""
    before = _now_microseconds() - older_than // _MICROSECOND
    sql = "SELECT number FROM conversations WHERE deleted_at IS NOT NULL AND deleted_at <= ?"
    numbers = [int(row[0]) for row in connection.execute(sql, (before,))]
    if not numbers:
        return 0
    with transaction(connection):
        for number in numbers:
            _delete_rows(connection, number)
    return len(numbers)


def purge_conversation(connection: sqlite3.Connection, id_: str) -> None:
    """Remove this one for good. Raises WrongUse for one that is unknown or not in the trash."""
    number = conversation_number(connection, id_)
    sql = "SELECT 1 FROM conversations WHERE number = ? AND deleted_at IS NOT NULL"
    if connection.execute(sql, (number,)).fetchone() is None:
        raise WrongUse("This conversation is not in the trash.", "Delete it first.")
    with transaction(connection):
        _delete_rows(connection, number)


def _delete_rows(connection: sqlite3.Connection, number: int) -> None:
    for (run,) in connection.execute("SELECT number FROM runs WHERE conversation = ?", (number,)).fetchall():
        connection.execute("DELETE FROM journal WHERE number >= ? AND number < ?", (run << 32, (run + 1) << 32))
    connection.execute("DELETE FROM drafts WHERE number = ?", (number,))
    connection.execute("DELETE FROM picture_uses WHERE conversation = ?", (number,))
    connection.execute(
        "DELETE FROM rules WHERE conversation = (SELECT id FROM conversations WHERE number = ?)", (number,)
    )
    connection.execute("DELETE FROM conversations WHERE number = ?", (number,))


def save_draft(connection: sqlite3.Connection, number: int, draft: Draft) -> None:
    """Keep a draft, inside the caller's transaction; an empty one is removed."""
    if draft.text or draft.images or draft.resources or draft.pasted:
        connection.execute("INSERT OR REPLACE INTO drafts (number, body) VALUES (?, ?)", (number, draft_to_json(draft)))
    else:
        connection.execute("DELETE FROM drafts WHERE number = ?", (number,))


def load_draft(connection: sqlite3.Connection, number: int) -> Draft:
    """The draft, or an empty one."""
    row = connection.execute("SELECT body FROM drafts WHERE number = ?", (number,)).fetchone()
    return read_draft(text_of(row[0])) if row else Draft()
