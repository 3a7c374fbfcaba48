"""One at a time, of all processes of this person: for what lies in the keyring, which they share.

The files that are locked lie in the platform's own data folder, whatever folder was named for conversations: the
keyring is the same for all of them.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from desktop_agent.storage.file_lock import FileLock
from desktop_agent.storage.paths import data_folder
from desktop_agent.vocabulary.errors import StorageFailed

_log = logging.getLogger(__name__)

# Between two looks whether it is free, in seconds: twice as long each time.
_FIRST_PAUSE = 0.05
_MAX_PAUSE = 0.5


@asynccontextmanager
async def process_lock(name: str, seconds: float) -> AsyncGenerator[bool]:
    """Nobody else is inside as long as this is; False: somebody else was, all these seconds.

    `name` is that of a file. Where nothing can be locked (no place to write, a file system without locks), nobody is
    kept out.
    """
    lock = _ProcessLock(name)
    try:
        yield await lock.take(seconds)
    finally:
        await asyncio.to_thread(lock.release)


class _ProcessLock:
    """Taken once, released once; one that is cancelled meanwhile is not held."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._one_at_a_time = threading.Lock()
        self._file: FileLock | None = None
        self._is_over = False

    async def take(self, seconds: float) -> bool:
        loop, pause = asyncio.get_running_loop(), _FIRST_PAUSE
        until = loop.time() + seconds
        while not await asyncio.to_thread(self._try_acquire):
            left = until - loop.time()
            if left <= 0:
                return False
            await asyncio.sleep(min(pause, left))
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
