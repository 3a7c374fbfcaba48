"""Keeps the index of other programs' conversations up to date, in slices, in threads of its own.

Only programs that are switched on are in it; what one of them does not list any more is removed, and with the last
program the file. At the end of the program, a thread that reads and does not end, as on a disk that does not answer, is
left alone. Nothing that goes wrong here is anybody's error: less is found, and it is tried again.
"""

import asyncio
import os
import shutil
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from inspect import GEN_RUNNING, getgeneratorstate
from pathlib import Path
from typing import Protocol, TypeVar

from desktop_agent.processes.worker_threads import run_in_own_thread
from desktop_agent.storage.search.background_writer import DISK_FULL, MIN_FREE_BYTES, BackgroundWriter
from desktop_agent.storage.search.found_index import FoundEntry, FoundIndexWriter, IndexedEntry, IndexingStopped, Origin
from desktop_agent.storage.search.index_file import FOUND_INDEX_NAME
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Message

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
    """What other programs have on this disk. Its methods block, and are called in one thread at a time.

    They call `pause` often: it waits now and then, and raises IndexingStopped where they are to end.
    """

    @property
    def titles(self) -> Mapping[str, str]:
        """The programs that are switched on, with their names for people."""
        ...

    def entries(self, pause: Callable[[], None]) -> tuple[Sequence[FoundEntry], Collection[str]]:
        """Return all conversations in any order, and the programs whose list could not be read whole just now."""
        ...

    def load(
        self, entries: Iterable[FoundEntry], pause: Callable[[], None]
    ) -> Generator[tuple[FoundEntry, Sequence[Message] | None]]:
        """Yield the messages of each conversation, one after the other; None for what cannot be read."""
        ...


class FoundIndexer:
    """Writes the index once it has a source, unless another process does.

    `close_readers` is awaited before the file is removed: some systems refuse that while it is open.
    """

    def __init__(self, folder: Path, close_readers: Callable[[], Awaitable[object]]) -> None:
        self._folder = folder
        self._close_readers = close_readers
        self._path = folder / FOUND_INDEX_NAME
        self._background = BackgroundWriter(
            "the index of other programs' conversations", self._path, _LOCK_NAME, FoundIndexWriter
        )
        self._source: FoundSource | None = None
        self._unreadable: dict[Origin, str] = {}
        self._ended_at = 0.0
        self._is_hurried = False
        self._is_distrusted = False
        self.obstacle: Sentence | None = None
        """Why not all can be found, for people, where that stays so."""

    @property
    def titles(self) -> Mapping[str, str]:
        """The programs that are searched, with their names for people."""
        return {} if self._source is None else self._source.titles

    def set_source(self, source: FoundSource) -> None:
        """Index these programs and no others from now on, in the background. What is of others is removed."""
        if self._background.is_closed:
            return
        self._source = source
        self._ended_at = 0.0
        self._background.wake()
        self._background.start(self._index_in_background)

    def notice_search(self) -> None:
        """Look for what was written since, unless that was done a moment ago."""
        if self._background.is_started and time.monotonic() - self._ended_at > _SEARCH_SECONDS:
            self._background.wake()

    def distrust(self) -> None:
        """Make the index anew: a search found that it is damaged."""
        self._is_distrusted = True
        self._background.wake()

    async def index_all(self, source: FoundSource) -> bool:
        """Index all that these programs have, without pauses; return whether it could be done."""
        self._source = source
        self._is_hurried = True
        try:
            return await self._index()
        finally:
            self._is_hurried = False

    async def close(self) -> None:
        """End at the next pause of reading and writing; a read is not waited for longer than GRACE seconds.

        Harmless when repeated.
        """
        await self._background.close()

    async def _index_in_background(self) -> float:
        began = time.monotonic()
        await self._index()
        self._ended_at = time.monotonic()
        # A list that takes long is read less often.
        return max(_POLL_SECONDS, 50 * (self._ended_at - began))

    async def _index(self) -> bool:
        return await self._background.attempt(self._index_sources, lambda _: None)

    async def _index_sources(self) -> bool:
        while (source := self._source) is not None and not self._background.is_closed:
            with suppress(IndexingStopped):
                is_done = await self._index_source(source)
                if source is self._source:
                    return is_done
        return False

    async def _index_source(self, source: FoundSource) -> bool:
        if not await self._background.run(lambda: self._prepare(needs_file=bool(source.titles))):
            return False
        if self._is_distrusted or not source.titles:
            self._is_distrusted = False
            self.obstacle = None
            await self._close_readers()
            await self._background.remove()
            return not source.titles or await self._index_source(source)
        # Nothing of a program that was switched off stays for as long as the others are read.
        indexed = await self._background.write(lambda writer: writer.indexed())
        await self._remove([origin for origin in indexed if origin[0] not in source.titles])
        pause = _Pauses(lambda: self._is_outdated(source), is_hurried=self._is_hurried)
        entries, unclear = await _read(lambda: source.entries(pause))
        count = len(entries)
        entries = sorted(entries, key=lambda entry: -entry.updated_at.timestamp())[:MAX_CONVERSATIONS]
        listed = {entry.origin for entry in entries}
        await self._remove([origin for origin in indexed if origin not in listed and origin[0] not in unclear])
        fitting, surplus = _divide(entries, indexed)
        await self._remove(surplus)
        self.obstacle = _FULL if len(fitting) < count else None
        new = [entry for entry in fitting if not self._is_known(entry, indexed)]
        characters = sum(indexed[entry.origin].characters for entry in fitting if entry.origin in indexed)
        if new and not await self._add(source, new, characters):
            return False
        is_complete = self.obstacle is None
        await self._background.write(lambda writer: writer.note_progress(source.titles, is_complete=is_complete))
        return await self._background.compact()

    def _is_known(self, entry: FoundEntry, indexed: Mapping[Origin, IndexedEntry]) -> bool:
        known = indexed.get(entry.origin)
        is_hopeless = self._unreadable.get(entry.origin) == entry.changed
        return is_hopeless or (known is not None and known.changed == entry.changed)

    def _is_outdated(self, source: FoundSource) -> bool:
        return self._background.is_closed or self._source is not source

    async def _add(self, source: FoundSource, entries: Sequence[FoundEntry], characters: int) -> bool:
        """Add these, the newest first; False where something else is to be done before."""
        await self._background.write(lambda writer: writer.note_progress(source.titles, is_complete=False))
        pause = _Pauses(lambda: self._is_outdated(source), is_hurried=self._is_hurried)
        loading = source.load(entries, pause)
        try:
            return await self._add_all(loading, characters, pause, is_many=len(entries) > _MANY)
        finally:
            # Else the thread that was left alone ends it.
            if getgeneratorstate(loading) != GEN_RUNNING:
                await _read(loading.close)

    async def _add_all(self, loading: "_Loading", characters: int, pause: "_Pauses", *, is_many: bool) -> bool:
        while True:
            if shutil.disk_usage(self._folder).free < MIN_FREE_BYTES:
                self.obstacle = DISK_FULL
                return True
            loaded = await _read(lambda: _next(loading, pause))
            if loaded is None:
                if is_many:
                    await self._background.write(FoundIndexWriter.mark_all_for_compaction)
                return True
            entry, messages = loaded
            if messages is None:
                # With its title alone, as its list shows it; tried again when it changes, or by the next process.
                self._unreadable[entry.origin] = entry.changed
                entry = replace(entry, changed="")
            characters += await self._put(entry, messages or (), pause)
            if characters > MAX_CHARACTERS:
                self.obstacle = _FULL
                return True

    async def _put(self, entry: FoundEntry, messages: Sequence[Message], pause: "_Pauses") -> int:
        def put(writer: FoundIndexWriter) -> int:
            pause.begin()
            return writer.put(entry, messages, pause)

        return await self._background.write(put)

    async def _remove(self, origins: Sequence[Origin]) -> None:
        for begin in range(0, len(origins), _REMOVED_AT_ONCE):
            part = origins[begin : begin + _REMOVED_AT_ONCE]
            await self._background.write(lambda writer, part=part: writer.remove(part))
            await asyncio.sleep(0)
        if origins:
            await self._background.compact()

    def _prepare(self, *, needs_file: bool) -> bool:
        """Return whether the index can be written, by nobody else. Raises sqlite3.Error, OSError, StorageFailed."""
        if not needs_file and not self._path.exists():
            return True
        if not os.access(self._folder, os.W_OK):
            return False
        return self._background.open() if needs_file else self._background.lock()


