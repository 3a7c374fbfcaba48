"""The rows of conversations, drafts, messages and rules.

Messages are a tree, of which a conversation shows the branch that ends in its head.
"""

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from desktop_agent.storage.connection import (
    INDEX_MISMATCH,
    InconsistentData,
    RunInDatabase,
    text_of,
    text_or_none,
    transaction,
)
from desktop_agent.storage.records import (
    ConversationChanges,
    ConversationRecord,
    Draft,
    StoredRules,
    draft_to_json,
    message_from_row,
    message_to_json,
    read_draft,
    read_json,
    read_rule,
    read_rule_partially,
    read_state,
    rule_to_json,
    state_to_json,
    to_json_unless,
)
from desktop_agent.types.conversation_tree import ConversationOrigin
from desktop_agent.types.errors import Sentence, WrongUse
from desktop_agent.types.messages import Message, new_id, now
from desktop_agent.types.permissions import Rule, RuleScope
from desktop_agent.types.providers import ConversationParameters, Reasoning

WITH_BELOW = """
    WITH RECURSIVE below (number) AS (
        SELECT number FROM messages WHERE conversation = :conversation AND id = :id
        UNION ALL
        SELECT m.number FROM below b JOIN messages m
        ON m.conversation = :conversation AND m.parent = b.number AND m.number > b.number
    )"""
