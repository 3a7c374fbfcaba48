"""Locks among all processes: who writes which conversation, and who uses the keyring.

The files of the latter are in the platform's own data folder, whatever folder was named for conversations: the
keyring is the same for all of them.
"""

import asyncio
import hashlib
import logging
import re
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal
from weakref import WeakSet

from desktop_agent.processes.worker_threads import finish, wait_for_all
from desktop_agent.storage.file_lock import FileLock, Holder, RetakeResult, lock_path
from desktop_agent.storage.files import data_folder
from desktop_agent.types.errors import ConversationInUse, LocksRefused, Sentence, StorageFailed

_log = logging.getLogger(__name__)
Program = Literal["window", "ask", "library"]

_PLAIN_ID = re.compile(r"[0-9a-f]{32}")
# Seconds in which a holder without a name may release: it is writing its name, or only checked who holds it.
_NAME_GRACE = 0.5
_POLL_SECONDS = 0.02


class ConversationLocks:
    """The locks of the data folder `folder`, taken in the name of `program`."""

    def __init__(self, folder: Path, program: Program) -> None:
        self._folder = folder
        self._program: Program = program
        self._locks: WeakSet[ConversationLock] = WeakSet()

    async def check(self) -> None:
        """Raise LocksRefused where the file system has no locks. A read-only folder can still be read."""

        def check() -> None:
            lock = FileLock(lock_path(self._folder, "check"), self._folder)
            try:
                lock.acquire()
                lock.release()
            except LocksRefused:
                raise
            except StorageFailed as error:
                _log.info("no lock can be made: %s", error)

        await asyncio.to_thread(check)

    def lock(self, conversation_id: str) -> "ConversationLock":
        """Return the lock of one conversation, without taking it."""
        # Ids that were carried over from a damaged database may be anything.
        name = conversation_id
        if not _PLAIN_ID.fullmatch(name):
            name = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        lock = ConversationLock(lock_path(self._folder, f"conversation-{name}"), self._program)
        self._locks.add(lock)
        return lock

    async def acquire(self, conversation_id: str) -> "ConversationLock":
        """Take and return the lock of one conversation. Raises ConversationInUse, and StorageFailed."""
        lock = self.lock(conversation_id)
        await lock.acquire()
        return lock

    @asynccontextmanager
    async def hold(self, conversation_id: str) -> AsyncGenerator[None]:
        """Hold the lock meanwhile. Raises ConversationInUse, and StorageFailed."""
        lock = await self.acquire(conversation_id)
        try:
            yield
        finally:
            await lock.release()

    async def close(self) -> None:
        """Release all of them: nothing can be written any more."""
        await wait_for_all(*(lock.release() for lock in tuple(self._locks)))


