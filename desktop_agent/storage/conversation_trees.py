"""Whole conversations with all their branches: read for exports, written by imports."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic_core import from_json

from desktop_agent.storage.connection import InconsistentData, text_of, text_or_none, transaction
from desktop_agent.storage.content_files import PictureFiles, PictureStorer
from desktop_agent.storage.conversation_rows import (
    NOT_A_BRANCH,
    conversation_number,
    insert_message,
    load_record,
    moment_of_every_zone,
    to_microseconds,
    update_conversation,
)
from desktop_agent.storage.folder_rows import copy_place, find_or_create_path, folder_path, set_tags
from desktop_agent.storage.records import (
    ConversationChanges,
    ConversationState,
    message_from_row,
    read_message,
    state_to_json,
    to_json_unless,
)
from desktop_agent.types.conversation_tree import (
    FOUND_PREFIX,
    ConversationOrigin,
    ConversationTree,
    MessageOutline,
    TreeMessage,
    outline_of,
)
from desktop_agent.types.errors import Sentence, WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.tool_calls import IMPORTED_CONVERSATION

_COLUMNS = "m.id, m.role, m.state, m.body, (SELECT id FROM messages above WHERE above.number = m.parent)"
_SELECT_MESSAGES = f"SELECT {_COLUMNS}, m.parent FROM messages m WHERE m.conversation = ? ORDER BY m.number"  # noqa: S608  constants
_SELECT_FOR_OUTLINE = f"""
    SELECT m.created_at, m.number, {_COLUMNS}
    FROM messages m WHERE m.number IN (%s) ORDER BY m.number"""  # noqa: S608  constants
_MAX_OUTLINE_MESSAGES = 100
_MAX_OUTLINE_BYTES = 256 * 1024


def message_numbers(connection: sqlite3.Connection, id_: str) -> list[int]:
    """Return the row numbers of all messages of a conversation, each after its parent's. Raises WrongUse."""
    sql = "SELECT number FROM messages WHERE conversation = ? ORDER BY number"
    return [number for (number,) in connection.execute(sql, (conversation_number(connection, id_),))]


def load_outlines(connection: sqlite3.Connection, numbers: Sequence[int]) -> tuple[list[MessageOutline], int]:
    """Return the outlines of the first of these messages, and how many of the numbers were read.

    Messages that are gone by now are left out.
    """
    part = numbers[:_MAX_OUTLINE_MESSAGES]
    outlines: list[MessageOutline] = []
    size = 0
    cursor = connection.execute(_SELECT_FOR_OUTLINE % ", ".join("?" * len(part)), part)
    for created_at, number, message_id, role, state, body, parent in cursor:
        texts = (text_of(message_id), text_of(role), text_of(state), text_of(body))
        outlines.append(_read_outline(*texts, text_of(created_at), text_or_none(parent)))
        size += len(body)
        if size > _MAX_OUTLINE_BYTES:
            cursor.close()
            return outlines, part.index(number) + 1
    return outlines, len(part)


def _read_outline(id_: str, role: str, state: str, body: str, created_at: str, parent: str | None) -> MessageOutline:
    """Return the outline. Parsing thousands of messages whole takes seconds: only unusual ones are."""
    try:
        message: Any = from_json(body)
        blocks = message["blocks"]
        lines = [outline_of(block["text"]) for block in blocks if block["type"] == "text"]
        calls = sum(1 for block in blocks if block["type"] == "tool_use")
        is_injected, moment = message["injected_by"] is not None, datetime.fromisoformat(created_at)
        line = next((line for line in lines if line), "")
        return MessageOutline(id_, parent, Role(role), is_injected, moment, line, calls)
    except (ValueError, LookupError, TypeError, AttributeError):
        return MessageOutline.of(read_message(body, id_=id_, role=role, state=state), parent)