"""Begins a query about a message and all that follow it on every branch."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# Days at either end of the calendar do not exist in every time zone.
_FIRST_MOMENT, _LAST_MOMENT = datetime(1, 1, 3, tzinfo=UTC), datetime(9999, 12, 29, tzinfo=UTC)
SELECT_CONVERSATION = """
    SELECT id, title, created_at, updated_at, endpoint_id, model, workspace, message_count, title_is_automatic,
        (SELECT messages.id FROM messages WHERE messages.number = head), deleted_at, reasoning, parameters, state,
        origin, (SELECT folders.id FROM folders WHERE folders.number = conversations.folder), pinned_at, archived_at,
        (SELECT group_concat(name, char(10)) FROM
            (SELECT name FROM tags WHERE tags.conversation = conversations.number ORDER BY name))
    FROM conversations """
# The index alone would return the id stored in it: the row it leads to is checked as well.
_NUMBER_BY_ID = """
    SELECT number, (SELECT same.id FROM conversations AS same WHERE same.number = conversations.number)
    FROM conversations WHERE id = ?"""
_EXISTS_WITHOUT_INDEX = "SELECT 1 FROM conversations NOT INDEXED WHERE id = ?"
_NO_PARAMETERS = ConversationParameters()
_TO_JSON: dict[str, Callable[[Any], str | None]] = {
    "reasoning": partial(to_json_unless, None, Reasoning),
    "parameters": partial(to_json_unless, _NO_PARAMETERS, ConversationParameters),
    "state": state_to_json,
}
NO_CONVERSATION_NUMBER = 0
SEQ_BITS = 32


def to_microseconds(moment: datetime) -> int:
    """Return a moment as the columns store it."""
    return (moment - _EPOCH) // _MICROSECOND


def moment_of_every_zone(moment: datetime) -> datetime:
    """Return the moment, or the nearest one that every time zone can show."""
    return min(max(moment, _FIRST_MOMENT), _LAST_MOMENT)


def from_microseconds(value: int) -> datetime:
    """Return the moment of a column."""
    try:
        return moment_of_every_zone(_EPOCH + timedelta(microseconds=value))
    except (OverflowError, TypeError):  # a changed byte can make a text of a number
        return _EPOCH


def moment_or_none(value: int | None) -> datetime | None:
    """Return the moment of a column that may be empty."""
    return None if value is None else from_microseconds(value)


def now_microseconds() -> int:
    """Return the current time as the columns store it."""
    return to_microseconds(datetime.now(UTC))


def record_from_row(row: tuple[Any, ...]) -> ConversationRecord:
    """Return the record of a row of SELECT_CONVERSATION."""
    return ConversationRecord(
        text_of(row[0]),
        text_of(row[1]),
        from_microseconds(row[2]),
        from_microseconds(row[3]),
        text_or_none(row[4]),
        text_or_none(row[5]),
        text_or_none(row[6]),
        row[7],
        bool(row[8]),
        text_or_none(row[9]),
        moment_or_none(row[10]),
        # What this version cannot read is as where nothing was chosen.
        read_json(Reasoning, text_or_none(row[11]), None),
        read_json(ConversationParameters, text_or_none(row[12]), _NO_PARAMETERS),
        read_state(text_or_none(row[13])),
        read_json(ConversationOrigin, text_or_none(row[14]), None),
        text_or_none(row[15]),
        moment_or_none(row[16]),
        moment_or_none(row[17]),
        tuple(text_of(row[18]).split("\n")) if row[18] else (),
    )


def conversation_number(connection: sqlite3.Connection, id_: str) -> int:
    """Return the row number. Raises WrongUse for no such conversation, InconsistentData if only its index has it."""
    row = connection.execute(_NUMBER_BY_ID, (id_,)).fetchone()
    if row is None or text_or_none(row[1]) != id_:
        # Unknown ids are rare, so that all rows can be searched.
        if row is not None or connection.execute(_EXISTS_WITHOUT_INDEX, (id_,)).fetchone() is not None:
            raise InconsistentData(INDEX_MISMATCH)
        remedy = "It may have been deleted meanwhile. Choose another one."
        raise WrongUse(Sentence("There is no conversation “{id}”.", {"id": id_}), remedy)
    return int(row[0])


def load_record(connection: sqlite3.Connection, id_: str) -> ConversationRecord:
    """Return one record, also from the trash. Raises WrongUse."""
    row = connection.execute(
        f"{SELECT_CONVERSATION} WHERE number = ?", (conversation_number(connection, id_),)
    ).fetchone()
    return record_from_row(row)


def create_conversation(
    connection: sqlite3.Connection,
    values: ConversationChanges,
    chosen_id: str | None = None,
    folder: str | None = None,
) -> ConversationRecord:
    """Insert a conversation with these values, at the top where the folder is gone.

    Raises WrongUse for an unknown property.
    """
    id_, at = chosen_id or new_id(), now_microseconds()
    columns = {"id": id_, "created_at": at, "updated_at": at, "title_is_automatic": True, **_to_columns(values)}
    sql = f"INSERT INTO conversations ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608  checked by _to_columns
    with transaction(connection):
        connection.execute(sql, tuple(columns.values()))
        if folder is not None:
            update = "UPDATE conversations SET folder = (SELECT number FROM folders WHERE id = ?) WHERE id = ?"
            connection.execute(update, (folder, id_))
        # In the transaction: where the record cannot be read, the insert is undone, and the next attempt repeats it.
        return load_record(connection, id_)


def update_conversation(connection: sqlite3.Connection, number: int, changes: ConversationChanges) -> None:
    """Apply the changes inside the caller's transaction. Raises WrongUse for an unknown message or property."""
    columns = _to_columns(changes)
    if "title" in columns:
        columns.setdefault("title_is_automatic", False)
    if "head_message_id" in changes:
        _move_head(connection, number, changes["head_message_id"])
    for name, value in columns.items():
        connection.execute(f"UPDATE conversations SET {name} = ? WHERE number = ?", (value, number))  # noqa: S608  checked by _to_columns


def _to_columns(changes: ConversationChanges) -> dict[str, Any]:
    """Return the columns and their values, without the head; see `_move_head`. Raises WrongUse for an unknown one."""
    values: dict[str, Any] = {name: value for name, value in changes.items() if name != "head_message_id"}
    if unknown := values.keys() - ConversationChanges.__optional_keys__:
        raise WrongUse(Sentence("A conversation has no “{name}” to change.", {"name": min(unknown)}))
    return {name: _TO_JSON[name](value) if name in _TO_JSON else value for name, value in values.items()}


