"""Keeps the index of other programs' conversations up to date, in slices, in a thread of its own.

Only programs that are switched on are in it; what one of them does not list any more is removed, and with the last
program the file. Nothing that goes wrong here is anybody's error: less is found, and it is tried again.
"""

import asyncio
import logging
import os
import shutil
import sqlite3
import threading
import time
import zlib
from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeVar

from desktop_agent.processes.worker_threads import WorkerThread
from desktop_agent.storage.connection import is_damage
from desktop_agent.storage.file_lock import FileLock, lock_path
from desktop_agent.storage.search.found_index import (
    FoundEntry,
    FoundIndexWriter,
    IndexedEntry,
    Origin,
)
from desktop_agent.storage.search.index_file import FOUND_INDEX_NAME, IndexUnusable, remove_index
from desktop_agent.storage.search.indexer import DISK_FULL, MIN_FREE_BYTES
from desktop_agent.types.errors import Sentence, StorageFailed
from desktop_agent.types.messages import Message

_log = logging.getLogger(__name__)
T = TypeVar("T")

_LOCK_NAME = "search-found-index"
MAX_CONVERSATIONS = 20_000
MAX_CHARACTERS = 500_000_000
"""Of the newest conversations so much is indexed, which takes about as many bytes on the disk."""
_FULL = Sentence("The oldest conversations of other programs are not searched, because there are too many of them.")
_ROOM_PARTS = 20
_REMOVED_AT_ONCE = 20
_SLICE_SECONDS = 0.03
_MANY = 50
"""Conversations: after so many the tables are worth being put together."""
# Somebody who searches wants what was written since; listing 2,000 sessions takes 0.3 s of the processor.
_SEARCH_SECONDS = 30.0
_POLL_SECONDS = 600.0


class FoundSource(Protocol):
    """What other programs have on this disk. Its methods block, and are called in one thread."""

    @property
    def titles(self) -> Mapping[str, str]:
        """The programs that are switched on, with their names for people."""
        ...

    def entries(self) -> tuple[Sequence[FoundEntry], Collection[str]]:
        """Return all conversations in any order, and the programs whose list could not be read whole just now."""
        ...

    def load(self, entries: Iterable[FoundEntry]) -> Generator[tuple[FoundEntry, Sequence[Message] | None]]:
        """Yield the messages that each conversation shows, one after the other; None for what cannot be read."""
        ...