def load_tree(connection: sqlite3.Connection, id_: str) -> ConversationTree:
    """Return a conversation with all its messages, in the order in which they were written.

    Raises WrongUse, and InconsistentData where the messages are no tree.
    """
    record = load_record(connection, id_)
    rows = connection.execute(_SELECT_MESSAGES, (conversation_number(connection, id_),)).fetchall()
    if any(above is not None and parent is None for *_, parent, above in rows):
        raise InconsistentData(NOT_A_BRANCH)
    messages = tuple(
        TreeMessage(message=message_from_row(*columns), parent=text_or_none(parent)) for *columns, parent, _ in rows
    )
    try:
        return ConversationTree(
            id=record.id,
            title=record.title,
            created_at=record.created_at,
            updated_at=record.updated_at,
            messages=messages,
            head=record.head_message_id,
            model=record.model,
            workspace=record.workspace,
            origin=record.origin,
            title_is_automatic=record.title_is_automatic,
            folder=folder_path(connection, record.folder),
            pinned_at=record.pinned_at,
            archived_at=record.archived_at,
            tags=record.tags,
        )
    except ValueError as error:
        raise InconsistentData(NOT_A_BRANCH) from error


def insert_tree(
    connection: sqlite3.Connection,
    tree: ConversationTree,
    pictures: PictureFiles,
    beside: str | None,
    more: ConversationChanges,
) -> bool:
    """Write a conversation, all or nothing; return False, and write nothing, where its id is there already.

    `pictures` become files. `beside`: the id of a conversation whose folder and tags it gets. `more` is what no tree
    has. Raises WrongUse for an unknown `beside`, and for the id of a conversation in the files of another program.
    """
    if tree.id.startswith(FOUND_PREFIX):
        # The window could neither open nor delete it.
        raise WrongUse(
            Sentence("No conversation is stored with the id “{id}”.", {"id": tree.id}), "Give it another id."
        )
    with transaction(connection):
        # In the transaction: another process may import the same conversation.
        if connection.execute("SELECT 1 FROM conversations WHERE id = ?", (tree.id,)).fetchone() is not None:
            return False
        own_place = {} if beside is None else {"folder": (), "tags": ()}
        number = _insert_conversation(connection, tree.model_copy(update=own_place))
        if beside is not None:
            copy_place(connection, conversation_number(connection, beside), number)
        storer = PictureStorer(connection, pictures, number)
        update_conversation(connection, number, storer.store_changes(more))
        places: dict[str | None, tuple[int | None, int]] = {None: (None, 0)}
        for node in tree.messages:
            parent, position = places[node.parent]
            message = storer.store_message(_with_plain_moment(node.message))
            row = insert_message(connection, number, message, parent, position + 1)
            places[message.id] = (row, position + 1)
        connection.execute(
            "UPDATE conversations SET head = ?, message_count = ? WHERE number = ?", (*places[tree.head], number)
        )
    return True


def _with_plain_moment(message: Message) -> Message:
    moment = moment_of_every_zone(message.created_at)
    return message if moment == message.created_at else message.model_copy(update={"created_at": moment})


def _insert_conversation(connection: sqlite3.Connection, tree: ConversationTree) -> int:
    row = {
        "id": tree.id,
        "title": tree.title,
        "title_is_automatic": tree.title_is_automatic,
        "created_at": to_microseconds(moment_of_every_zone(tree.created_at)),
        "updated_at": to_microseconds(moment_of_every_zone(tree.updated_at)),
        "model": tree.model,
        "workspace": tree.workspace,
        "origin": to_json_unless(None, ConversationOrigin, tree.origin),
        # A file may be written by anybody, and may contain instructions for a model.
        "state": state_to_json(ConversationState(outside=(IMPORTED_CONVERSATION,))),
        "folder": find_or_create_path(connection, tree.folder),
        "pinned_at": _microseconds_or_none(tree.pinned_at),
        "archived_at": _microseconds_or_none(tree.archived_at),
    }
    sql = f"INSERT INTO conversations ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"  # noqa: S608  constants
    number = connection.execute(sql, tuple(row.values())).lastrowid
    assert number is not None  # noqa: S101  an INSERT of one row has a number
    set_tags(connection, number, tree.tags)
    return number


def _microseconds_or_none(moment: datetime | None) -> int | None:
    return None if moment is None else to_microseconds(moment_of_every_zone(moment))