def _move_head(connection: sqlite3.Connection, number: int, message_id: str | None) -> None:
    head, position = None, 0
    if message_id is not None:
        sql = "SELECT number, position FROM messages WHERE conversation = ? AND id = ?"
        row = connection.execute(sql, (number, message_id)).fetchone()
        if row is None:
            raise no_message_error(message_id)
        head, position = row
    connection.execute(
        "UPDATE conversations SET head = ?, message_count = ? WHERE number = ?", (head, position, number)
    )


def no_message_error(message_id: str) -> WrongUse:
    """Return the error for an id that no message of the conversation has."""
    sentence = Sentence("There is no message “{id}” in this conversation.", {"id": message_id})
    return WrongUse(sentence, "It may have been deleted meanwhile. Choose one that is shown.")


def set_deleted(connection: sqlite3.Connection, id_: str, *, deleted: bool) -> None:
    """Put a conversation into the trash, or take it out. One already there keeps its date. Raises WrongUse."""
    number = conversation_number(connection, id_)
    new = "coalesce(deleted_at, ?)" if deleted else "nullif(?, ?)"
    at = now_microseconds()
    with transaction(connection):
        connection.execute(
            f"UPDATE conversations SET deleted_at = {new} WHERE number = ?",  # noqa: S608  one of two constants
            (at, number) if deleted else (at, at, number),
        )


def purge_trash(connection: sqlite3.Connection, older_than: timedelta) -> int:
    """Delete for good what has been in the trash for so long; return how many conversations."""
    before = now_microseconds() - older_than // _MICROSECOND
    sql = "SELECT number FROM conversations WHERE deleted_at IS NOT NULL AND deleted_at <= ?"
    numbers = [int(row[0]) for row in connection.execute(sql, (before,))]
    if not numbers:
        return 0
    with transaction(connection):
        for number in numbers:
            _delete_rows(connection, number)
    return len(numbers)


def purge_conversation(connection: sqlite3.Connection, id_: str) -> None:
    """Delete a conversation for good. Raises WrongUse for one that is unknown or not in the trash."""
    number = conversation_number(connection, id_)
    sql = "SELECT 1 FROM conversations WHERE number = ? AND deleted_at IS NOT NULL"
    if connection.execute(sql, (number,)).fetchone() is None:
        raise WrongUse("This conversation is not in the trash.", "Delete it first.")
    with transaction(connection):
        _delete_rows(connection, number)


def journal_span(run: int) -> tuple[int, int]:
    """Return the number of the first row of a run in the journal, and that of the next run's."""
    return run << SEQ_BITS, (run + 1) << SEQ_BITS


def _delete_rows(connection: sqlite3.Connection, number: int) -> None:
    for (run,) in connection.execute("SELECT number FROM runs WHERE conversation = ?", (number,)).fetchall():
        connection.execute("DELETE FROM journal WHERE number >= ? AND number < ?", journal_span(run))
    connection.execute("DELETE FROM drafts WHERE number = ?", (number,))
    connection.execute("DELETE FROM picture_uses WHERE conversation = ?", (number,))
    connection.execute(
        "DELETE FROM rules WHERE conversation = (SELECT id FROM conversations WHERE number = ?)", (number,)
    )
    connection.execute("DELETE FROM conversations WHERE number = ?", (number,))


def save_draft(connection: sqlite3.Connection, number: int, draft: Draft) -> None:
    """Store a draft, inside the caller's transaction; an empty one is removed."""
    if draft.text or draft.images or draft.resources or draft.pasted:
        connection.execute("INSERT OR REPLACE INTO drafts (number, body) VALUES (?, ?)", (number, draft_to_json(draft)))
    else:
        connection.execute("DELETE FROM drafts WHERE number = ?", (number,))


def load_draft(connection: sqlite3.Connection, number: int) -> Draft:
    """Return the draft, or an empty one."""
    row = connection.execute("SELECT body FROM drafts WHERE number = ?", (number,)).fetchone()
    return read_draft(text_of(row[0])) if row else Draft()


# Messages that do not follow the parent that they name, and heads at another position than was counted: SQLite itself
# cannot notice a changed byte in a number.
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


def has_misplaced_messages(connection: sqlite3.Connection) -> bool:
    """Return whether any message is not at the position that its branch gives it."""
    return connection.execute(_SELECT_MISPLACED).fetchone() is not None


