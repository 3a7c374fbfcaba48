"""All branches of a conversation: their outline, and deleting a message for good with all that follows it."""

import re
import sqlite3
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Unpack

from desktop_agent.storage.connection import DatabaseConnection, RunInDatabase, text_of, text_or_none, transaction
from desktop_agent.storage.conversation_rows import WITH_BELOW, conversation_number, journal_span, update_conversation
from desktop_agent.storage.records import ConversationChanges, read_event
from desktop_agent.types.conversation_tree import MessageOutline
from desktop_agent.types.engine_events import RunStarted, ToolStarted, TurnStarted

_SELECT_BELOW = f"{WITH_BELOW} SELECT m.number, m.id, m.body FROM below b JOIN messages m ON m.number = b.number"  # noqa: S608  constants
_SELECT_STARTS = """
    SELECT parent_run_id, turn_id, event FROM journal
    WHERE number >= ? AND number < ? AND type IN ('run_started', 'turn_started', 'tool_started') ORDER BY number"""
_USES_PICTURE = """
    SELECT 1 FROM messages WHERE conversation = :conversation AND instr(body, :digest)
    UNION ALL SELECT 1 FROM drafts WHERE number = :conversation AND instr(body, :digest)
    UNION ALL SELECT 1 FROM conversations WHERE number = :conversation AND instr(state, :digest)
    UNION ALL SELECT 1 FROM runs JOIN journal
        ON journal.number >= runs.number << 32 AND journal.number < (runs.number + 1) << 32
        WHERE runs.conversation = :conversation AND instr(event, :digest)
    LIMIT 1"""
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")


class BranchRows:
    """All branches of conversations. All methods raise WrongUse for an unknown conversation; StorageFailed.

    `purge` runs work that deletes for good, and removes what nothing uses any more.
    """

    def __init__(self, run: RunInDatabase, purge: RunInDatabase) -> None:
        self._run = run
        self._purge = purge

    async def load_outline(self, conversation_id: str) -> tuple[MessageOutline, ...]:
        """Return an outline of all messages of a conversation, each after its parent.

        It is read in parts, between which others use the database.
        """
        from desktop_agent.storage.conversation_trees import load_outlines, message_numbers

        numbers = await self._run(partial(message_numbers, id_=conversation_id))
        outlines: list[MessageOutline] = []
        while numbers:
            part, count = await self._run(partial(load_outlines, numbers=numbers))
            outlines += part
            numbers = numbers[count:]
        return tuple(outlines)

    async def delete(self, conversation_id: str, root_id: str, **changes: Unpack[ConversationChanges]) -> None:
        """Delete for good a message and all that follow it on every branch, with what only they needed, all or none.

        `changes` are made in the same transaction; they move the head to a message that stays. Harmless when repeated.
        """

        def work(db: DatabaseConnection) -> None:
            number = conversation_number(db, conversation_id)
            with transaction(db):
                update_conversation(db, number, changes)
                delete_messages(db, number, root_id)

        await self._purge(work)


def delete_messages(connection: sqlite3.Connection, conversation: int, root_id: str) -> None:
    """Delete the message and all that follow it on every branch, inside the caller's transaction.

    The head must have been moved away from them. Harmless where they are gone already. The rows of `runs` stay: they
    hold nothing that was said, and a process that follows along knows the newest one by its number.
    """
    rows = connection.execute(_SELECT_BELOW, {"conversation": conversation, "id": root_id}).fetchall()
    if not rows:
        return
    ids = {text_of(id_) for _, id_, _ in rows}
    digests = {digest for *_, body in rows for digest in _DIGEST.findall(text_of(body))}
    connection.executemany("DELETE FROM messages WHERE number = ?", [(number,) for number, *_ in rows])
    for run, turns in _find_journal(connection, conversation, ids):
        digests |= _delete_journal(connection, run, turns)
    _delete_checkpoints(connection, conversation, ids)
    for digest in digests:
        values = {"conversation": conversation, "digest": digest}
        if connection.execute(_USES_PICTURE, values).fetchone() is None:
            sql = "DELETE FROM picture_uses WHERE conversation = :conversation AND digest = :digest"
            connection.execute(sql, values)


