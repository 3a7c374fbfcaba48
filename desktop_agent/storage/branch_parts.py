"""Branches read from their end upward, in parts: of a long conversation only what is needed."""

import sqlite3
from contextlib import closing

from desktop_agent.storage.connection import InconsistentData, RunInDatabase, text_of, text_or_none
from desktop_agent.storage.conversation_rows import NOT_A_BRANCH, WITH_BELOW, conversation_number, no_message_error
from desktop_agent.storage.records import BranchPart, MessagePlace, message_from_row
from desktop_agent.types.conversation_tree import BranchPoints
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import Usage

# SQLite computes the rows one by one: a reader that stops early reads no further. A parent's number is always smaller
# than its child's (`migrations`); the condition makes the walk end also where a number is damaged.
_SELECT_BRANCH_UP = """
    WITH RECURSIVE branch (number, parent) AS (
        SELECT number, parent FROM messages WHERE number = ?
        UNION ALL
        SELECT m.number, m.parent FROM branch b JOIN messages m ON m.number = b.parent AND m.number < b.number
    )
    SELECT m.number, m.id, m.role, m.state, m.conversation, m.position, m.body
    FROM branch b CROSS JOIN messages m ON m.number = b.number"""
# System messages count too: making a summary cost something.
_SUM_USAGE_UP = """
    WITH RECURSIVE branch (number, parent) AS (
        SELECT number, parent FROM messages WHERE number = ?
        UNION ALL
        SELECT m.number, m.parent FROM branch b JOIN messages m ON m.number = b.parent AND m.number < b.number
    ), used (role, usage) AS (
        SELECT m.role, CASE WHEN m.role IN ('assistant', 'system') AND json_valid(m.body)
            THEN json_extract(m.body, '$.usage') END
        FROM branch b CROSS JOIN messages m ON m.number = b.number
    )
    SELECT count(usage), total((role = 'assistant' OR usage IS NOT NULL) AND usage ->> 'cost' IS NULL), {sums}
    FROM used"""
# No bodies are read, and nothing above the message.
_SELECT_IS_ABOVE = """
    WITH RECURSIVE wanted (number) AS (
        SELECT number FROM messages WHERE conversation = :conversation AND id = :id
    ), branch (number, parent) AS (
        SELECT number, parent FROM messages WHERE conversation = :conversation AND id = :below
        UNION ALL
        SELECT m.number, m.parent FROM branch b JOIN messages m ON m.number = b.parent AND m.number < b.number
        WHERE m.number >= (SELECT number FROM wanted)
    )
    SELECT count(*) FROM branch WHERE number = (SELECT number FROM wanted)"""
_SELECT_APART = """
    WITH RECURSIVE branch (number, parent) AS (
        SELECT number, parent FROM messages WHERE conversation = :conversation AND id = :head
        UNION ALL
        SELECT m.number, m.parent FROM branch b JOIN messages m ON m.number = b.parent AND m.number < b.number
    ), other (number, parent) AS (
        SELECT number, parent FROM messages WHERE conversation = :conversation AND id = :other
        UNION ALL
        SELECT m.number, m.parent FROM other o JOIN messages m ON m.number = o.parent AND m.number < o.number
    )
    SELECT id FROM messages WHERE number IN (SELECT number FROM branch EXCEPT SELECT number FROM other)"""
_USAGE_FIELDS = tuple(Usage.model_fields)
_SELECT_SYSTEM_UP = f"{_SELECT_BRANCH_UP} WHERE m.role = 'system'"

# A child has a larger number than its parent, so the largest number below a message ends a branch: the newest.
_SELECT_NEWEST_BELOW = f"{WITH_BELOW} SELECT max(number) FROM below"  # noqa: S608  constants

# `until` is the first row whose branch points were read before. At the end of the branch, what continues it is
# selected too.
_SELECT_BRANCH_POINTS = """
    WITH points (parent) AS (
        SELECT parent FROM messages
        WHERE conversation = :conversation AND parent >= :first AND parent < :until GROUP BY parent HAVING count(*) > 1
        UNION SELECT NULL WHERE :first = 0
            AND (SELECT count(*) FROM messages WHERE conversation = :conversation AND parent IS NULL) > 1
        UNION SELECT head FROM conversations WHERE number = :conversation AND :until = :end
    )
    SELECT (SELECT id FROM messages above WHERE above.number = m.parent), m.id
    FROM points CROSS JOIN messages m ON m.conversation = :conversation AND m.parent IS points.parent
    ORDER BY m.number"""
_END = (1 << 63) - 1

_Row = tuple[int, str | bytes, str | bytes, str | bytes, int, int, str | bytes]


