"""What was in folders when they were last looked into: one that did not change since is not looked into again.

A folder's time of last change is set by every name that comes or goes in it, and no program can set it (inode(7),
"st_ctime"). Where that is not so, as on Windows, nothing is remembered.
"""

import os
import sys
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Protocol

MAX_FOLDERS = 100_000
# A folder that changed less than this before it was looked into may change again at what a clock calls the same time.
_SETTLED_NS = 2_000_000_000
_HAS_CHANGE_TIMES = sys.platform != "win32"

_Stamp = tuple[int, int, int]


class ListedName(Protocol):
    """A name in a folder, and what it stands for; os.DirEntry is one."""

    @property
    def name(self) -> str:
        """In the folder."""
        ...

    def is_dir(self, *, follow_symlinks: bool) -> bool:
        """Whether it is a folder."""
        ...

    def is_symlink(self) -> bool:
        """Whether it is a link, wherever it leads."""
        ...


@dataclass(frozen=True, slots=True)
class _CachedName:
    name: str
    is_folder: bool
    is_link: bool

    def is_dir(self, *, follow_symlinks: bool) -> bool:
        return self.is_folder and not follow_symlinks

    def is_symlink(self) -> bool:
        return self.is_link


class ListingCache:
    """Names in folders, by path, or only those of folders, links and `.git`: `without_files`. Asked from any thread.

    `read` counts the folders that were looked into.
    """

    def __init__(self, most: int = MAX_FOLDERS, *, without_files: bool = False) -> None:
        self.read = 0
        self._most = most
        self._without_files = without_files
        self._known: OrderedDict[str, tuple[_Stamp, tuple[_CachedName, ...]]] = OrderedDict()
        self._lock = Lock()

    def entries(self, folder: Path | str) -> Sequence[ListedName]:
        """Names in it, with their kinds. Raises OSError."""
        path = str(folder)
        before = _folder_stamp(path)
        with self._lock:
            stamp, known = self._known.get(path, (None, ()))
            if stamp == before:
                self._known.move_to_end(path)
                return known
        with os.scandir(path) as entries:
            every = (_CachedName(each.name, each.is_dir(follow_symlinks=False), each.is_symlink()) for each in entries)
            found = tuple([each for each in every if self._is_wanted(each)])
        with self._lock:
            self.read += 1
            self._known.pop(path, None)
            if _HAS_CHANGE_TIMES and before[-1] < time.time_ns() - _SETTLED_NS and before == _folder_stamp(path):
                self._known[path] = (before, found)
                if len(self._known) > self._most:
                    self._known.popitem(last=False)
        return found

    def _is_wanted(self, each: _CachedName) -> bool:
        return not self._without_files or each.is_folder or each.is_link or each.name == ".git"


def _folder_stamp(path: str) -> _Stamp:
    found = os.lstat(path)
    return found.st_dev, found.st_ino, found.st_ctime_ns