class ConversationLock:
    """The lock of the one writer of a conversation. Taking and releasing it do not block the event loop."""

    def __init__(self, path: Path, program: Program) -> None:
        self._program = program
        self._file = FileLock(path, path.parent.parent)

    async def acquire(self) -> None:
        """Take the lock; harmless when it is held. Raises ConversationInUse, and StorageFailed."""
        if self._file.is_held:
            return
        this_process = Holder.this_process(self._program)
        is_taken, holder = await self._take(lambda: self._file.acquire(this_process))
        if not is_taken:
            raise ConversationInUse(_in_use_sentence(holder), _in_use_remedy(holder))

    async def _take(self, acquire: Callable[[], bool]) -> tuple[bool, Holder | None]:
        """Call `acquire` in a thread; return whether it took the lock, and if not, who holds it, as far as is known.

        A holder without a name gets a moment: to release it after a check, or to write the name.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + _NAME_GRACE
        while not await self._try_to_take(acquire):
            holder = await asyncio.to_thread(self._file.holder)
            if holder is not None and holder.is_gone:
                holder = None  # killed; the current holder has not written its name yet, or only checks
            if holder is not None or loop.time() > until:
                return False, holder
            await asyncio.sleep(_POLL_SECONDS)
        return True, None

    async def retake(self) -> RetakeResult:
        """Retake the lock where its file was removed; another process may have had it since. Raises StorageFailed."""
        return await asyncio.to_thread(self._file.retake, Holder.this_process(self._program))

    async def release(self) -> None:
        """Release the lock. Harmless when it is not held."""
        if self._file.is_held:
            # A cancel would take it out of the queue of a busy pool.
            await finish(asyncio.to_thread(self._file.release))

    def release_now(self) -> None:
        """Release the lock at once, for when nobody can wait."""
        self._file.release()

    async def holder(self) -> Holder | None:
        """Return who holds it, as far as is known."""
        return await asyncio.to_thread(self._file.holder)

    async def is_free(self) -> bool:
        """Return whether nobody holds it; another process that only checks does not count. Raises StorageFailed."""

        def acquire_and_release() -> bool:
            # Released by the same thread: meanwhile the event loop, or a queue of threads, may take long.
            is_free = self._file.acquire()
            self._file.release()
            return is_free

        return (await self._take(acquire_and_release))[0]

    async def _try_to_take(self, acquire: Callable[[], bool]) -> bool:
        attempt = asyncio.ensure_future(asyncio.to_thread(acquire))
        try:
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            # The thread goes on, and would hold it for nobody.
            await asyncio.wait([attempt])
            attempt.exception()
            self.release_now()
            raise


def _in_use_sentence(holder: Holder | None) -> Sentence:
    if holder is None:
        return Sentence("This conversation is being worked on by another process.")
    values = {"who": holder_text(holder), "since": holder.began}
    return Sentence("This conversation is being worked on by {who} since {since}.", values)


def holder_text(holder: Holder) -> Sentence:
    """Return the holder in words: program, process, and machine where it is another one."""
    values = {"pid": str(holder.pid)}
    match holder.program:
        case "window":
            text = Sentence("the window (process {pid})", values)
        case "ask":
            text = Sentence("“desktop-agent ask” (process {pid})", values)
        case _:
            text = Sentence("another program (process {pid})", values)
    if not holder.is_elsewhere:
        return text
    return Sentence("{who} on “{host}”", {"who": text, "host": holder.host})


def _in_use_remedy(holder: Holder | None) -> str:
    if holder is not None and holder.program == "window":
        return "Open another conversation there or close the window, then try again."
    return "Wait until it has ended, then try again."


# Seconds between two checks whether it is free: twice as long each time.
_FIRST_PAUSE = 0.05
_MAX_PAUSE = 0.5


@asynccontextmanager
async def process_lock(name: str, seconds: float) -> AsyncGenerator[bool]:
    """Keep other processes out; yield False where another one was inside for all these seconds.

    `name` is that of a file. Where nothing can be locked (no place to write, a file system without locks), nobody is
    kept out.
    """
    lock = _ProcessLock(name)
    try:
        yield await lock.take(seconds)
    finally:
        await finish(asyncio.to_thread(lock.release))


class _ProcessLock:
    """A lock taken once and released once; a cancelled attempt does not hold it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._one_at_a_time = threading.Lock()
        self._file: FileLock | None = None
        self._is_over = False

    async def take(self, seconds: float) -> bool:
        loop, pause = asyncio.get_running_loop(), _FIRST_PAUSE
        until = loop.time() + seconds
        while not await asyncio.to_thread(self._try_acquire):
            remaining = until - loop.time()
            if remaining <= 0:
                return False
            await asyncio.sleep(min(pause, remaining))
            pause = min(2 * pause, _MAX_PAUSE)
        return True

    def release(self) -> None:
        with self._one_at_a_time:
            self._is_over = True
            if self._file is not None:
                self._file.release()

    def _try_acquire(self) -> bool:
        with self._one_at_a_time:
            if self._is_over:
                return False
            try:
                self._file = self._file or FileLock(data_folder() / f"{self._name}.lock")
                return self._file.acquire()
            except StorageFailed as error:
                _log.info("nothing can be locked: %s", type(error).__name__)
                return True
