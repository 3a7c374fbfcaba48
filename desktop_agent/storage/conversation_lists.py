"""Lists of conversations: whole records, or pages of what the window's list shows."""

import re
import sqlite3
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from desktop_agent.storage.connection import DatabaseConnection, text_of
from desktop_agent.storage.conversation_rows import SELECT_CONVERSATION, from_microseconds, record_from_row
from desktop_agent.storage.folder_rows import SELECT_WITHIN, folder_number
from desktop_agent.storage.records import ConversationRecord, ListedConversation, ListPlace, ListScope, read_event
from desktop_agent.types.engine_events import ApprovalRequested, ApprovalResolved, ToolCallPending, ToolFinished
from desktop_agent.types.messages import now


@dataclass(frozen=True, slots=True)
class UndecidedCall:
    """A call that waited for a person when its process died, as the journal has it.

    `tool` is "" where the journal does not say. `subject` is the beginning of the first text among its arguments.
    """

    approval_id: str
    tool: str
    subject: str
    since: datetime


@dataclass(frozen=True, slots=True)
class InterruptedRuns:
    """A conversation with runs that never ended, and their calls that wait for approval."""

    conversation_id: str
    title: str = ""
    waiting_calls: tuple[UndecidedCall, ...] = ()

    @property
    def waits_for_approval(self) -> bool:
        return bool(self.waiting_calls)


# Rows as counted by the indexes that lists are read through, and by the table.
_COUNT_RECORDS = """
    SELECT (SELECT count(*) FROM conversations INDEXED BY conversations_by_time WHERE deleted_at IS NULL),
        (SELECT count(*) FROM conversations NOT INDEXED WHERE deleted_at IS NULL)"""
_COUNT_PAGES = """
    SELECT (SELECT count(*) FROM conversations INDEXED BY conversations_in_folder
            WHERE deleted_at IS NULL AND archived_at IS NULL AND pinned_at IS NULL)
        + (SELECT count(*) FROM conversations INDEXED BY conversations_pinned
            WHERE deleted_at IS NULL AND archived_at IS NULL AND pinned_at IS NOT NULL)
        + (SELECT count(*) FROM conversations INDEXED BY conversations_archived
            WHERE deleted_at IS NULL AND archived_at IS NOT NULL),
        (SELECT count(*) FROM conversations NOT INDEXED WHERE deleted_at IS NULL)"""
_PINNED = "conversations_pinned", "pinned_at", "folder IS :folder AND archived_at IS NULL AND pinned_at IS NOT NULL"
_OTHERS = "conversations_in_folder", "updated_at", "folder IS :folder AND archived_at IS NULL AND pinned_at IS NULL"
_ARCHIVED = "conversations_archived", "updated_at", "archived_at IS NOT NULL"

# Results and arguments may be large: of results only the call is selected, of arguments the start of the first text.
_SELECT_APPROVALS = """
    SELECT CASE
            WHEN type = 'tool_finished' AND json_valid(event) THEN json_set(event, '$.result.content', json('[]'))
            WHEN type = 'tool_call_pending' AND json_valid(event) THEN json_set(event, '$.input', json('{}'))
            ELSE event END,
        at,
        CASE WHEN type = 'tool_call_pending' AND json_valid(event) THEN (
            SELECT substr(value, 1, 200) FROM json_each(event, '$.input') WHERE json_each.type = 'text' LIMIT 1) END
    FROM journal
    WHERE number >= ? << 32 AND number < (? + 1) << 32 AND parent_run_id IS NULL
        AND journal.type IN ('tool_call_pending', 'approval_requested', 'approval_resolved', 'tool_finished')
    ORDER BY number"""
_MAX_SUBJECT = 200

_MAX_LIMIT = (1 << 63) - 1
"""SQLite's largest number."""


