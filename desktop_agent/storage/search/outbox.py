"""The part of the main database that tells the search index what has changed.

Triggers note row numbers, in order, in the transaction of the change. The indexer takes them, writes its index, and
then removes them: at least once, and harmless when repeated. Nothing is noted until there is an index.

`token` says to which state of the database an index belongs: both change with each removal, so the index of another
database, or of an older or newer state of this one (a restored backup), is known as such and made anew.
"""

from dataclasses import dataclass
from typing import Any

from desktop_agent.storage.connection import DatabaseConnection, text_of, text_or_none, transaction

# One reading holds up the journal for less than a millisecond.
MAX_CHANGES = 64
MAX_ROWS = 128
_MAX_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A message as it is stored."""

    number: int
    conversation: int
    id: str
    role: str
    state: str
    created_at: str
    body: str


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """What the index knows of a conversation. `created_at` is in microseconds since 1970."""

    number: int
    id: str
    title: str
    model: str | None
    workspace: str | None
    created_at: int
    is_deleted: bool


@dataclass(frozen=True, slots=True)
class GoneMessage:
    """There is no message of this number any more."""

    number: int


@dataclass(frozen=True, slots=True)
class GoneConversation:
    """A conversation of this number was deleted with its messages; a newer one may have the number by now."""

    number: int


ChangedRow = MessageRow | ConversationRow | GoneMessage | GoneConversation


@dataclass(frozen=True, slots=True)
class Changes:
    """The oldest changes, in order, as the rows are now; `last` is the place of the last one.

    `token` is that of the database when they were read.
    """

    token: str | None
    rows: tuple[ChangedRow, ...] = ()
    last: int = 0


def read_token(connection: DatabaseConnection) -> str | None:
    """Return the token; None where no index was begun."""
    row = connection.execute("SELECT token FROM search_state").fetchone()
    return None if row is None else text_of(row[0])


def begin_index(connection: DatabaseConnection, token: str) -> tuple[int, int]:
    """Note every change from now on; return the numbers below which all conversations and messages were before."""
    with transaction(connection):
        connection.execute("DELETE FROM search_changes")
        connection.execute("INSERT OR REPLACE INTO search_state (number, token) VALUES (1, ?)", (token,))
        row = connection.execute(
            "SELECT (SELECT coalesce(max(number), 0) + 1 FROM conversations),"
            " (SELECT coalesce(max(number), 0) + 1 FROM messages)"
        ).fetchone()
    return int(row[0]), int(row[1])


def read_changes(connection: DatabaseConnection) -> Changes:
    """Return the oldest changes."""
    connection.execute("BEGIN")
    try:
        rows: list[ChangedRow] = []
        last, size = 0, 0
        noted = connection.execute(
            "SELECT number, kind, subject FROM search_changes ORDER BY number LIMIT ?", (MAX_CHANGES,)
        )
        for number, kind, subject in noted.fetchall():
            row = _read_subject(connection, text_of(kind), subject)
            rows.append(row)
            last = number
            size += len(row.body) if isinstance(row, MessageRow) else 0
            if size > _MAX_BYTES:
                break
        return Changes(read_token(connection), tuple(rows), last)
    finally:
        connection.execute("COMMIT")


def remove_changes(connection: DatabaseConnection, changes: Changes, token: str) -> None:
    """Remove what the index has taken in, and give the database its new token.

    Nothing happens where another process has done so meanwhile. The disk is not waited for: what comes back after a
    power failure is taken in once more.
    """
    (usual,) = connection.execute("PRAGMA synchronous").fetchone()
    connection.execute("PRAGMA synchronous=NORMAL")
    try:
        with transaction(connection):
            if read_token(connection) == changes.token:
                connection.execute("DELETE FROM search_changes WHERE number <= ?", (changes.last,))
                connection.execute("UPDATE search_state SET token = ?", (token,))
    finally:
        connection.execute(f"PRAGMA synchronous={usual}")


_MESSAGE_COLUMNS = "number, conversation, id, role, state, created_at, body"
_CONVERSATION_COLUMNS = "number, id, title, model, workspace, created_at, deleted_at IS NOT NULL"


def read_messages_below(connection: DatabaseConnection, number: int) -> tuple[MessageRow, ...]:
    """Return the next messages below a number, the newest first; none at the end."""
    cursor = connection.execute(
        f"SELECT {_MESSAGE_COLUMNS} FROM messages WHERE number < ? ORDER BY number DESC LIMIT ?",  # noqa: S608  a constant
        (number, MAX_ROWS),
    )
    rows: list[MessageRow] = []
    size = 0
    for values in cursor:
        rows.append(_message_row(values))
        size += len(rows[-1].body)
        if size > _MAX_BYTES:
            break
    cursor.close()
    return tuple(rows)


def read_conversations_below(connection: DatabaseConnection, number: int) -> tuple[ConversationRow, ...]:
    """Return the next conversations below a number, the newest first; none at the end."""
    cursor = connection.execute(
        f"SELECT {_CONVERSATION_COLUMNS} FROM conversations WHERE number < ? ORDER BY number DESC LIMIT ?",  # noqa: S608  a constant
        (number, MAX_ROWS),
    )
    return tuple(map(_conversation_row, cursor))


def _read_subject(connection: DatabaseConnection, kind: str, number: int) -> ChangedRow:
    if kind == "message":
        sql = f"SELECT {_MESSAGE_COLUMNS} FROM messages WHERE number = ?"  # noqa: S608  a constant
        values = connection.execute(sql, (number,)).fetchone()
        return GoneMessage(number) if values is None else _message_row(values)
    values = None
    if kind == "conversation":
        sql = f"SELECT {_CONVERSATION_COLUMNS} FROM conversations WHERE number = ?"  # noqa: S608  a constant
        values = connection.execute(sql, (number,)).fetchone()
    return GoneConversation(number) if values is None else _conversation_row(values)


def _message_row(values: tuple[Any, ...]) -> MessageRow:
    number, conversation, *texts = values
    return MessageRow(number, conversation, *map(text_of, texts))


def _conversation_row(values: tuple[Any, ...]) -> ConversationRow:
    number, id_, title, model, workspace, created_at, is_deleted = values
    return ConversationRow(
        number, text_of(id_), text_of(title), text_or_none(model), text_or_none(workspace), created_at, bool(is_deleted)
    )
