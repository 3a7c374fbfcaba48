"""Which pictures there are, and who uses them; and how bytes inside messages become files beside the database."""

import hashlib
import sqlite3
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from desktop_agent.storage.database.connection import text_of, transaction
from desktop_agent.storage.pictures import PictureFiles
from desktop_agent.vocabulary.blocks import Block, Image, Json, ResultPart, ToolResult, Unknown
from desktop_agent.vocabulary.engine_events import Envelope, ToolFinished
from desktop_agent.vocabulary.errors import ImageRefused, StorageFailed
from desktop_agent.vocabulary.images import Base64Source, MediaType, StoredSource, decode_base64, read_image_size
from desktop_agent.vocabulary.messages import Message

_SELECT_UNUSED = "SELECT digest, media_type FROM pictures WHERE digest NOT IN (SELECT digest FROM picture_uses)"


class PictureStorer:
    """Turns pictures held as base64 into files, and notes that a conversation uses them.

    To be used inside a transaction. A picture whose header does not tell its size is kept as a file all the same,
    but stands in the message as what it is, something this version cannot show: an `Unknown` block, or a `Json` part
    of a tool's result, with digest, media type, size and name.
    """

    def __init__(self, connection: sqlite3.Connection, files: PictureFiles, conversation: int) -> None:
        self._connection = connection
        self._files = files
        self._conversation = conversation

    def store_message(self, message: Message) -> Message:
        """The message as it is to be written. Raises StorageFailed."""
        blocks = tuple(self._block(block) for block in message.blocks)
        return message if blocks == message.blocks else message.model_copy(update={"blocks": blocks})

    def store_envelope(self, envelope: Envelope) -> Envelope:
        """The same for an event. Raises StorageFailed."""
        if not isinstance(envelope.event, ToolFinished):
            return envelope
        return replace(envelope, event=replace(envelope.event, result=self._result(envelope.event.result)))

    def store_image(self, image: Image) -> Image:
        """The same for a picture of a draft, which has to be there: whoever writes the draft puts it again.

        Raises ImageRefused for one that cannot be read, and StorageFailed. A message is written also where a picture
        of it is gone: it may be the only copy of the words.
        """
        kept = self._stored(image)
        if not isinstance(kept, Image):
            raise ImageRefused.unreadable(image.name or "")
        source = kept.source
        if isinstance(source, StoredSource) and not self._files.path_of(source).is_file():
            raise StorageFailed("A picture was cleared away before it was needed.", "Try again.")
        return kept

    def _block(self, block: Block) -> Block:
        if isinstance(block, ToolResult):
            return self._result(block)
        if not isinstance(block, Image):
            return block
        kept = self._stored(block)
        return kept if isinstance(kept, Image) else Unknown(raw=kept)

    def _result(self, result: ToolResult) -> ToolResult:
        if not any(isinstance(part, Image) for part in result.content):
            return result
        return result.model_copy(update={"content": tuple(self._part(part) for part in result.content)})

    def _part(self, part: ResultPart) -> ResultPart:
        if not isinstance(part, Image):
            return part
        kept = self._stored(part)
        return kept if isinstance(kept, Image) else Json(value=kept)

    def _stored(self, image: Image) -> Image | dict[str, Any]:
        source = image.source
        if isinstance(source, Base64Source):
            found = self._write_file(source, image.name)
            if isinstance(found, dict):
                return found
            image = image.model_copy(update={"source": found})
        elif isinstance(source, StoredSource):
            self._insert_rows(source.digest, source.media_type, source.size, (source.width, source.height))
        return image

    def _write_file(self, source: Base64Source, name: str | None) -> StoredSource | dict[str, Any]:
        about = {"type": "image", "media_type": source.media_type, "name": name}
        try:
            data = decode_base64(source.data)
        except ImageRefused:
            return about
        digest = hashlib.sha256(data).hexdigest()
        self._files.write(digest, source.media_type, data)
        size = read_image_size(data)
        self._insert_rows(digest, source.media_type, len(data), size)
        if size is None:
            return {**about, "digest": digest, "size": len(data)}
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


def delete_picture_uses(connection: sqlite3.Connection, conversation: int) -> None:
    """The conversation, or the draft that has none, uses no pictures any more."""
    connection.execute("DELETE FROM picture_uses WHERE conversation = ?", (conversation,))


def remove_unused_pictures(connection: sqlite3.Connection, files: PictureFiles) -> None:
    """Delete the files of pictures that nothing uses, then their rows: a crash between leaves nothing behind.

    In one transaction, so that nobody begins to use one meanwhile; young ones are left for the next time.
    """
    with transaction(connection):
        for digest, media_type in connection.execute(_SELECT_UNUSED).fetchall():
            with suppress(OSError):  # a file that cannot be deleted now is tried again at the next opening
                if files.remove_old(text_of(digest), cast("MediaType", media_type)):
                    connection.execute("DELETE FROM pictures WHERE digest = ?", (digest,))