def list_conversations(
    connection: DatabaseConnection, limit: int | None, *, in_trash: bool, scope: ListScope
) -> tuple[ConversationRecord, ...]:
    """Return the records, the last written first, or the last deleted.

    Raises WrongUse for an unknown folder, InconsistentData where an index lacks one, or has one too many.
    """
    if not in_trash:
        connection.require_equal_counts(_COUNT_RECORDS)
    conditions = ["deleted_at IS NOT NULL" if in_trash else "deleted_at IS NULL"]
    values: dict[str, str | int | None] = {"limit": -1 if limit is None else min(limit, _MAX_LIMIT)}
    if scope.archived is not None:
        conditions.append(f"archived_at IS {'NOT ' if scope.archived else ''}NULL")
    if scope.folder is not None:
        folder_number(connection, scope.folder)
        conditions.append(f"folder IN ({SELECT_WITHIN})")
        values["folder"] = scope.folder
    if scope.tag is not None:
        conditions.append("number IN (SELECT conversation FROM tags WHERE name = :tag)")
        values["tag"] = scope.tag
    order = "deleted_at" if in_trash else "updated_at"
    sql = f"{SELECT_CONVERSATION} WHERE {' AND '.join(conditions)} ORDER BY {order} DESC, number DESC LIMIT :limit"
    return tuple(map(record_from_row, connection.execute(sql, values)))


def list_page(
    connection: DatabaseConnection, limit: int, after: ListPlace | None, scope: ListScope
) -> tuple[tuple[ListedConversation, ...], ListPlace | None]:
    """Return a part of a folder or of the archive, and the place where it goes on; None at the end.

    What is pinned comes first, the last pinned before the others; then the last written. A tag is ignored. Raises
    WrongUse for an unknown folder, and InconsistentData as `list_conversations` for the first part.
    """
    if scope.in_trash or scope.title is not None:
        return _read_anywhere(connection, limit, after, scope)
    if after is None:
        connection.require_equal_counts(_COUNT_PAGES)
    if scope.archived:
        return _read_page(connection, limit, after, _ARCHIVED, None)
    folder = folder_number(connection, scope.folder)
    if after is not None and not after[0]:
        return _read_page(connection, limit, after, _OTHERS, folder)
    rows, following = _read_page(connection, limit, after, _PINNED, folder)
    if following is not None:
        return rows, following
    others, following = _read_page(connection, limit - len(rows), None, _OTHERS, folder)
    return rows + others, following


def _read_anywhere(
    connection: sqlite3.Connection, limit: int, after: ListPlace | None, scope: ListScope
) -> tuple[tuple[ListedConversation, ...], ListPlace | None]:
    order = "deleted_at" if scope.in_trash else "updated_at"
    conditions, values = [f"deleted_at IS {'NOT ' if scope.in_trash else ''}NULL"], dict[str, Any]({"limit": limit})
    if after is not None:
        conditions.append(f"({order}, number) < (:at, :number)")
        values |= {"at": after[1], "number": after[2]}
    for number, word in enumerate((scope.title or "").encode("utf-8", "replace").decode().split()[:_MAX_WORDS]):
        # LIKE folds the case of ASCII alone.
        forms = [word] if word.isascii() else dict.fromkeys((word, word.lower(), word.upper(), word.capitalize()))
        names = {f"word_{number}_{place}": _like(form) for place, form in enumerate(forms)}
        conditions.append(f"({' OR '.join(f'title LIKE :{name} ESCAPE char(92)' for name in names)})")
        values |= names
    rows = connection.execute(
        f"SELECT id, title, updated_at, deleted_at, {order}, number FROM conversations"  # noqa: S608  names of ours
        f" WHERE {' AND '.join(conditions)} ORDER BY {order} DESC, number DESC LIMIT :limit",
        values,
    ).fetchall()
    page = tuple(
        ListedConversation(
            text_of(row[0]),
            text_of(row[1]),
            from_microseconds(row[2]),
            deleted_at=None if row[3] is None else from_microseconds(row[3]),
        )
        for row in rows
    )
    return page, (False, rows[-1][4], rows[-1][5]) if rows and len(rows) == limit else None


_MAX_WORDS, _MAX_WORD = 10, 100
_WILDCARDS = re.compile(r"([%_\\])")