class FoundIndexer:
    """Writes the index once it has a source, unless another process does.

    `close_readers` is awaited before the file is removed: some systems refuse that while it is open.
    """

    def __init__(self, folder: Path, close_readers: Callable[[], Awaitable[object]]) -> None:
        self._folder = folder
        self._close_readers = close_readers
        self._path = folder / FOUND_INDEX_NAME
        self._lock = FileLock(lock_path(folder, _LOCK_NAME), folder)
        self._source: FoundSource | None = None
        self._turn = asyncio.Lock()
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._worker: WorkerThread | None = None
        self._writer: FoundIndexWriter | None = None
        self._loading: Generator[tuple[FoundEntry, Sequence[Message] | None]] | None = None
        self._unreadable: dict[Origin, str] = {}
        self._ended_at = 0.0
        self._is_closed = False
        self._is_hurried = False
        self._is_distrusted = False
        self._was_useless = False
        self.obstacle: Sentence | None = None
        """Why not all can be found, for people, where that stays so."""

    @property
    def titles(self) -> Mapping[str, str]:
        """The programs that are searched, with their names for people."""
        return {} if self._source is None else self._source.titles

    def set_source(self, source: FoundSource) -> None:
        """Index these programs and no others from now on, in the background. What is of others is removed."""
        if self._is_closed:
            return
        self._source = source
        self._ended_at = 0.0
        self._woken.set()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._keep_up())

    def notice_search(self) -> None:
        """Look for what was written since, unless that was done a moment ago."""
        if self._task is not None and time.monotonic() - self._ended_at > _SEARCH_SECONDS:
            self._woken.set()

    def distrust(self) -> None:
        """Make the index anew: a search found that it is damaged."""
        self._is_distrusted = True
        self._woken.set()

    async def index_all(self, source: FoundSource) -> bool:
        """Index all that these programs have, without pauses; return whether it could be done."""
        self._source = source
        self._is_hurried = True
        try:
            return await self._index()
        finally:
            self._is_hurried = False

    async def close(self) -> None:
        """End after the conversation at hand. Harmless when repeated."""
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
            began = time.monotonic()
            await self._index()
            self._ended_at = time.monotonic()
            with suppress(TimeoutError):
                # A list that takes long is read less often.
                async with asyncio.timeout(max(_POLL_SECONDS, 50 * (self._ended_at - began))):
                    await self._woken.wait()

    async def _index(self) -> bool:
        async with self._turn:
            try:
                while (source := self._source) is not None and not self._is_closed:
                    is_done = await self._index_source(source)
                    self._was_useless = False
                    if source is self._source:
                        return is_done
            except (StorageFailed, OSError) as error:
                _log.info("other programs' conversations are not indexed now: %s", type(error).__name__)
            except (sqlite3.Error, IndexUnusable, ValueError, zlib.error) as error:
                await self._discard(error)
            except Exception:  # noqa: BLE001 - a search that finds less must not end anything else
                _log.exception("other programs' conversations could not be indexed")
            finally:
                with suppress(sqlite3.Error):
                    await self._in_thread(self._stop_loading)
            return False

    async def _index_source(self, source: FoundSource) -> bool:
        if not await self._in_thread(lambda: self._prepare(needs_file=bool(source.titles))):
            return False
        if self._is_distrusted or not source.titles:
            self._is_distrusted = False
            self.obstacle = None
            await self._close_readers()
            await self._in_thread(self._remove)
            return not source.titles or await self._index_source(source)
        # Nothing of a program that was switched off stays for as long as the others are read.
        indexed = await self._write(lambda writer: writer.indexed())
        await self._take_out([origin for origin in indexed if origin[0] not in source.titles])
        entries, unclear = await self._in_thread(source.entries)
        count = len(entries)
        entries = sorted(entries, key=lambda entry: -entry.updated_at.timestamp())[:MAX_CONVERSATIONS]
        listed = {entry.origin for entry in entries}
        await self._take_out([origin for origin in indexed if origin not in listed and origin[0] not in unclear])
        wanted, surplus = _divide(entries, indexed)
        await self._take_out(surplus)
        self.obstacle = _FULL if len(wanted) < count else None
        new = [entry for entry in wanted if not self._is_known(entry, indexed)]
        characters = sum(indexed[entry.origin].characters for entry in wanted if entry.origin in indexed)
        if new and not await self._add(source, new, characters):
            return False
        is_complete = self.obstacle is None
        await self._write(lambda writer: writer.note_progress(source.titles, is_complete=is_complete))
        return await self._tidy()

    def _is_known(self, entry: FoundEntry, indexed: Mapping[Origin, IndexedEntry]) -> bool:
        known = indexed.get(entry.origin)
        is_hopeless = self._unreadable.get(entry.origin) == entry.changed
        return is_hopeless or (known is not None and known.changed == entry.changed)

    def _is_left(self, source: FoundSource) -> bool:
        return self._is_closed or self._source is not source

    async def _add(self, source: FoundSource, entries: Sequence[FoundEntry], characters: int) -> bool:
        """Add these, the newest first; False where something else is to be done before."""
        await self._write(lambda writer: writer.note_progress(source.titles, is_complete=False))
        self._loading = source.load(entries)
        pause = _Pauses(lambda: self._is_left(source), is_hurried=self._is_hurried)
        while not self._is_left(source):
            if shutil.disk_usage(self._folder).free < MIN_FREE_BYTES:
                self.obstacle = DISK_FULL
                return True
            try:
                added = await self._in_thread(lambda: self._add_next(pause))
            except _Stopped:
                return False
            if added is None:
                if len(entries) > _MANY:
                    await self._write(FoundIndexWriter.tidy_later)
                return True
            characters += added
            if characters > MAX_CHARACTERS:
                self.obstacle = _FULL
                return True
        return False

    def _add_next(self, pause: "_Pauses") -> int | None:
        """Read and index the next conversation; return how many characters it has, None after the last one."""
        assert self._loading is not None  # noqa: S101  made by _add
        assert self._writer is not None  # noqa: S101  made by _prepare
        pause.begin()
        entry, messages = next(self._loading, (None, None))
        if entry is None:
            return None
        if messages is None:
            # With its title alone, as its list shows it; tried again when it changes, or by the next process.
            self._unreadable[entry.origin] = entry.changed
            entry = replace(entry, changed="")
        pause()
        return self._writer.put(entry, messages or (), pause)

    async def _take_out(self, origins: Sequence[Origin]) -> None:
        for begin in range(0, len(origins), _REMOVED_AT_ONCE):
            part = origins[begin : begin + _REMOVED_AT_ONCE]
            await self._write(lambda writer, part=part: writer.remove(part))
            await asyncio.sleep(0)
        if origins:
            await self._tidy()

    async def _tidy(self) -> bool:
        """Compact what needs it; False where a search is in the way."""
        while not await self._write(lambda writer: writer.is_compact):
            if not await self._write(FoundIndexWriter.compact_one):
                return False
        return True

    async def _discard(self, error: Exception) -> None:
        is_useless = not isinstance(error, sqlite3.Error) or is_damage(error)
        _log.warning("the index of other programs' conversations: %s", type(error).__name__)
        with suppress(sqlite3.Error, OSError):
            await self._in_thread(self._remove if is_useless else self._close_writer)
        if is_useless and not self._was_useless:
            self._was_useless = True
            self._woken.set()

    async def _write(self, work: Callable[[FoundIndexWriter], T]) -> T:
        def write() -> T:
            assert self._writer is not None  # noqa: S101  made by _prepare
            return work(self._writer)

        return await self._in_thread(write)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        if self._worker is None:
            self._worker = WorkerThread("found-indexing")
        return await self._worker.run(work)

    def _prepare(self, *, needs_file: bool) -> bool:
        """Return whether the index can be written, by nobody else. Raises sqlite3.Error, OSError, StorageFailed."""
        if not needs_file and not self._path.exists():
            return True
        if not os.access(self._folder, os.W_OK) or not self._lock.acquire():
            return False
        if not needs_file:
            return True
        if self._writer is None or not self._writer.has_its_name:
            self._close_writer()
            self._writer = FoundIndexWriter(self._path)
        return True

    def _remove(self) -> None:
        self._close_writer()
        remove_index(self._path)

    def _close_writer(self) -> None:
        self._stop_loading()
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def _stop_loading(self) -> None:
        loading, self._loading = self._loading, None
        if loading is not None:
            loading.close()


