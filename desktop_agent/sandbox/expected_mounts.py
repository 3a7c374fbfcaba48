"""What must be mounted around a command: recorded outside of its namespace, and checked in it before the command.

bubblewrap opens paths by name. A process that may write in the workspace, such as a command of another conversation,
can replace a folder by a link just then: bubblewrap mounts something else, or somewhere else.
"""

import json
import os
import re
import stat
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

# An argument has at most 128 KiB (execve(2)).
_MAX_WORD_LENGTH = 100_000
_ESCAPED = re.compile(r"\\([0-7]{3})")


class ExpectedMount(NamedTuple):
    """A mount of exactly this path; without `identity` an empty folder in memory."""

    path: str
    identity: tuple[int, int] | None
    is_read_only: bool


class _Mount(NamedTuple):
    is_read_only: bool
    file_system: str


def expect_mount(path: Path, *, is_read_only: bool, is_empty: bool = False) -> ExpectedMount:
    """Record what is at the path now. What is no longer there, or behind a link, will not pass the check."""
    identity = None if is_empty else _identity(path) or (0, 0)
    return ExpectedMount(str(path), identity, is_read_only)


def to_words(mounts: Iterable[ExpectedMount]) -> list[str]:
    """Return the mounts as few words for a command line."""
    words, length = list[list[str]](), _MAX_WORD_LENGTH
    for mount in map(json.dumps, mounts):
        # With the separator.
        length += len(mount) + 2
        if length > _MAX_WORD_LENGTH:
            words.append([])
            length = len(mount)
        words[-1].append(mount)
    return [f"[{', '.join(word)}]" for word in words]


def check_mounts(words: Sequence[str]) -> None:
    """Raise OSError unless each mount is there, on its own path, and shows what it showed when it was recorded."""
    if not words:
        return
    actual = _read_mounts()
    expected = defaultdict[str, list[ExpectedMount]](list)
    for word in words:
        for path, identity, is_read_only in json.loads(word):
            expected[path].append(ExpectedMount(path, identity and tuple(identity), is_read_only))
    for path, mounts in expected.items():
        # A mount that landed elsewhere is missing here.
        is_complete = len(actual[path]) >= len(mounts)
        if not is_complete or not all(_is_as_recorded(mount, actual[path][-1]) for mount in mounts):
            raise OSError(f"“{path}” was replaced at this moment; call again")


def _is_as_recorded(expected: ExpectedMount, actual: _Mount) -> bool:
    if expected.is_read_only and not actual.is_read_only:
        return False
    if expected.identity is None:
        return actual.file_system == "tmpfs"
    return _identity(Path(expected.path)) == expected.identity


def _identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode; None for what is not there, is a link, or lies behind one."""
    try:
        descriptor = open_without_links(path)
    except OSError:
        return None
    status = os.fstat(descriptor)
    os.close(descriptor)
    return None if stat.S_ISLNK(status.st_mode) else (status.st_dev, status.st_ino)


def open_without_links(path: Path, flags: int = 0) -> int:
    """Open an absolute path name by name, with O_PATH (open(2), Linux), and return the descriptor.

    Raises OSError, also for a link on the way. If the last name is a link, the link itself is opened.
    """
    flags |= os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path.anchor, flags)
    for name in path.parts[1:]:
        folder = descriptor
        try:
            descriptor = os.open(name, flags, dir_fd=folder)
        finally:
            os.close(folder)
    return descriptor


def _read_mounts() -> defaultdict[str, list[_Mount]]:
    """Return the mounts at each path, the uppermost last (proc_pid_mountinfo(5))."""
    mounts = defaultdict[str, list[_Mount]](list)
    for line in os.fsdecode(Path("/proc/self/mountinfo").read_bytes()).rstrip("\n").split("\n"):
        mount, _, source = line.partition(" - ")
        _, _, _, _, path, options, *_ = mount.split(" ")
        path = _ESCAPED.sub(lambda match: chr(int(match[1], 8)), path)
        mounts[path].append(_Mount("ro" in options.split(","), source.split(" ")[0]))
    return mounts
