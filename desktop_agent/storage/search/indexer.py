"""Keeps the search index up to date in the background: changes first, then what was written before there was an index.

The database is read in its own thread, a little at a time, because only there it is known which file is the database
at that moment (`desktop_agent.storage.guarded_database`). Texts are split and the index is written in another thread.
Nothing that goes wrong here is anybody's error: it is logged and tried again, and a damaged index is made anew.
"""

import asyncio
import logging
import os
import shutil
import sqlite3
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from desktop_agent.processes.worker_threads import WorkerThread
from desktop_agent.storage.connection import RunInDatabase, is_damage
from desktop_agent.storage.file_lock import FileLock, lock_path
from desktop_agent.storage.search import outbox
from desktop_agent.storage.search.index_file import INDEX_NAME, IndexUnusable, IndexWriter, remove_index
from desktop_agent.types.errors import DatabaseBusy, DatabaseReplaced, Sentence, StorageFailed
from desktop_agent.types.messages import new_id

_log = logging.getLogger(__name__)
T = TypeVar("T")

_LOCK_NAME = "search-index"
MIN_FREE_BYTES = 100 * 1024 * 1024
"""Where less is free nothing is indexed: the last room is for conversations."""
_READ_ONLY = Sentence(
    "Not everything can be searched: this data folder cannot be written, and the search keeps an index in it. Give it "
    "back its rights, or open a copy of it that can be written."
)
DISK_FULL = Sentence(
    "Not everything can be searched: less than 100 MB are free on this disk, too little for the index. Free some space."
)
_GATHER_SECONDS = 0.1
# What other processes write is noticed when somebody searches, or after so long.
_POLL_SECONDS = 30.0


class Indexer:
    """Writes the index while it is started, unless another process does. `run` raises StorageFailed."""

    def __init__(self, folder: Path, run: RunInDatabase) -> None:
        self._folder = folder
        self._run = run
        self._path = folder / INDEX_NAME
        self._lock = FileLock(lock_path(folder, _LOCK_NAME), folder)
        self._turn = asyncio.Lock()
        self._worker: WorkerThread | None = None
        self._writer: IndexWriter | None = None
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False
        self._is_hurried = False
        self._is_distrusted = False
        self.obstacle: Sentence | None = None
        """Why nothing can be indexed, for people; None while it can, or may soon."""

    def start(self) -> None:
        """Begin to index in the background. Harmless when repeated."""
        if self._task is None and not self._is_closed:
            self._task = asyncio.get_running_loop().create_task(self._keep_up())

    def wake(self) -> None:
        """Look for changes soon. Harmless on another loop: one writes the rest when the program's own has ended."""
        if self._task is not None and self._task.get_loop() is asyncio.get_running_loop():
            self._woken.set()

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
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        async with self._turn:
            if self._worker is not None:
                with suppress(sqlite3.Error):
                    await self._worker.run(self._close_writer)
                self._worker.stop()
                self._worker = None
            await asyncio.to_thread(self._lock.release)

    async def _keep_up(self) -> None:
        while True:
            self._woken.clear()
            await self._index()
            with suppress(TimeoutError):
                async with asyncio.timeout(_POLL_SECONDS):
                    await self._woken.wait()
            await asyncio.sleep(_GATHER_SECONDS)

    async def _index(self) -> bool:
        async with self._turn:
            try:
                return await self._index_all()
            except (StorageFailed, OSError) as error:
                self.obstacle = _obstacle(error)
                _log.info("nothing is indexed now: %s", type(error).__name__)
            except (sqlite3.Error, IndexUnusable, ValueError, zlib.error) as error:
                await self._discard(error)
            except Exception:  # noqa: BLE001 - a search that finds less must not end anything else
                _log.exception("the conversations could not be indexed")
            return False

    async def _index_all(self) -> bool:
        while not self._is_closed:
            if not await self._in_thread(self._prepare):
                return False
            if self._is_distrusted:
                self._is_distrusted = False
                await self._in_thread(self._remove)
                continue
            changes = await self._run(outbox.read_changes)
            if not await self._write(lambda writer, token=changes.token: writer.belongs_to(token)):
                await self._begin()
            elif changes.rows:
                token = new_id()
                await self._write(lambda writer, new=changes, token=token: writer.apply(new, token))
                await self._run(lambda db, new=changes, token=token: outbox.remove_changes(db, new, token))
            elif not await self._tidy() or not await self._add_older():
                return await self._write(lambda writer: writer.is_compact)
        return False

    async def _tidy(self) -> bool:
        """Compact what needs it; False where a search of another process is in the way."""
        while not await self._write(lambda writer: writer.is_compact):
            if not await self._write(IndexWriter.compact_one):
                return False
        return True

    async def _begin(self) -> None:
        # First: a database that cannot be written now keeps the index that it has.
        token = new_id()
        rest = await self._run(lambda db: outbox.begin_index(db, token))
        if await self._write(lambda writer: writer.is_begun):
            _log.info("the search index is of another database; it is made anew")
            await self._in_thread(self._remove)
            if not await self._in_thread(self._prepare):
                return
        await self._write(lambda writer: writer.begin(token, *rest))

    async def _add_older(self) -> bool:
        """Add a few rows of before the index; return False when there are none left."""
        began = time.monotonic()
        conversations, messages = await self._write(IndexWriter.rest)
        if conversations:
            titles = await self._run(lambda db: outbox.read_conversations_below(db, conversations))
            await self._write(lambda writer: writer.add_conversations(titles))
        elif messages:
            rows = await self._run(lambda db: outbox.read_messages_below(db, messages))
            await self._write(lambda writer: writer.add_messages(rows))
        else:
            return False
        if not self._is_hurried:
            # Half of the time belongs to whoever works with the program.
            await asyncio.sleep(time.monotonic() - began)
        return True

    async def _discard(self, error: Exception) -> None:
        is_useless = not isinstance(error, sqlite3.Error) or is_damage(error)
        _log.warning("the search index: %s%s", type(error).__name__, "; it is made anew" if is_useless else "")
        with suppress(sqlite3.Error, OSError):
            await self._in_thread(self._remove if is_useless else self._close_writer)
        if is_useless:
            self.wake()

    async def _write(self, work: Callable[[IndexWriter], T]) -> T:
        def write() -> T:
            assert self._writer is not None  # noqa: S101  made by _prepare
            return work(self._writer)

        return await self._in_thread(write)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        if self._worker is None:
            self._worker = WorkerThread("indexing")
        return await self._worker.run(work)

    def _prepare(self) -> bool:
        """Return whether the index can be written, by nobody else. Raises sqlite3.Error, OSError, StorageFailed."""
        is_read_only = not os.access(self._folder, os.W_OK)
        if is_read_only or shutil.disk_usage(self._folder).free < MIN_FREE_BYTES:
            self.obstacle = _READ_ONLY if is_read_only else DISK_FULL
            return False
        if not self._lock.acquire():
            self.obstacle = None
            return False
        if self._writer is None or not self._writer.has_its_name:
            self._close_writer()
            self._writer = IndexWriter(self._path)
        self.obstacle = None
        return True

    def _remove(self) -> None:
        self._close_writer()
        remove_index(self._path)

    def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()


def _obstacle(error: StorageFailed | OSError) -> Sentence | None:
    """Return why nothing can be indexed until a person changes something; None where it is only for now."""
    if isinstance(error, StorageFailed) and not isinstance(error, DatabaseBusy | DatabaseReplaced):
        return Sentence("Not everything can be searched: {why}", {"why": error.sentence})
    return None
