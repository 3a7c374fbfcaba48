"""Files named by the SHA-256 of their bytes (pictures, and files of checkpoints), and the rows that need them."""

import asyncio
import hashlib
import json
import logging
import os
import re
import sqlite3
import time
from collections.abc import Container, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from desktop_agent.storage.connection import DatabaseConnection, RunInDatabase, text_of, transaction
from desktop_agent.storage.conversation_rows import conversation_number
from desktop_agent.storage.files import file_error, find_link_error, make_private_folder, sync_folder, write_atomically
from desktop_agent.storage.records import ConversationChanges
from desktop_agent.types.blocks import (
    PICTURE_EXTENSIONS,
    Base64Source,
    Block,
    Image,
    Json,
    MediaType,
    ResultPart,
    StoredSource,
    ToolResult,
    Unknown,
    decode_base64,
    read_image_size,
)
from desktop_agent.types.checkpoints import Checkpoint
from desktop_agent.types.engine_events import Envelope, ToolFinished
from desktop_agent.types.errors import ImageRefused, Sentence, StorageFailed
from desktop_agent.types.messages import Message

_DIGEST = re.compile(r"[0-9a-f]{64}")
# What a process that died left half-written. Younger ones may belong to one that lives.
_UNFINISHED_SECONDS = 24 * 60 * 60


BLOB_FOLDER = "saved-files"
PICTURE_FOLDER = "pictures"


