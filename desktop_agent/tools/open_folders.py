"""Folders held open (openat(2)), so that no link can be swapped in, and the extended attributes of files."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from desktop_agent.sandbox.expected_mounts import open_without_links

# Missing on Windows, where the path-based folder does without them.
_NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_FOLDER_ONLY: int = getattr(os, "O_DIRECTORY", 0)
# Linux goes folder by folder, which needs no right to read them; macOS refuses links itself.
_NO_FOLLOW_ANY: int = getattr(os, "O_NOFOLLOW_ANY", 0)
_CLOSE_ON_EXEC: int = getattr(os, "O_CLOEXEC", 0)
# A named pipe without a writer would hold the thread for ever.
_NO_WAIT: int = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_BINARY: int = getattr(os, "O_BINARY", 0)

HAS_DESCRIPTORS = (
    {os.open, os.mkdir, os.rmdir, os.stat, os.unlink, os.rename} <= os.supports_dir_fd
    and os.scandir in os.supports_fd
    and bool(_NO_FOLLOW)
)


class Folder(Protocol):
    """One open folder. Names are single components; no method follows a link. All methods raise OSError."""

    def enter(self, name: str) -> Self:
        """Open a folder inside."""
        ...

    def make(self, name: str, mode: int = 0o777) -> None:
        """Make a folder inside."""
        ...

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """Open a file inside; the caller closes the descriptor."""
        ...

    def stat(self, name: str) -> os.stat_result:
        """Return the status of a name, links not followed."""
        ...

    def scan(self) -> Iterator[os.DirEntry[str]]:
        """Return the entries, in no order."""
        ...

    def replace(self, source: str, target: str) -> None:
        """Rename inside the folder, replacing the target at once."""
        ...

    def move(self, source: str, to: Self, target: str) -> None:
        """Rename into another open folder, replacing the target at once."""
        ...

    def remove(self, name: str) -> None:
        """Delete a file."""
        ...

    def remove_folder(self, name: str) -> None:
        """Delete an empty folder."""
        ...

    def sync(self) -> None:
        """Make a rename durable."""
        ...

    def close(self) -> None:
        """Release the folder."""
        ...


class _DescriptorFolder:
    """A folder as an open descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def at(cls, path: Path) -> Self:
        if not hasattr(os, "O_PATH"):
            flags = _NO_FOLLOW_ANY or _NO_FOLLOW
            return cls(os.open(path, os.O_RDONLY | _FOLDER_ONLY | flags | _CLOSE_ON_EXEC))
        descriptor = open_without_links(path, _FOLDER_ONLY)
        try:
            return cls(os.open(".", os.O_RDONLY | _FOLDER_ONLY | _CLOSE_ON_EXEC, dir_fd=descriptor))
        finally:
            os.close(descriptor)

    def enter(self, name: str) -> Self:
        try:
            return type(self)(self.open(name, os.O_RDONLY | _FOLDER_ONLY))
        except NotADirectoryError:
            # Linux says ENOTDIR for a link as well when both flags are given.
            if stat.S_ISLNK(self.stat(name).st_mode):
                raise _link_error(name) from None
            raise

    def make(self, name: str, mode: int = 0o777) -> None:
        os.mkdir(name, mode, dir_fd=self._descriptor)

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """Open a file inside; a link fails with ELOOP."""
        flags |= _NO_FOLLOW | _CLOSE_ON_EXEC | _NO_WAIT
        return os.open(name, flags, mode, dir_fd=self._descriptor)

    def stat(self, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)

    def scan(self) -> Iterator[os.DirEntry[str]]:
        with os.scandir(self._descriptor) as entries:
            yield from entries

    def replace(self, source: str, target: str) -> None:
        os.replace(source, target, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def move(self, source: str, to: Self, target: str) -> None:
        os.replace(source, target, src_dir_fd=self._descriptor, dst_dir_fd=to._descriptor)

    def remove(self, name: str) -> None:
        os.unlink(name, dir_fd=self._descriptor)

    def remove_folder(self, name: str) -> None:
        os.rmdir(name, dir_fd=self._descriptor)

    def sync(self) -> None:
        """Make a rename durable. Some file systems cannot sync a folder; they need not."""
        with contextlib.suppress(OSError):
            os.fsync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


class _PathFolder:
    """A folder as a real path: each step is resolved and compared before it is used, an opened file once more after."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def at(cls, path: Path) -> Self:
        _require_real(path)
        return cls(path)

    def enter(self, name: str) -> Self:
        path = self._checked(name)
        if not path.is_dir():
            code = errno.ENOTDIR if path.exists() else errno.ENOENT
            raise OSError(code, os.strerror(code), name)
        return type(self)(path)

    def make(self, name: str, mode: int = 0o777) -> None:
        self._checked(name).mkdir(mode)

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """Open a file inside; a link fails with ELOOP."""
        path = self._checked(name)
        descriptor = os.open(path, flags | _BINARY | _NO_WAIT, mode)
        try:
            self._checked(name)
            _require_same_file(name, os.fstat(descriptor), path.lstat())
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def stat(self, name: str) -> os.stat_result:
        return (self._path / name).lstat()

    def scan(self) -> Iterator[os.DirEntry[str]]:
        with os.scandir(self._path) as entries:
            yield from entries

    def replace(self, source: str, target: str) -> None:
        self._checked(source).replace(self._checked(target))

    def move(self, source: str, to: Self, target: str) -> None:
        self._checked(source).replace(to._checked(target))

    def remove(self, name: str) -> None:
        (self._path / name).unlink()

    def remove_folder(self, name: str) -> None:
        self._checked(name).rmdir()

    def sync(self) -> None:
        """Windows has no way to sync a folder."""

    def close(self) -> None:
        """Do nothing: no descriptor is open."""

    def _checked(self, name: str) -> Path:
        path = self._path / name
        _require_real(path)
        return path


def _require_real(path: Path) -> None:
    # Also catches Windows junctions, which are no symbolic links. `normcase`: real paths keep the disk's case.
    if os.path.normcase(os.path.realpath(path)) != os.path.normcase(path):
        raise _link_error(path.name)


def _require_same_file(name: str, opened: os.stat_result, by_name: os.stat_result) -> None:
    if not os.path.samestat(opened, by_name):
        raise _link_error(name)


def _link_error(name: str) -> OSError:
    return OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)


def open_folder(path: Path, *, by_descriptor: bool = HAS_DESCRIPTORS) -> Folder:
    """Open a folder by its real path, in the way this platform can. Raises OSError."""
    return _DescriptorFolder.at(path) if by_descriptor else _PathFolder.at(path)


MAX_ATTRIBUTE_BYTES = 64 * 1024
"""The most that is saved of one file's attributes, names and values together."""

MAX_ATTRIBUTES = 100
# No security attributes: what holds for the old bytes, such as a program's rights, need not hold for the new ones.
_COPIED_PREFIXES = ("user.", "system.posix_acl_access")


@dataclass(frozen=True, slots=True)
class FileAttributes:
    """What a file has besides bytes and permissions. `owner` is user and group, None where it is not known."""

    attributes: tuple[tuple[str, bytes], ...] = ()
    owner: tuple[int, int] | None = None


def read_attributes(descriptor: int) -> FileAttributes:
    """Read the attributes of an open file; one that exceeds the bounds above is left out. Raises OSError."""
    status = os.fstat(descriptor)
    owner = (status.st_uid, status.st_gid) if hasattr(os, "fchown") else None
    return FileAttributes(tuple(_extended_attributes(descriptor)), owner)


def _extended_attributes(descriptor: int) -> list[tuple[str, bytes]]:
    attributes: list[tuple[str, bytes]] = []
    room = MAX_ATTRIBUTE_BYTES
    if not hasattr(os, "getxattr"):
        return attributes
    with contextlib.suppress(OSError):
        for name in sorted(os.listxattr(descriptor)):
            # Names of files on disk need not be Unicode, nor need these.
            if not name.startswith(_COPIED_PREFIXES) or not name.isprintable() or len(attributes) == MAX_ATTRIBUTES:
                continue
            with contextlib.suppress(OSError):
                value = os.getxattr(descriptor, name)
                if (size := len(name) + len(value)) <= room:
                    room -= size
                    attributes.append((name, value))
    return attributes


def apply_attributes(extras: FileAttributes, descriptor: int) -> None:
    """Set the attributes of an open file, as far as the system allows; the group alone if not the user."""
    for name, value in extras.attributes if hasattr(os, "setxattr") else ():
        if name.startswith(_COPIED_PREFIXES):
            with contextlib.suppress(OSError):
                os.setxattr(descriptor, name, value)
    if extras.owner is None or not hasattr(os, "fchown"):
        return
    status = os.fstat(descriptor)
    if extras.owner == (status.st_uid, status.st_gid):
        return
    for user in (extras.owner[0], -1):
        with contextlib.suppress(OSError, OverflowError):
            os.fchown(descriptor, user, extras.owner[1])
            return


def copy_attributes(folder: Folder, name: str, descriptor: int) -> None:
    """Give the file behind `descriptor` the attributes of the one called `name`, as far as possible."""
    if not hasattr(os, "setxattr"):
        return
    with contextlib.suppress(OSError):
        source = folder.open(name, os.O_RDONLY)
        try:
            for attribute in os.listxattr(source):
                if attribute.startswith(_COPIED_PREFIXES):
                    with contextlib.suppress(OSError):
                        os.setxattr(descriptor, attribute, os.getxattr(source, attribute))
        finally:
            os.close(source)