class BranchParts:
    """Loads further parts of conversations. All methods raise StorageFailed."""

    def __init__(self, run: RunInDatabase) -> None:
        self._run = run

    async def load_above(self, conversation_id: str, place: MessagePlace, at_least: int | None) -> BranchPart:
        """Return the messages up to and including a place, about `at_least` of them, or all. Raises WrongUse."""
        return await self._run(lambda db: _load_above(db, conversation_number(db, conversation_id), place, at_least))

    async def load_newest_branch(
        self, conversation_id: str, head: str, *, message_id: str = "", at_least: int | None = None
    ) -> BranchPart:
        """Return the newest of the branches that have the message `head`. Raises WrongUse.

        With `at_least`, about so many messages from its end, and as many as are needed to have this message.
        """
        return await self._run(
            lambda db: _load_newest(db, conversation_number(db, conversation_id), head, message_id or head, at_least)
        )

    async def is_above(self, conversation_id: str, message_id: str, below: str) -> bool:
        """Return whether a message is `below` itself, or before it on its branch. Raises WrongUse."""
        return await self._run(lambda db: _is_above(db, conversation_number(db, conversation_id), message_id, below))

    async def ids_apart(self, conversation_id: str, head: str, other_head: str) -> frozenset[str]:
        """Return the ids of the messages on the branch that ends in `head` that the branch of `other_head` lacks."""

        def work(db: sqlite3.Connection) -> frozenset[str]:
            conversation = conversation_number(db, conversation_id)
            rows = db.execute(_SELECT_APART, {"conversation": conversation, "head": head, "other": other_head})
            return frozenset(text_of(id_) for (id_,) in rows)

        return await self._run(work)

    async def usage_above(self, place: MessagePlace) -> tuple[Usage | None, bool]:
        """Return the usage of the messages up to and including a place, and whether the cost of each is known."""
        sums = ", ".join(f"sum(usage ->> '{name}')" for name in _USAGE_FIELDS)

        def work(db: sqlite3.Connection) -> tuple[Usage | None, bool]:
            counted, gaps, *values = db.execute(_SUM_USAGE_UP.format(sums=sums), (place.number,)).fetchone()
            usage = Usage(**dict(zip(_USAGE_FIELDS, values, strict=True))) if counted else None
            return usage, not gaps

        return await self._run(work)

    async def load_system_messages(self, place: MessagePlace) -> tuple[Message, ...]:
        """Return the system messages up to and including a place, newest first: instructions, and summaries."""
        return await self._run(
            lambda db: tuple(map(_message_of, db.execute(_SELECT_SYSTEM_UP, (place.number,)).fetchall()))
        )


def load_branch_end(connection: sqlite3.Connection, conversation: int, at_least: int | None) -> BranchPart:
    """Return the end of the branch in view, about `at_least` messages, or all of it.

    Raises InconsistentData where a part of it cannot be reached.
    """
    head, count = connection.execute(
        "SELECT head, message_count FROM conversations WHERE number = ?", (conversation,)
    ).fetchone()
    messages, above = _read_up(connection, conversation, head, count, at_least)
    return BranchPart(messages, above, _load_branch_points(connection, conversation, above, _END))


def _load_above(
    connection: sqlite3.Connection, conversation: int, place: MessagePlace, at_least: int | None
) -> BranchPart:
    if _number_of(connection, conversation, place.id) != place.number:
        # Deleted by another process while it was followed here.
        raise WrongUse("The conversation was changed meanwhile.", "Wait a moment, until it is read again.")
    messages, above = _read_up(connection, conversation, place.number, place.position, at_least)
    return BranchPart(messages, above, _load_branch_points(connection, conversation, above, place.number))


def _load_newest(
    connection: sqlite3.Connection, conversation: int, below: str, message_id: str, at_least: int | None
) -> BranchPart:
    (head,) = connection.execute(_SELECT_NEWEST_BELOW, {"conversation": conversation, "id": below}).fetchone()
    until = _number_of(connection, conversation, message_id)
    if head is None or until is None:
        raise no_message_error(message_id)
    (count,) = connection.execute("SELECT position FROM messages WHERE number = ?", (head,)).fetchone()
    messages, above = _read_up(connection, conversation, head, count, at_least, until)
    return BranchPart(messages, above, _load_branch_points(connection, conversation, above, _END))


def _number_of(connection: sqlite3.Connection, conversation: int, message_id: str) -> int | None:
    sql = "SELECT number FROM messages WHERE conversation = ? AND id = ?"
    row = connection.execute(sql, (conversation, message_id)).fetchone()
    return None if row is None else row[0]


def _is_above(connection: sqlite3.Connection, conversation: int, message_id: str, below: str) -> bool:
    values = {"conversation": conversation, "id": message_id, "below": below}
    (count,) = connection.execute(_SELECT_IS_ABOVE, values).fetchone()
    return count > 0


def _read_up(
    connection: sqlite3.Connection,
    conversation: int,
    number: int | None,
    count: int,
    at_least: int | None,
    until: int = _END,
) -> tuple[tuple[Message, ...], MessagePlace | None]:
    """Return the messages up to this row, which has the position `count`, and the place above them.

    They are about `at_least`, or all of them, and include the row `until`.
    """
    messages: list[Message] = []
    above: MessagePlace | None = None
    last = _END
    with closing(connection.execute(_SELECT_BRANCH_UP, (number,))) as rows:
        for row in rows:
            if (row[4], row[5]) != (conversation, count - len(messages)):
                raise InconsistentData(NOT_A_BRANCH)
            is_enough = at_least is not None and len(messages) >= at_least and last <= until
            if is_enough and messages and _begins_part(messages[-1].role, text_of(row[2])):
                above = MessagePlace(row[0], text_of(row[1]), row[5])
                break
            messages.append(_message_of(row))
            last = row[0]
    if above is None and len(messages) != count:
        raise InconsistentData(NOT_A_BRANCH)
    messages.reverse()
    return tuple(messages), above


def _begins_part(role: Role, role_above: str) -> bool:
    """Return whether a part may begin here: results stay with their calls, and answers with what continues them."""
    return role is not Role.TOOL and not (role is Role.ASSISTANT and role_above == Role.ASSISTANT)


def _message_of(row: _Row) -> Message:
    return message_from_row(row[1], row[2], row[3], row[6])


def _load_branch_points(
    connection: sqlite3.Connection, conversation: int, above: MessagePlace | None, until: int
) -> BranchPoints:
    values = {"conversation": conversation, "first": above.number if above else 0, "until": until, "end": _END}
    points: dict[str | None, list[str]] = {}
    for parent, id_ in connection.execute(_SELECT_BRANCH_POINTS, values):
        points.setdefault(text_or_none(parent), []).append(text_of(id_))
    return {parent: tuple(children) for parent, children in points.items()}