class BlobFiles:
    """The folder `saved-files` inside the data folder: `saved-files/ab/abcd…`. All methods raise StorageFailed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / BLOB_FOLDER

    async def put(self, data: bytes) -> str:
        """Store bytes and return their digest, in hexadecimal; durable when it returns. Equal bytes share one file."""
        return await asyncio.to_thread(self._write_blob, data)

    async def get(self, digest: str) -> bytes:
        """Return the bytes, checked against their digest."""
        return await asyncio.to_thread(self._read, digest)

    def has(self, digest: str) -> bool:
        """Return whether there is such a file; not whether it is whole."""
        return self._path_of(digest).is_file()

    def remove_all_but(self, needed: Container[str]) -> None:
        """Delete every other file. One that cannot be deleted now stays until the next time."""
        with suppress(OSError):
            for path in list(self._folder.glob("??/*")):
                if _DIGEST.fullmatch(path.name):
                    is_rubbish = path.name not in needed
                else:
                    is_rubbish = time.time() - path.stat().st_mtime > _UNFINISHED_SECONDS
                if is_rubbish:
                    with suppress(OSError):
                        path.unlink()

    def _path_of(self, digest: str) -> Path:
        return self._folder / digest[:2] / digest

    def _write_blob(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        path = self._path_of(digest)
        try:
            if not _has_digest(path, digest):
                self._make_folder(path.parent)
                write_atomically(path, data)
        except OSError as error:
            raise file_error(error, path, self._folder.parent) from error
        return digest

    def _make_folder(self, folder: Path) -> None:
        if not folder.is_dir():
            make_private_folder(folder, self._folder.parent)
            # A file is durable only once its folder is.
            for above in (self._folder, self._folder.parent):
                sync_folder(above)

    def _read(self, digest: str) -> bytes:
        path = self._path_of(digest)
        try:
            data = path.read_bytes()
        except FileNotFoundError as error:
            lost = _lost_file_error("A saved file is missing from the data folder.", path)
            raise find_link_error(path) or lost from error
        except OSError as error:
            raise file_error(error, path) from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise _lost_file_error("A saved file was changed or damaged on the disk.", path)
        return data


def _has_digest(path: Path, digest: str) -> bool:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == digest
    except FileNotFoundError:
        return False


def _lost_file_error(what: str, path: Path) -> StorageFailed:
    return StorageFailed(Sentence(what), "Put the file back by hand from a copy of your own.", detail=str(path))


# Seconds for which an unused picture is kept after it was stored.
YOUNG_SECONDS = 24 * 60 * 60
# The coarsest step, in seconds, of the clock that file systems take their times from.
_CLOCK_TICK = 0.02


class PictureFiles:
    """The folder `pictures` inside the data folder: `pictures/ab/abcd….png`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / PICTURE_FOLDER

    async def put(self, data: bytes, media_type: MediaType, width: int, height: int) -> StoredSource:
        """Store a picture; equal bytes share one file. Raises StorageFailed."""
        source = StoredSource(
            digest=hashlib.sha256(data).hexdigest(), media_type=media_type, size=len(data), width=width, height=height
        )
        await asyncio.to_thread(self.write, source.digest, media_type, data)
        return source

    async def get(self, source: StoredSource) -> bytes:
        """Return the bytes, checked against their digest.

        Raises ImageRefused when they are missing or damaged, StorageFailed when they cannot be read now.
        """
        return await asyncio.to_thread(self._read, source)

    def path_of(self, source: StoredSource) -> Path:
        """Return where the picture is stored."""
        return self.path_for(source.digest, source.media_type)

    def path_for(self, digest: str, media_type: MediaType) -> Path:
        """Return where a picture of this digest and type is stored."""
        return self._folder / digest[:2] / f"{digest}.{PICTURE_EXTENSIONS[media_type]}"

    def write(self, digest: str, media_type: MediaType, data: bytes) -> None:
        """Write the file in this thread, unless it is there and whole; either way it is young. Raises StorageFailed."""
        path = self.path_for(digest, media_type)
        try:
            with suppress(FileNotFoundError):
                # First: a purge must not remove what is about to be used.
                os.utime(path)
                if hashlib.sha256(path.read_bytes()).hexdigest() == digest:
                    return
            make_private_folder(path.parent, self._folder.parent)
            write_atomically(path, data)
        except OSError as error:
            raise file_error(error, path, self._folder.parent) from error

    def remove_old(self, digest: str, media_type: MediaType, left_at: float = 0) -> bool:
        """Delete the file in this thread, unless it is young: it may be on its way into a message.

        `left_at` is when its last conversation was deleted, in seconds since 1970: a file that was not written since
        then is not young. Return whether it is gone. Raises OSError.
        """
        path = self.path_for(digest, media_type)
        try:
            written_at = path.stat().st_mtime
            if written_at > left_at - _CLOCK_TICK and time.time() - written_at < YOUNG_SECONDS:
                return False
            path.unlink()
        except FileNotFoundError:
            if find_link_error(path) is not None:
                raise
        return True

    def _read(self, source: StoredSource) -> bytes:
        path = self.path_of(source)
        try:
            data = path.read_bytes()
        except FileNotFoundError as error:
            raise find_link_error(path) or ImageRefused(
                "A picture of this conversation is missing from the data folder.",
                "Attach it again.",
                detail=f"{error.strerror}: {path}",
            ) from error
        except OSError as error:
            reason = error.strerror or type(error).__name__
            sentence = Sentence("A picture of this conversation cannot be read now: {reason}.", {"reason": reason})
            raise StorageFailed(sentence, "Try again later.", detail=str(path)) from error
        if hashlib.sha256(data).hexdigest() != source.digest:
            raise ImageRefused(
                "A picture of this conversation was changed or damaged on the disk.",
                "Attach it again.",
                detail=str(path),
            )
        return data


_log = logging.getLogger(__name__)

_DIGEST_IN_BODY = re.compile(r"\b[0-9a-f]{64}\b")


class CheckpointRows:
    """The checkpoints of all conversations. Both methods raise StorageFailed."""

    def __init__(self, run: RunInDatabase, blobs: BlobFiles) -> None:
        self._run = run
        self._blobs = blobs

    async def save(self, checkpoint: Checkpoint) -> None:
        """Insert or replace the checkpoint; durable when it returns. The blobs it needs must be there.

        Raises WrongUse for a conversation that was not written yet.
        """
        await self._run(lambda db: _save_checkpoint(db, self._blobs, checkpoint))

    async def of_conversation(self, conversation_id: str) -> tuple[Checkpoint, ...]:
        """Return the checkpoints of a conversation, in the order in which they were first written."""
        return await self._run(lambda db: _list_checkpoints(db, conversation_id))