def _like(word: str) -> str:
    """Return the pattern for a text that has this word in it."""
    escaped = _WILDCARDS.sub(r"\\\1", word[:_MAX_WORD].replace("\0", " "))
    return f"%{escaped}%"


def _read_page(
    connection: sqlite3.Connection,
    limit: int,
    after: ListPlace | None,
    part: tuple[str, str, str],
    folder: int | None,
) -> tuple[tuple[ListedConversation, ...], ListPlace | None]:
    index, order, condition = part
    is_older = "" if after is None else f"AND {order} <= :at AND ({order}, number) < (:at, :number)"
    _, at, number = after or (False, 0, 0)
    rows: list[tuple[Any, ...]] = connection.execute(
        f"SELECT id, title, updated_at, {order}, number FROM conversations INDEXED BY {index}"  # noqa: S608  constants
        f" WHERE deleted_at IS NULL AND {condition} {is_older} ORDER BY {order} DESC, number DESC LIMIT :limit",
        {"folder": folder, "at": at, "number": number, "limit": limit},
    ).fetchall()
    tags = _tags_of(connection, rows)
    is_pinned = part is _PINNED
    page = tuple(
        ListedConversation(text_of(row[0]), text_of(row[1]), from_microseconds(row[2]), is_pinned, tags.get(row[4], ()))
        for row in rows
    )
    return page, (is_pinned, rows[-1][3], rows[-1][4]) if rows and len(rows) == limit else None


def _tags_of(connection: sqlite3.Connection, rows: list[tuple[Any, ...]]) -> dict[int, tuple[str, ...]]:
    if connection.execute("SELECT 1 FROM tags LIMIT 1").fetchone() is None:
        return {}
    tags: dict[int, tuple[str, ...]] = {}
    for row in rows:
        names = connection.execute("SELECT name FROM tags WHERE conversation = ? ORDER BY name", (row[4],)).fetchall()
        if names:
            tags[row[4]] = tuple(text_of(name) for (name,) in names)
    return tags


def find_interrupted(connection: sqlite3.Connection) -> tuple[InterruptedRuns, ...]:
    """Return the conversations outside the trash that have runs without RunFinished."""
    rows = connection.execute(
        "SELECT conversations.id, title, runs.number FROM runs"
        " JOIN conversations ON conversations.number = conversation"
        " WHERE finished = 0 AND deleted_at IS NULL ORDER BY runs.number"
    ).fetchall()
    interrupted: dict[str, InterruptedRuns] = {}
    for conversation, title, run in rows:
        id_ = text_of(conversation)
        runs = interrupted.get(id_, InterruptedRuns(id_, text_of(title)))
        interrupted[id_] = replace(runs, waiting_calls=runs.waiting_calls + _undecided_calls(connection, run))
    return tuple(interrupted.values())


def _undecided_calls(connection: sqlite3.Connection, run: int) -> tuple[UndecidedCall, ...]:
    """Return the calls of a run itself that wait for a person, in the order of their requests."""
    calls: dict[str, tuple[str, str]] = {}
    waiting: dict[str, UndecidedCall] = {}
    for text, at, subject in connection.execute(_SELECT_APPROVALS, (run, run)):
        match read_event(text):
            case ToolCallPending(id=id_, name=name):
                calls[id_] = name, text_of(subject or "")
            case ApprovalRequested(tool_use_id=id_) as request:
                waiting[id_] = _undecided_call(request, at, *calls.get(id_, ("", "")))
            case ApprovalResolved(tool_use_id=id_) | ToolFinished(id=id_):
                waiting.pop(id_, None)
            case _:
                pass
    return tuple(waiting.values())


def _undecided_call(request: ApprovalRequested, at: str, tool: str, subject: str) -> UndecidedCall:
    if request.effective_input is not None:
        texts = (value for value in request.effective_input.values() if isinstance(value, str))
        subject = next(texts, "")[:_MAX_SUBJECT]
    try:
        since = datetime.fromisoformat(at)
    except (ValueError, TypeError):
        # A damaged row is no reason to hide that somebody must decide.
        since = now()
    return UndecidedCall(request.approval_id, tool, " ".join(subject.split()), since)
