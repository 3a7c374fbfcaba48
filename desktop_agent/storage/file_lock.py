"""A lock of the operating system on a file: one holder among all processes of this machine, and of those that share
the disk. The system releases it when its holder dies.

On POSIX it is `flock`, which belongs to the open file: it goes by inode, so that links and bind mounts of a folder
are one, and it is not lost when some other descriptor of the file closes, as a lock of `fcntl` is (flock(2),
fcntl(2)). Python opens the file so that child processes do not inherit it. The file itself stays after the release:
somebody may be about to lock it. It holds the name of the holder, for whoever is refused.
"""

import errno
import json
import os
import sys
import threading
import time
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import NamedTuple
from weakref import WeakSet

from desktop_agent.storage.files import NO_ROOM_ERRNOS, file_error, make_private_folder
from desktop_agent.types.errors import LocksRefused, StorageFailed

_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}
_MAX_HOLDER_BYTES = 4096
# On Windows the locked byte cannot be read by others, so it is far behind the content.
_LOCKED_BYTE = 1 << 30


class Holder(NamedTuple):
    """The holder of a lock. `since` is in seconds since 1970; `address` is where the holder can be reached, or ""."""

    program: str
    pid: int
    host: str
    since: float
    address: str = ""

    @classmethod
    def this_process(cls, program: str, address: str = "") -> "Holder":
        """Return this process as holder, from now on."""
        return cls(program, os.getpid(), host_name(), time.time(), address)

    @property
    def began(self) -> str:
        """Return since when, in local time, for people."""
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(self.since))

    @property
    def is_elsewhere(self) -> bool:
        return self.host not in {"", host_name()}

    @property
    def is_gone(self) -> bool:
        """Return whether no process of this machine has its number any more; False where that is unknown."""
        # On Windows signal 0 is Ctrl+C.
        if self.is_elsewhere or sys.platform == "win32" or self.pid <= 0:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return False


def host_name() -> str:
    """Return the name of this machine."""
    if sys.platform == "win32":
        return os.environ.get("COMPUTERNAME", "")
    return os.uname().nodename


def lock_path(data_folder: Path, name: str) -> Path:
    """Return the path of a lock file in a data folder."""
    return data_folder / "locks" / f"{name}.lock"


class RetakeResult(Enum):
    """What became of a lock whose file may have been removed. REFUSED: another process has the new one."""

    NOT_NEEDED = "not needed"
    DONE = "done"
    REFUSED = "refused"


_all_locks: "WeakSet[FileLock]" = WeakSet()


class FileLock:
    """The lock on the file at `path`; its folder is made where it is missing, but not `within`, the data folder.

    Thread-safe.
    """

    def __init__(self, path: Path, within: Path | None = None) -> None:
        self._path = path
        self._within = within
        self._handle: int | None = None
        self._mutex = threading.Lock()
        _all_locks.add(self)

    @property
    def is_held(self) -> bool:
        return self._handle is not None

    def acquire(self, holder: Holder | None = None) -> bool:
        """Take the lock, unless another holds it; True also when this object does already. Does not wait.

        Raises LocksRefused where the file system has no locks, and StorageFailed.
        """
        with self._mutex:
            if self._handle is None:
                self._handle = self._open_locked()
                if self._handle is not None and holder is not None:
                    _write(self._handle, _encode(holder))
            return self._handle is not None

    def rename_holder(self, holder: Holder) -> None:
        """Write another name of the holder into the file. Nothing happens when it is not held."""
        with self._mutex:
            if self._handle is not None:
                _write(self._handle, _encode(holder))

    def retake(self, holder: Holder) -> RetakeResult:
        """Take the lock anew where its file was removed: others lock another file then. Harmless when it is not held.

        Raises StorageFailed.
        """
        with self._mutex:
            try:
                if self._handle is None or self._is_still_there(self._handle):
                    return RetakeResult.NOT_NEEDED
            except OSError as error:
                raise self._refusal(error) from error
            handle = self._open_locked()
            if handle is None:
                return RetakeResult.REFUSED
            os.close(self._handle)
            self._handle = handle
            _write(handle, _encode(holder))
            return RetakeResult.DONE

    def release(self) -> None:
        """Release the lock. Harmless when it is not held."""
        with self._mutex:
            handle, self._handle = self._handle, None
            if handle is None:
                return
            try:
                _write(handle, b"")
                # By name, not by closing alone: a process that was forked may have the file open too.
                _unlock(handle)
            finally:
                os.close(handle)

    def holder(self) -> Holder | None:
        """Return who took it last; None when released, or when the name is not written yet or unknown."""
        try:
            with self._path.open("rb") as file:
                return Holder(**json.loads(file.read(_MAX_HOLDER_BYTES)))
        except (OSError, ValueError, TypeError):
            return None

    def close_after_fork(self) -> None:
        """Close the file in a forked child: its parent holds the lock, which must neither end with the child nor
        outlive the parent.
        """
        handle, self._handle, self._mutex = self._handle, None, threading.Lock()
        if handle is not None:
            os.close(handle)

    def _open_locked(self) -> int | None:
        make_private_folder(self._path.parent, self._within)
        while True:
            try:
                handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            except OSError as error:
                raise self._refusal(error) from error
            try:
                if not _lock(handle):
                    os.close(handle)
                    return None
                if self._is_still_there(handle):
                    return handle
            except OSError as error:
                os.close(handle)
                if error.errno in _NO_LOCKS:
                    raise LocksRefused.of(str(self._path.parent), f"{error.strerror}: {self._path}") from error
                raise self._refusal(error) from error
            os.close(handle)

    def _refusal(self, error: OSError) -> StorageFailed:
        """Return the error. It names the data folder where that cannot be written: people do not know lock files."""
        folder = self._within or self._path.parent
        is_folder_writable = os.access(folder, os.W_OK) and error.errno not in NO_ROOM_ERRNOS
        return file_error(error, self._path if is_folder_writable else folder)

    def _is_still_there(self, handle: int) -> bool:
        """Return whether the opened file still has its name: otherwise the next process locks another file."""
        try:
            return os.path.samestat(os.fstat(handle), self._path.stat())
        except FileNotFoundError:
            return False


def _close_all_after_fork() -> None:
    for lock in tuple(_all_locks):
        lock.close_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_all_after_fork)


def _encode(holder: Holder) -> bytes:
    return json.dumps(holder._asdict()).encode()


def _write(handle: int, data: bytes) -> None:
    # On a full disk the lock is held all the same, without the name of its holder.
    with suppress(OSError):
        os.ftruncate(handle, 0)
        os.lseek(handle, 0, os.SEEK_SET)
        os.write(handle, data)


if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> bool:
        os.lseek(handle, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in {errno.EACCES, errno.EDEADLK}:
                return False
            raise
        return True

    def _unlock(handle: int) -> None:
        os.lseek(handle, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)