def remove_unused_blobs(connection: sqlite3.Connection, blobs: BlobFiles) -> None:
    """Delete the saved files that no checkpoint needs any more."""
    # A transaction, so that no process writes a checkpoint between the check and the deletion; see `_require_blobs`.
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
    """Check the blobs again: nothing names them until this row is written, so a purge may just have removed them."""
    for file in checkpoint.files:
        digest = file.before.digest
        if digest is not None and not blobs.has(digest):
            raise StorageFailed("A saved file was removed before it was needed.", "Try again.")


def _list_checkpoints(connection: DatabaseConnection, conversation_id: str) -> tuple[Checkpoint, ...]:
    rows = connection.execute(
        "SELECT body FROM checkpoints WHERE conversation = (SELECT number FROM conversations WHERE id = ?)"
        " ORDER BY number",
        (conversation_id,),
    )
    checkpoints = [_read_checkpoint(text_of(body)) for (body,) in rows]
    return tuple(checkpoint for checkpoint in checkpoints if checkpoint is not None)


def _checkpoint_json(checkpoint: Checkpoint) -> str:
    """Return plain ASCII, as names on disk need not be Unicode and may hold lone surrogates.

    Defaults are left out: a version that does not know a field yet skips the checkpoints that have it.
    """
    return json.dumps(checkpoint.model_dump(exclude_defaults=True), separators=(",", ":"), default=to_jsonable_python)


def _read_checkpoint(text: str) -> Checkpoint | None:
    try:
        return Checkpoint.model_validate(json.loads(text))
    except (ValidationError, ValueError, RecursionError):
        _log.warning("a checkpoint cannot be read and is left out")
        return None


_SELECT_IN_TRASH = """
    SELECT u.digest, max(c.deleted_at) FROM picture_uses u JOIN conversations c ON c.number = u.conversation
    WHERE c.deleted_at IS NOT NULL GROUP BY u.digest"""
_SELECT_UNUSED = "SELECT digest, media_type FROM pictures WHERE digest NOT IN (SELECT digest FROM picture_uses)"