def messages_after(
    connection: sqlite3.Connection, head: int | None, before: int | None
) -> tuple[tuple[Message, ...], bool]:
    """Return the messages after the old head `before` on the branch that ends in `head`, oldest first.

    The second value is whether `before` is still in the branch.
    """
    if head == before:
        return (), True
    rows = connection.execute(_SELECT_AFTER, {"head": head, "before": before or 0}).fetchall()
    messages = tuple(message_from_row(*columns) for *columns, _ in rows)
    return messages, bool(rows) and rows[0][-1] == before


def commit_messages(connection: sqlite3.Connection, conversation: int, messages: tuple[Message, ...]) -> None:
    """Append after the head, or replace messages of the same id, inside the caller's transaction."""
    head, position = connection.execute(
        "SELECT head, message_count FROM conversations WHERE number = ?", (conversation,)
    ).fetchone()
    for message in messages:
        if not _replace_message(connection, conversation, message):
            position += 1
            head = insert_message(connection, conversation, message, head, position)
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


def insert_message(
    connection: sqlite3.Connection, conversation: int, message: Message, parent: int | None, position: int
) -> int | None:
    """Insert a message after the row of its parent, inside the caller's transaction; return its row number."""
    added = connection.execute(
        "INSERT INTO messages (role, state, created_at, body, conversation, id, parent, position)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (*_message_columns(message), conversation, message.id, parent, position),
    )
    return added.lastrowid


def _message_columns(message: Message) -> tuple[str, str, str, str]:
    return message.role.value, message.state.value, message.created_at.isoformat(), message_to_json(message)


_SELECT_RULES = "SELECT id, body, last_used_at FROM rules"
_SAVE_RULE = """
    INSERT INTO rules (id, conversation, body, last_used_at) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE
    SET conversation = excluded.conversation, body = excluded.body, last_used_at = excluded.last_used_at"""


class RuleRows:
    """The rules of every scope. All methods raise StorageFailed."""

    def __init__(self, run: RunInDatabase) -> None:
        self._run = run

    async def all(self) -> tuple[Rule, ...]:
        """Return every rule that holds, oldest first; see StoredRules."""
        return (await self.load()).rules

    async def load(self) -> StoredRules:
        """Return every rule, and how many of them this version understands in part or not at all."""
        return await self._run(lambda db: _read_rules(db.execute(f"{_SELECT_RULES} ORDER BY number")))

    async def save(self, rule: Rule) -> None:
        """Store a rule; one of the same id is replaced."""
        conversation = rule.conversation_id if rule.scope is RuleScope.CONVERSATION else None
        used = None if rule.last_used_at is None else rule.last_used_at.isoformat()
        await self._run(lambda db: db.execute(_SAVE_RULE, (rule.id, conversation, rule_to_json(rule), used)))

    async def delete(self, rule_id: str) -> None:
        """Delete a rule. Harmless where there is none."""
        await self._run(lambda db: db.execute("DELETE FROM rules WHERE id = ?", (rule_id,)))

    async def mark_used(self, rule_id: str, at: datetime) -> None:
        """Note when a rule last decided about a call."""
        row = (at.isoformat(), rule_id)
        await self._run(lambda db: db.execute("UPDATE rules SET last_used_at = ? WHERE id = ?", row))


def _read_rules(rows: sqlite3.Cursor) -> StoredRules:
    whole: list[Rule] = []
    stricter = lost = 0
    for id_, body, last_used_at in rows:
        rule = read_rule(text_of(body))
        if rule is None:
            rule = read_rule_partially(text_of(body), text_of(id_))
            stricter, lost = stricter + (rule is not None), lost + (rule is None)
        if rule is not None:
            whole.append(_with_last_use(rule, text_or_none(last_used_at)))
    return StoredRules(tuple(whole), stricter, lost)


def _with_last_use(rule: Rule, moment: str | None) -> Rule:
    try:
        return rule if moment is None else rule.model_copy(update={"last_used_at": datetime.fromisoformat(moment)})
    except ValueError:  # carried over from a damaged page
        return rule
