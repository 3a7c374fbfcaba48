"""A file system that turns read-only while files on it are open, as a disk does after an error.

`python -m tests.frame.turning_disk BACKING PLACE SWITCH` shows the folder BACKING at PLACE until that is unmounted. As
soon as the file SWITCH exists, every write fails with EROFS, also to files that are open. Remounting a file system
read-only cannot do that: the kernel refuses it while a file is open for writing.
"""

import errno
import os
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import mfusepy

P = ParamSpec("P")
R = TypeVar("R")
_Operation = Callable[Concatenate["TurningDisk", P], R]
_WRITING = os.O_WRONLY | os.O_RDWR


def _writes(operation: _Operation[P, R]) -> _Operation[P, R]:
    @wraps(operation)
    def refuse_or_write(disk: "TurningDisk", *args: P.args, **kwargs: P.kwargs) -> R:
        disk.refuse_writing()
        return operation(disk, *args, **kwargs)

    return refuse_or_write


class TurningDisk(mfusepy.Operations):
    """Passes every operation on to a folder, until it turns read-only."""

    use_ns = True

    def __init__(self, backing: Path, switch: Path) -> None:
        self._backing = backing
        self._switch = switch

    def refuse_writing(self) -> None:
        """Raise OSError (EROFS) if the disk has turned read-only."""
        if self._switch.exists():
            raise mfusepy.FuseOSError(errno.EROFS)

    def _backing_path(self, path: str) -> Path:
        return self._backing / path.removeprefix("/")

    def access(self, path: str, amode: int) -> int:
        if amode & os.W_OK:
            self.refuse_writing()
        return 0 if os.access(self._backing_path(path), amode) else -errno.EACCES

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        facts = os.lstat(self._backing_path(path)) if fh is None else os.fstat(fh)
        names = ("st_mode", "st_nlink", "st_uid", "st_gid", "st_size", "st_blocks", "st_ino", "st_dev")
        times = {name: getattr(facts, f"{name}_ns") for name in ("st_atime", "st_mtime", "st_ctime")}
        return {**{name: getattr(facts, name) for name in names}, **times}

    def readdir(self, path: str, fh: int) -> list[str]:
        return [".", "..", *(entry.name for entry in self._backing_path(path).iterdir())]

    def readlink(self, path: str) -> str:
        return str(self._backing_path(path).readlink())

    def statfs(self, path: str) -> dict[str, int]:
        facts = os.statvfs(self._backing_path(path))
        names = "bavail bfree blocks bsize favail ffree files frsize namemax"
        return {f"f_{name}": getattr(facts, f"f_{name}") for name in names.split()}

    def open(self, path: str, flags: int) -> int:
        if flags & _WRITING:
            self.refuse_writing()
        return os.open(self._backing_path(path), flags & ~os.O_APPEND)

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return os.pread(fh, size, offset)

    def release(self, path: str, fh: int) -> int:
        os.close(fh)
        return 0

    @_writes
    def fsync(self, path: str, datasync: int, fh: int) -> int:
        return 0

    @_writes
    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        return os.pwrite(fh, data, offset)

    @_writes
    def create(self, path: str, mode: int, fi: Any = None) -> int:
        return os.open(self._backing_path(path), os.O_RDWR | os.O_CREAT, mode)

    @_writes
    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        os.truncate(self._backing_path(path) if fh is None else fh, length)
        return 0

    @_writes
    def unlink(self, path: str) -> int:
        self._backing_path(path).unlink()
        return 0

    @_writes
    def rename(self, old: str, new: str) -> int:
        self._backing_path(old).rename(self._backing_path(new))
        return 0

    @_writes
    def mkdir(self, path: str, mode: int) -> int:
        self._backing_path(path).mkdir(mode)
        return 0

    @_writes
    def rmdir(self, path: str) -> int:
        self._backing_path(path).rmdir()
        return 0

    @_writes
    def symlink(self, target: str, source: str) -> int:
        self._backing_path(target).symlink_to(source)
        return 0

    @_writes
    def link(self, target: str, source: str) -> int:
        self._backing_path(target).hardlink_to(self._backing_path(source))
        return 0

    @_writes
    def chmod(self, path: str, mode: int) -> int:
        self._backing_path(path).chmod(mode)
        return 0

    @_writes
    def utimens(self, path: str, times: tuple[int, int] | None = None) -> int:
        os.utime(self._backing_path(path), ns=times)
        return 0


def main() -> None:
    backing, place, switch = sys.argv[1:]
    options = {"foreground": True, "nothreads": True, "kernel_cache": True}
    mfusepy.FUSE(TurningDisk(Path(backing), Path(switch)), place, **options)


if __name__ == "__main__":
    main()