class PictureStorer:
    """Turns pictures held as base64 into files, and notes that a conversation uses them.

    To be used inside a transaction. A picture whose header does not tell its size is stored as a file all the same,
    but becomes in the message an `Unknown` block, or a `Json` part of a tool's result, with digest, media type, size
    and name.
    """

    def __init__(self, connection: sqlite3.Connection, files: PictureFiles, conversation: int) -> None:
        self._connection = connection
        self._files = files
        self._conversation = conversation

    def store_message(self, message: Message) -> Message:
        """Return the message as it is to be written. Raises StorageFailed."""
        blocks = tuple(self._block(block) for block in message.blocks)
        return message if blocks == message.blocks else message.model_copy(update={"blocks": blocks})

    def store_changes(self, changes: ConversationChanges) -> ConversationChanges:
        """Return the changes as they are to be written: messages that wait have pictures too. Raises StorageFailed."""
        if "state" not in changes:
            return changes
        state = changes["state"]
        queue = tuple(entry.model_copy(update={"message": self.store_message(entry.message)}) for entry in state.queue)
        return {**changes, "state": state.model_copy(update={"queue": queue})}

    def store_envelope(self, envelope: Envelope) -> Envelope:
        """Return the event as it is to be written. Raises StorageFailed."""
        match envelope.event:
            case ToolFinished() as finished:
                return replace(envelope, event=replace(finished, result=self._result(finished.result)))
            case Image() as image:
                return replace(envelope, event=self._image_block(image))
            case _:
                return envelope

    def store_image(self, image: Image) -> Image:
        """Return the picture of a draft as it is to be written. Raises ImageRefused for one that cannot be read.

        Raises StorageFailed where its file is gone: the caller can add it again. A message, in contrast, is written
        also where a picture of it is gone: it may be the only copy of the words.
        """
        stored = self._stored(image)
        if not isinstance(stored, Image):
            raise ImageRefused.unreadable(image.name or "")
        source = stored.source
        if isinstance(source, StoredSource) and not self._files.path_of(source).is_file():
            raise StorageFailed("A picture was removed before it was needed.", "Try again.")
        return stored

    def _block(self, block: Block) -> Block:
        if isinstance(block, ToolResult):
            return self._result(block)
        return self._image_block(block) if isinstance(block, Image) else block

    def _image_block(self, image: Image) -> Image | Unknown:
        stored = self._stored(image)
        return stored if isinstance(stored, Image) else Unknown(raw=stored)

    def _result(self, result: ToolResult) -> ToolResult:
        if not any(isinstance(part, Image) for part in result.content):
            return result
        return result.model_copy(update={"content": tuple(self._part(part) for part in result.content)})

    def _part(self, part: ResultPart) -> ResultPart:
        if not isinstance(part, Image):
            return part
        stored = self._stored(part)
        return stored if isinstance(stored, Image) else Json(value=stored)

    def _stored(self, image: Image) -> Image | dict[str, Any]:
        source = image.source
        if isinstance(source, Base64Source):
            written = self._write_file(source, image.name)
            if isinstance(written, dict):
                return written
            image = image.model_copy(update={"source": written})
        elif isinstance(source, StoredSource):
            self._insert_rows(source.digest, source.media_type, source.size, (source.width, source.height))
        return image

    def _write_file(self, source: Base64Source, name: str | None) -> StoredSource | dict[str, Any]:
        description = {"type": "image", "media_type": source.media_type, "name": name}
        try:
            data = decode_base64(source.data)
        except ImageRefused:
            return description
        digest = hashlib.sha256(data).hexdigest()
        self._files.write(digest, source.media_type, data)
        size = read_image_size(data)
        self._insert_rows(digest, source.media_type, len(data), size)
        if size is None:
            return {**description, "digest": digest, "size": len(data)}
        return StoredSource(digest=digest, media_type=source.media_type, size=len(data), width=size[0], height=size[1])

    def _insert_rows(self, digest: str, media_type: str, size: int, shape: tuple[int, int] | None) -> None:
        width, height = shape or (None, None)
        self._connection.execute(
            "INSERT OR IGNORE INTO pictures (digest, media_type, size, width, height) VALUES (?, ?, ?, ?, ?)",
            (digest, media_type, size, width, height),
        )
        self._connection.execute(
            "INSERT OR IGNORE INTO picture_uses (conversation, digest) VALUES (?, ?)", (self._conversation, digest)
        )


def find_pictures_in_trash(connection: sqlite3.Connection) -> dict[str, float]:
    """Return the digests of the pictures in the trash, and when they came there, in seconds since 1970."""
    return {text_of(digest): deleted_at / 1e6 for digest, deleted_at in connection.execute(_SELECT_IN_TRASH)}


def remove_unused_pictures(
    connection: sqlite3.Connection, files: PictureFiles, left_at: Mapping[str, float] | None = None
) -> None:
    """Delete the files of unused pictures, then their rows: a crash between leaves nothing behind.

    It runs in one transaction, so that nobody begins to use one meanwhile. Young ones stay until the next time, unless
    `left_at` says when the last conversation with them was deleted; see PictureFiles.remove_old.
    """
    left_at = left_at or {}
    with transaction(connection):
        for digest, media_type in connection.execute(_SELECT_UNUSED).fetchall():
            with suppress(OSError):  # a file that cannot be deleted now is tried again at the next opening
                kind = cast("MediaType", media_type)
                if files.remove_old(text_of(digest), kind, left_at.get(text_of(digest), 0)):
                    connection.execute("DELETE FROM pictures WHERE digest = ?", (digest,))