@dataclass(slots=True)
class _Run:
    """How a run and its parts began: the answers of its turns, and the turns in which each call started."""

    number: int
    id: str
    parent_id: str | None = None
    prompt_id: str = ""
    call_id: str = ""
    answers: dict[str, str] = field(default_factory=dict[str, str])
    turns_of_calls: dict[str, set[str]] = field(default_factory=dict[str, set[str]])

    def read(self, parent_id: str | None, turn_id: str, event: object) -> None:
        self.parent_id = parent_id
        match event:
            case RunStarted(message_id=prompt_id, call_id=call_id, resumed=False):
                self.prompt_id, self.call_id = prompt_id, call_id
            case TurnStarted(turn_id=turn, message_id=answer_id):
                self.answers[turn] = answer_id
            case ToolStarted(id=id_):
                self.turns_of_calls.setdefault(id_, set()).add(turn_id)
            case _:
                pass


def _find_journal(
    connection: sqlite3.Connection, conversation: int, ids: set[str]
) -> Iterator[tuple[int, Collection[str] | None]]:
    """Yield each run with rows that belong to these messages alone, and the turns of those rows; None for all rows.

    Adds to `ids` the answers of the specialists that worked for these messages.
    """
    deleted_runs: set[str] = set()
    deleted_calls: set[tuple[str | None, str]] = set()
    for run in _read_runs(connection, conversation):
        turns = {turn for turn, answer in run.answers.items() if answer in ids}
        if run.parent_id is not None:
            is_deleted = run.parent_id in deleted_runs or (run.parent_id, run.call_id) in deleted_calls
        else:
            is_deleted = len(turns) == len(run.answers) if run.answers else run.prompt_id in ids
        if is_deleted:
            deleted_runs.add(run.id)
            ids.update(run.answers.values())
            yield run.number, None
        elif turns:
            deleted_calls |= {(run.id, call) for call, started in run.turns_of_calls.items() if started <= turns}
            yield run.number, turns


def _read_runs(connection: sqlite3.Connection, conversation: int) -> Iterator[_Run]:
    """Yield the runs, each after the one that started it."""
    sql = "SELECT number, id FROM runs WHERE conversation = ? ORDER BY number"
    for number, id_ in connection.execute(sql, (conversation,)).fetchall():
        run = _Run(number, text_of(id_))
        for parent_id, turn_id, event in connection.execute(_SELECT_STARTS, journal_span(number)):
            run.read(text_or_none(parent_id), text_or_none(turn_id) or "", read_event(text_of(event)))
        yield run


def _delete_journal(connection: sqlite3.Connection, run: int, turns: Collection[str] | None) -> set[str]:
    """Delete the rows of these turns, or all; return the digests in them."""
    where, values = "number >= ? AND number < ?", [*journal_span(run)]
    digests: set[str] = set()
    for turn in [None] if turns is None else turns:
        which = "" if turn is None else " AND turn_id = ?"
        bound: list[Any] = [*values, *([] if turn is None else [turn])]
        for (event,) in connection.execute(f"SELECT event FROM journal WHERE {where}{which}", bound):  # noqa: S608  constants
            digests.update(_DIGEST.findall(text_of(event)))
        connection.execute(f"DELETE FROM journal WHERE {where}{which}", bound)  # noqa: S608  constants
    return digests


def _delete_checkpoints(connection: sqlite3.Connection, conversation: int, ids: Collection[str]) -> None:
    """Delete the checkpoints of the calls in these messages, and those that were saved when they were restored."""
    rows = connection.execute("SELECT number, body FROM checkpoints WHERE conversation = ?", (conversation,)).fetchall()
    numbers = [(number,) for number, body in rows if (match := _MESSAGE_ID.search(text_of(body))) and match[1] in ids]
    connection.executemany("DELETE FROM checkpoints WHERE number = ?", numbers)


# By pattern: a row that cannot be read any more must go too. Ids are plain ASCII.
_MESSAGE_ID = re.compile(r'"message_id":"([^"\\]*)"')
