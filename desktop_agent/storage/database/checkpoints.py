"""The rows of checkpoints, and which saved files they need."""

import json
import logging
import re
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from desktop_agent.storage.blobs import BlobFiles
from desktop_agent.storage.database.connection import DatabaseConnection, text_of, transaction
from desktop_agent.storage.database.conversations import conversation_number
from desktop_agent.vocabulary.conduct.checkpoints import Checkpoint
from desktop_agent.vocabulary.errors import StorageFailed

_log = logging.getLogger(__name__)
T = TypeVar("T")

CHECKPOINTS_TABLE = """
CREATE TABLE checkpoints (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 110 CHECK (mark = 110),
    conversation INTEGER NOT NULL REFERENCES conversations (number) ON DELETE CASCADE,
    id TEXT NOT NULL,
    body TEXT NOT NULL,  -- JSON; the bytes of files are in blobs, by their digests
    UNIQUE (conversation, id)
);
"""
_DIGEST_IN_BODY = re.compile(r"\b[0-9a-f]{64}\b")


class RunInDatabase(Protocol):
    """Runs work in the thread of the database and waits for it."""

    def __call__(self, work: Callable[[DatabaseConnection], T], /) -> Awaitable[T]:
        """Raises StorageFailed."""
        ...


class CheckpointRows:
    """The checkpoints of all conversations. Both methods raise StorageFailed."""

    def __init__(self, run: RunInDatabase, blobs: BlobFiles) -> None:
        self._run = run
        self._blobs = blobs

    async def save(self, checkpoint: Checkpoint) -> None:
        """Write it, or write it anew; durable when it returns. What it needs of the blobs must be there.

        Raises WrongUse for a conversation that was not written yet.
        """
        await self._run(lambda db: _save_checkpoint(db, self._blobs, checkpoint))

    async def of_conversation(self, conversation_id: str) -> tuple[Checkpoint, ...]:
        """Those of a conversation, in the order in which they were first written."""
        return await self._run(lambda db: _list_checkpoints(db, conversation_id))


def remove_unused_blobs(connection: sqlite3.Connection, blobs: BlobFiles) -> None:
    """Delete the saved files that no checkpoint needs any more."""
    # A transaction, so that no process writes a checkpoint between the look and the deed; see `_save`.
    with transaction(connection):
        bodies = connection.execute("SELECT body FROM checkpoints").fetchall()
        # By pattern and not by parsing: a row that cannot be read any more still keeps its files.
        needed = {digest for (body,) in bodies for digest in _DIGEST_IN_BODY.findall(text_of(body))}
        blobs.remove_all_but(needed)


def _save_checkpoint(connection: DatabaseConnection, blobs: BlobFiles, checkpoint: Checkpoint) -> None:
    number = conversation_number(connection, checkpoint.conversation_id)
    with transaction(connection):
        sql = "SELECT 1 FROM checkpoints WHERE conversation = ? AND id = ?"
        is_new = connection.execute(sql, (number, checkpoint.id)).fetchone() is None
        if is_new:
            _require_blobs(blobs, checkpoint)
        connection.execute(
            "INSERT INTO checkpoints (conversation, id, body) VALUES (?, ?, ?)"
            " ON CONFLICT (conversation, id) DO UPDATE SET body = excluded.body",
            (number, checkpoint.id, _checkpoint_json(checkpoint)),
        )


def _require_blobs(blobs: BlobFiles, checkpoint: Checkpoint) -> None:
    """Nothing names the bytes until this row is written, so the trash may just have been emptied around them."""
    for file in checkpoint.files:
        digest = file.before.digest
        if digest is not None and not blobs.has(digest):
            raise StorageFailed("A saved file was cleared away before it was needed.", "Try again.")


def _list_checkpoints(connection: DatabaseConnection, conversation_id: str) -> tuple[Checkpoint, ...]:
    rows = connection.execute(
        "SELECT body FROM checkpoints WHERE conversation = (SELECT number FROM conversations WHERE id = ?)"
        " ORDER BY number",
        (conversation_id,),
    )
    found = [_read_checkpoint(text_of(body)) for (body,) in rows]
    return tuple(each for each in found if each is not None)


def _checkpoint_json(checkpoint: Checkpoint) -> str:
    """Plain ASCII: names on disk need not be Unicode, and lone surrogates stand in for what is not.

    What stands at its default is not written: a version that does not know a field yet leaves out the checkpoints that
    have it.
    """
    return json.dumps(checkpoint.model_dump(exclude_defaults=True), separators=(",", ":"), default=to_jsonable_python)


def _read_checkpoint(text: str) -> Checkpoint | None:
    try:
        return Checkpoint.model_validate(json.loads(text))
    except (ValidationError, ValueError, RecursionError):
        _log.warning("a checkpoint cannot be read and is left out")
        return None