class _Stopped(Exception):
    """Something else is to be done."""


class _Pauses:
    """Half of the time belongs to whoever works with the program: called often, it waits now and then."""

    def __init__(self, is_stopped: Callable[[], bool], *, is_hurried: bool) -> None:
        self._is_stopped = is_stopped
        self._is_hurried = is_hurried
        self._began = time.monotonic()
        # Never set: its thread waits on it.
        self._waiting = threading.Event()

    def begin(self) -> None:
        """Count what follows as work."""
        self._began = time.monotonic()

    def __call__(self) -> None:
        """Wait as long as was worked, if that is worth a pause. Raises _Stopped."""
        worked = time.monotonic() - self._began
        is_tired = worked > _SLICE_SECONDS and not self._is_hurried
        end = time.monotonic() + (worked if is_tired else 0.0)
        while not self._is_stopped() and (left := end - time.monotonic()) > 0:
            self._waiting.wait(min(left, _SLICE_SECONDS))
        if self._is_stopped():
            raise _Stopped
        if is_tired:
            self.begin()


def _divide(
    entries: Sequence[FoundEntry], indexed: Mapping[Origin, IndexedEntry]
) -> tuple[Sequence[FoundEntry], Sequence[Origin]]:
    """Return what is wanted in the index, and what has no room there any more: the oldest."""
    room = MAX_CHARACTERS
    for place, entry in enumerate(entries):
        room -= indexed[entry.origin].characters if entry.origin in indexed else 0
        if room < 0:
            return entries[:place], [other.origin for other in entries[place:] if other.origin in indexed]
    if room < MAX_CHARACTERS // _ROOM_PARTS:
        # Nothing older is added, to be taken out again by the next round.
        oldest = max(place for place, entry in enumerate(entries) if entry.origin in indexed)
        return entries[: oldest + 1], ()
    return entries, ()