_Loading = Generator[tuple[FoundEntry, Sequence[Message] | None]]


async def _read(work: Callable[[], T]) -> T:
    """Return what is read in a thread of its own, which closing the program does not wait for."""
    return await run_in_own_thread(lambda _: work())


def _next(loading: _Loading, pause: "_Pauses") -> tuple[FoundEntry, Sequence[Message] | None] | None:
    """Return the next conversation; None after the last one. Raises IndexingStopped."""
    pause.begin()
    try:
        loaded = next(loading, None)
        pause()
    except IndexingStopped:
        loading.close()
        raise
    return loaded


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
        """Wait as long as was worked, if that is worth a pause. Raises IndexingStopped."""
        worked = time.monotonic() - self._began
        is_pause_due = worked > _SLICE_SECONDS and not self._is_hurried
        end = time.monotonic() + (worked if is_pause_due else 0.0)
        while not self._is_stopped() and (remaining := end - time.monotonic()) > 0:
            self._waiting.wait(min(remaining, _SLICE_SECONDS))
        if self._is_stopped():
            raise IndexingStopped
        if is_pause_due:
            self.begin()


def _divide(
    entries: Sequence[FoundEntry], indexed: Mapping[Origin, IndexedEntry]
) -> tuple[Sequence[FoundEntry], Sequence[Origin]]:
    """Return the entries that have room in the index, and what has to be removed from it: the oldest."""
    room = MAX_CHARACTERS
    for place, entry in enumerate(entries):
        room -= indexed[entry.origin].characters if entry.origin in indexed else 0
        if room < 0:
            return entries[:place], [other.origin for other in entries[place:] if other.origin in indexed]
    if room < MAX_CHARACTERS // _ROOM_PARTS:
        # Older ones would be added now and removed again by the next round.
        oldest = max(place for place, entry in enumerate(entries) if entry.origin in indexed)
        return entries[: oldest + 1], ()
    return entries, ()
