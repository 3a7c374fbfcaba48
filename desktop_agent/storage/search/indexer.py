"""Keeps the search index up to date in the background: changes first, then what was written before there was an index.

The database is read in its own thread, a little at a time, because only there it is known which file is the database
at that moment (`desktop_agent.storage.guarded_database`). Texts are split and the index is written in another thread.
"""

import asyncio
import logging
import os
import shutil
import time
from collections import deque
from pathlib import Path

from desktop_agent.storage.connection import RunInDatabase
from desktop_agent.storage.search import outbox
from desktop_agent.storage.search.background_writer import DISK_FULL, MIN_FREE_BYTES, BackgroundWriter
from desktop_agent.storage.search.index_file import INDEX_NAME, IndexWriter
from desktop_agent.types.errors import DatabaseBusy, DatabaseReplaced, Sentence, StorageFailed
from desktop_agent.types.messages import new_id

_log = logging.getLogger(__name__)

_LOCK_NAME = "search-index"
_READ_ONLY = Sentence(
    "Not everything can be searched: the data folder is write-protected, and the search keeps its index there. Make "
    "the folder writable, or open a writable copy of it."
)
# What other processes write is noticed when somebody searches, or after so long.
_POLL_SECONDS = 30.0
_MAX_TOKENS = 1000


class Indexer:
    """Writes the index while it is started, unless another process does. `run` raises StorageFailed."""

    def __init__(self, folder: Path, run: RunInDatabase) -> None:
        self._folder = folder
        self._run = run
        self._background = BackgroundWriter("the search index", folder / INDEX_NAME, _LOCK_NAME, IndexWriter)
        self._is_hurried = False
        self._is_distrusted = False
        self.known_tokens: deque[str | None] = deque(maxlen=_MAX_TOKENS)
        """The last ones that index and database had together: they may get others between two looks of a search."""
        self.obstacle: Sentence | None = None
        """Why nothing can be indexed, for people; None while it can, or may soon."""

    def start(self) -> None:
        """Begin to index in the background. Harmless when repeated."""
        self._background.start(self._index_in_background)

    def wake(self) -> None:
        """Look for changes soon. Harmless on another loop."""
        self._background.wake()

    def distrust(self) -> None:
        """Make the index anew: a search found that it is damaged."""
        self._is_distrusted = True
        self.wake()

    async def catch_up(self) -> bool:
        """Index all there is, without pauses; return whether it could be done."""
        self._is_hurried = True
        try:
            return await self._index()
        finally:
            self._is_hurried = False

    async def close(self) -> None:
        """End after the piece at hand. Harmless when repeated."""
        await self._background.close()

    async def _index_in_background(self) -> float:
        await self._index()
        return _POLL_SECONDS

    async def _index(self) -> bool:
        return await self._background.attempt(self._index_all, self._note_refusal)

    def _note_refusal(self, error: StorageFailed | OSError) -> None:
        """Note why nothing can be indexed until a person changes something; None where it is only for now."""
        self.obstacle = None
        if isinstance(error, StorageFailed) and not isinstance(error, DatabaseBusy | DatabaseReplaced):
            self.obstacle = Sentence("Not everything can be searched: {why}", {"why": error.sentence})

    async def _index_all(self) -> bool:
        write = self._background.write
        while not self._background.is_closed:
            if not await self._background.run(self._prepare):
                return False
            if self._is_distrusted:
                self._is_distrusted = False
                await self._background.remove()
                continue
            changes = await self._run(outbox.read_changes)
            if not await write(lambda writer, token=changes.token: writer.belongs_to(token)):
                await self._begin()
            elif changes.rows:
                token = new_id()
                self.known_tokens += changes.token, token
                await write(lambda writer, new=changes, token=token: writer.apply(new, token))
                await self._run(lambda db, new=changes, token=token: outbox.remove_changes(db, new, token))
            elif not await self._background.compact() or not await self._add_older():
                return await write(lambda writer: writer.is_compact)
        return False

    async def _begin(self) -> None:
        # First: a database that cannot be written now keeps the index that it has.
        token = new_id()
        rest = await self._run(lambda db: outbox.begin_index(db, token))
        self.known_tokens.clear()
        if await self._background.write(lambda writer: writer.is_begun):
            _log.info("the search index is of another database; it is made anew")
            await self._background.remove()
            if not await self._background.run(self._prepare):
                return
        await self._background.write(lambda writer: writer.begin(token, *rest))

    async def _add_older(self) -> bool:
        """Add a few rows of before the index; return False when there are none left."""
        began = time.monotonic()
        write = self._background.write
        conversations, messages = await write(IndexWriter.rest)
        if conversations:
            titles = await self._run(lambda db: outbox.read_conversations_below(db, conversations))
            await write(lambda writer: writer.add_conversations(titles))
        elif messages:
            rows = await self._run(lambda db: outbox.read_messages_below(db, messages))
            await write(lambda writer: writer.add_messages(rows))
        else:
            return False
        if not self._is_hurried:
            # Half of the time belongs to whoever works with the program.
            await asyncio.sleep(time.monotonic() - began)
        return True

    def _prepare(self) -> bool:
        """Return whether the index can be written, by nobody else. Raises sqlite3.Error, OSError, StorageFailed."""
        is_read_only = not os.access(self._folder, os.W_OK)
        if is_read_only or shutil.disk_usage(self._folder).free < MIN_FREE_BYTES:
            self.obstacle = _READ_ONLY if is_read_only else DISK_FULL
            return False
        is_open = self._background.open()
        self.obstacle = None
        return is_open
