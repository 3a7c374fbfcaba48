"""The rows of messages: a tree, of which a conversation shows the branch that ends in its head."""

import sqlite3

from desktop_agent.storage.database.connection import InconsistentData, text_of
from desktop_agent.storage.database.conversations import to_microseconds
from desktop_agent.storage.json_form import message_to_json, read_message
from desktop_agent.vocabulary.messages import Message, now

# Looking up by row number and sorting by it is what keeps a branch quick. A parent's number is smaller than its child's
# (schema); it is asked for all the same, so that the walk ends also where a number is damaged.
_SELECT_BRANCH = """
    WITH RECURSIVE branch (number, parent) AS (
        SELECT m.number, m.parent FROM conversations c JOIN messages m ON m.number = c.head WHERE c.number = ?
        UNION ALL
        SELECT m.number, m.parent FROM branch b JOIN messages m ON m.number = b.parent AND m.number < b.number
    )
    SELECT m.id, m.role, m.state, m.body, m.conversation, m.position
    FROM branch b JOIN messages m ON m.number = b.number ORDER BY m.number"""

# A message that does not follow the one that it names, or a head that is not the end that was counted: a changed byte
# in a number is nothing that SQLite itself could see.
_SELECT_MISPLACED = """
    SELECT 1 FROM messages m LEFT JOIN messages p ON p.number = m.parent AND p.number < m.number
    WHERE CASE WHEN m.parent IS NULL THEN m.position <> 1
        ELSE p.number IS NULL OR p.conversation <> m.conversation OR p.position <> m.position - 1 END
    UNION ALL
    SELECT 1 FROM conversations c LEFT JOIN messages h ON h.number = c.head
    WHERE CASE WHEN c.head IS NULL THEN c.message_count <> 0
        ELSE h.number IS NULL OR h.conversation <> c.number OR h.position <> c.message_count END
    LIMIT 1"""
NOT_A_BRANCH = "a message does not follow the one before it"

_SELECT_AFTER = """
    WITH RECURSIVE branch (number, parent) AS (
        SELECT number, parent FROM messages WHERE number = :head AND number > :before
        UNION ALL
        SELECT m.number, m.parent FROM branch b JOIN messages m ON m.number = b.parent AND m.number < b.number
        WHERE m.number > :before
    )
    SELECT m.id, m.role, m.state, m.body, b.parent
    FROM branch b JOIN messages m ON m.number = b.number ORDER BY m.number"""


def load_branch(connection: sqlite3.Connection, conversation: int) -> tuple[Message, ...]:
    """The branch in view, oldest first. Raises Contradiction where a part of it cannot be reached."""
    rows = connection.execute(_SELECT_BRANCH, (conversation,)).fetchall()
    (count,) = connection.execute(
        "SELECT message_count FROM conversations WHERE number = ?", (conversation,)
    ).fetchone()
    if [row[-2:] for row in rows] != [(conversation, position) for position in range(1, count + 1)]:
        raise InconsistentData(NOT_A_BRANCH)
    return tuple(
        read_message(text_of(body), id_=text_of(id_), role=text_of(role), state=text_of(state))
        for id_, role, state, body, *_ in rows
    )


def has_misplaced_messages(connection: sqlite3.Connection) -> bool:
    """Whether any conversation has a message that is not where its branch has it."""
    return connection.execute(_SELECT_MISPLACED).fetchone() is not None


def messages_after(
    connection: sqlite3.Connection, head: int | None, before: int | None
) -> tuple[tuple[Message, ...], bool]:
    """The messages of the branch that ends in `head` behind the one that was its head `before`, oldest first.

    And whether that one is still in the branch.
    """
    if head == before:
        return (), True
    rows = connection.execute(_SELECT_AFTER, {"head": head, "before": before or 0}).fetchall()
    found = tuple(
        read_message(text_of(body), id_=text_of(id_), role=text_of(role), state=text_of(state))
        for id_, role, state, body, _ in rows
    )
    return found, bool(rows) and rows[0][-1] == before


def commit_messages(connection: sqlite3.Connection, conversation: int, messages: tuple[Message, ...]) -> None:
    """Append after the head, or replace what has the same id, inside the caller's transaction."""
    head, position = connection.execute(
        "SELECT head, message_count FROM conversations WHERE number = ?", (conversation,)
    ).fetchone()
    for message in messages:
        if not _replace_message(connection, conversation, message):
            position += 1
            head = _insert_message(connection, conversation, message, head, position)
    connection.execute(
        "UPDATE conversations SET head = ?, message_count = ?, updated_at = ? WHERE number = ?",
        (head, position, to_microseconds(now()), conversation),
    )


def _replace_message(connection: sqlite3.Connection, conversation: int, message: Message) -> bool:
    changed = connection.execute(
        "UPDATE messages SET role = ?, state = ?, created_at = ?, body = ? WHERE conversation = ? AND id = ?",
        (*_message_columns(message), conversation, message.id),
    )
    return changed.rowcount > 0


def _insert_message(
    connection: sqlite3.Connection, conversation: int, message: Message, parent: int | None, position: int
) -> int | None:
    added = connection.execute(
        "INSERT INTO messages (role, state, created_at, body, conversation, id, parent, position)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (*_message_columns(message), conversation, message.id, parent, position),
    )
    return added.lastrowid


def _message_columns(message: Message) -> tuple[str, str, str, str]:
    return message.role.value, message.state.value, message.created_at.isoformat(), message_to_json(message)
