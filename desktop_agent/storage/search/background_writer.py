"""Writes an index file in the background: shared by the index of our own conversations and that of other programs'.

Nothing that goes wrong here is anybody's error: it is logged and tried again, and a damaged index is made anew.
"""

import asyncio
import logging
import sqlite3
import zlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

from desktop_agent.processes.worker_threads import WorkerThread
from desktop_agent.storage.connection import is_damage
from desktop_agent.storage.file_lock import FileLock, lock_path
from desktop_agent.storage.search.index_file import IndexUnusable, IndexWriter, remove_index
from desktop_agent.types.errors import Sentence, StorageFailed

_log = logging.getLogger(__name__)

MIN_FREE_BYTES = 100 * 1024 * 1024
"""Where less is free nothing is indexed: the last room is for conversations."""
DISK_FULL = Sentence(
    "Not everything can be searched: less than 100 MB are free on this disk, too little for the index. Free some space."
)
_GATHER_SECONDS = 0.1


T = TypeVar("T")
Writer = TypeVar("Writer", bound=IndexWriter)


class BackgroundWriter(Generic[Writer]):
    """Opens an index file and writes it in a thread of its own, unless another process does.

    Methods that wait for the thread raise what is raised there. `title` is the file's name in the program's log.
    """

    def __init__(self, title: str, path: Path, lock_name: str, open_writer: Callable[[Path], Writer]) -> None:
        self._title = title
        self._path = path
        self._open_writer = open_writer
        self._lock = FileLock(lock_path(path.parent, lock_name), path.parent)
        self._turn = asyncio.Lock()
        self._thread: WorkerThread | None = None
        self._writer: Writer | None = None
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._was_useless = False
        self.is_closed = False

    @property
    def is_started(self) -> bool:
        return self._task is not None

    def start(self, index: Callable[[], Awaitable[float]]) -> None:
        """Call `index` soon, and again after as many seconds as it returns or when woken, until `close`.

        Harmless when repeated.
        """
        if self._task is None and not self.is_closed:
            self._task = asyncio.get_running_loop().create_task(self._index_repeatedly(index))

    def wake(self) -> None:
        """Index soon. Harmless on another loop: one writes the rest when the program's own has ended."""
        if self._task is not None and self._task.get_loop() is asyncio.get_running_loop():
            self._woken.set()

    async def _index_repeatedly(self, index: Callable[[], Awaitable[float]]) -> None:
        while True:
            self._woken.clear()
            seconds = await index()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._woken.wait()
            await asyncio.sleep(_GATHER_SECONDS)

    async def attempt(
        self, work: Callable[[], Awaitable[bool]], note_refusal: Callable[[StorageFailed | OSError], None]
    ) -> bool:
        """Do `work`, one after the other; return its result, False where it failed."""
        async with self._turn:
            try:
                is_done = await work()
                self._was_useless = False
            except (StorageFailed, OSError) as error:
                note_refusal(error)
                _log.info("%s is not written now: %s", self._title, type(error).__name__)
            except (sqlite3.Error, IndexUnusable, ValueError, zlib.error) as error:
                await self._discard(error)
            except Exception:  # noqa: BLE001 - a search that finds less must not end anything else
                _log.exception("%s could not be written", self._title)
            else:
                return is_done
            return False

    async def close(self) -> None:
        """Stop, once the work in progress has ended. Harmless when repeated."""
        self.is_closed = True
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        async with self._turn:
            if self._thread is not None:
                with suppress(sqlite3.Error):
                    await self._thread.run(self._close_writer)
                self._thread.stop()
                self._thread = None
            await asyncio.to_thread(self._lock.release)

    async def run(self, work: Callable[[], T]) -> T:
        """Do `work` in the thread; return its result."""
        if self._thread is None:
            self._thread = WorkerThread("indexing")
        return await self._thread.run(work)

    def lock(self) -> bool:
        """Keep other processes from writing the file; return False where one of them does. For the thread."""
        return self._lock.acquire()

    def open(self) -> bool:
        """Open the file, unless another process writes it; return False then. For the thread."""
        if not self.lock():
            return False
        if self._writer is None or not self._writer.has_its_name:
            self._close_writer()
            self._writer = self._open_writer(self._path)
        return True

    async def write(self, work: Callable[[Writer], T]) -> T:
        """Do `work` on the open file, in the thread; return its result."""

        def write() -> T:
            assert self._writer is not None  # noqa: S101  made by open
            return work(self._writer)

        return await self.run(write)

    async def compact(self) -> bool:
        """Compact what needs it; False where a search of another process is in the way."""
        while not await self.write(lambda writer: writer.is_compact):
            if not await self.write(lambda writer: writer.compact_one()):
                return False
        return True

    async def remove(self) -> None:
        """Remove the file."""
        await self.run(self._remove)

    async def _discard(self, error: Exception) -> None:
        """Close the file, so that it is opened anew. One that is of no use is removed, and soon made anew."""
        is_useless = not isinstance(error, sqlite3.Error) or is_damage(error)
        _log.warning("%s: %s%s", self._title, type(error).__name__, "; it is made anew" if is_useless else "")
        with suppress(sqlite3.Error, OSError):
            await self.run(self._remove if is_useless else self._close_writer)
        # Only once: where the new file is of no use either, this would not end.
        if is_useless and not self._was_useless:
            self._was_useless = True
            self.wake()

    def _remove(self) -> None:
        self._close_writer()
        remove_index(self._path)

    def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
