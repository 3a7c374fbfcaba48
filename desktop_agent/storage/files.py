"""Files that are written atomically, the system's errors in words for people, and the data folder."""

import errno
import os
import re
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from desktop_agent.types.errors import DiskFull, Sentence, StorageFailed

NO_ROOM_ERRNOS = {errno.ENOSPC, errno.EDQUOT}
_NOT_ALLOWED_ERRNOS = {errno.EACCES, errno.EPERM, errno.EROFS}


def file_error(error: OSError, path: Path, within: Path | None = None) -> StorageFailed:
    """Return the typed error for what the system said about `path`.

    `within` is a folder above it, which is named if there is no room or nothing in it can be written.
    """
    detail = f"{error.strerror}: {path}"
    # EEXIST where a folder was to be made in the place of the link.
    if error.errno in {errno.ENOENT, errno.EEXIST} and (dangling := find_link_error(path)) is not None:
        return dangling
    if error.errno in {errno.EEXIST, errno.ENOTDIR} and (file := _find_file_in_the_way(error, path)) is not None:
        in_the_way = Sentence("“{path}” is a file, where a folder is needed.", {"path": str(file)})
        return StorageFailed(in_the_way, "Move the file away, or choose another folder.", detail=detail)
    if error.errno in NO_ROOM_ERRNOS:
        return disk_full_error(within or path, detail)
    if error.errno in _NOT_ALLOWED_ERRNOS:
        named = path if within is None or os.access(within, os.W_OK) else within
        return not_writable_error(named, detail)
    if error.errno == errno.ENAMETOOLONG:
        too_long = Sentence("The path “{path}” is too long for this system.", {"path": str(path)})
        return StorageFailed(too_long, "Choose a folder with a shorter path.", detail=detail)
    values = {"path": str(path), "reason": error.strerror or type(error).__name__}
    return StorageFailed(Sentence("“{path}” cannot be used: {reason}.", values), detail=detail)


def _find_file_in_the_way(error: OSError, path: Path) -> Path | None:
    # The system names it, where something beside `path` was to be made.
    failed = Path(error.filename) if isinstance(error.filename, str) else path
    return next(filter(os.path.isfile, (failed, *failed.parents)), None)


def find_link_error(path: Path) -> StorageFailed | None:
    """Return the error for a link that leads to nothing, where `path` or a folder above it is one."""
    link = next((link for link in (path, *path.parents) if link.is_symlink() and not link.exists()), None)
    if link is None:
        return None
    return StorageFailed(
        Sentence("The link “{path}” leads to nothing: its disk may not be mounted.", {"path": str(link)}),
        "Mount the disk, or let the link lead to where the files are now.",
    )


def disk_full_error(path: Path, detail: str = "") -> DiskFull:
    """Return the error for no room where `path` is."""
    return DiskFull(Sentence("There is no room left on the disk of “{path}”.", {"path": str(path)}), detail=detail)


def missing_error(path: Path) -> StorageFailed:
    """Return the error for a path that was removed or moved while in use."""
    return StorageFailed(
        Sentence("“{path}” is gone: it was removed or moved.", {"path": str(path)}),
        "Put the file back; nothing new is saved until then. Copy what you need from open conversations.",
    )


def not_writable_error(path: Path, detail: str = "") -> StorageFailed:
    """Return the error for missing rights to write. It names the folder where nothing in it can be written."""
    # Not `Path.is_dir`, which raises where a folder may not be looked into.
    folder = next(filter(os.path.isdir, (path, *path.parents)), path)
    named = path if os.access(folder, os.W_OK) else folder
    return StorageFailed(
        Sentence("“{path}” cannot be written to.", {"path": str(named)}),
        "Make the folder writable, or choose another one.",
        detail=detail,
    )


def find_write_error(path: Path) -> StorageFailed | None:
    """Write a page beside `path` and return why that fails, if it does."""
    import tempfile

    try:
        with tempfile.TemporaryFile(dir=path.parent) as file:
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return file_error(error, path, path.parent)
    return None


def write_atomically(path: Path, data: bytes) -> None:
    """Write a private file (0600) so that a crash leaves the old content or the new, never a part. Raises OSError.

    A link is replaced: where others may write, it could lead anywhere. Settings, which people keep elsewhere and link,
    are written to their `resolve()`d path.
    """
    import tempfile

    handle, temporary = tempfile.mkstemp(prefix=".writing-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise
    sync_folder(path.parent)


def list_folder(folder: Path) -> list[Path]:
    """Return what is in a folder, in no order; nothing where there is no such folder. Raises StorageFailed.

    A link that leads to nothing is no missing folder: its target may lie on a disk that is not mounted. Use this where
    an overlooked entry would be lost: `Path.glob` leaves out what it may not read, and from Python 3.13 on also what a
    disk fails to return.
    """
    try:
        return list(folder.iterdir())
    except NotADirectoryError:
        return []
    except OSError as error:
        if isinstance(error, FileNotFoundError) and find_link_error(folder) is None:
            return []
        raise file_error(error, folder) from error


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` durable, on systems where a folder can be opened."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def free_name(path: Path, word: str) -> Path:
    """Return a free name beside `path` for what it held: `NAME.WORD-YYYYMMDD-HHMMSS`, local time."""
    name = f"{path.name}.{word}-{time.strftime('%Y%m%d-%H%M%S')}"
    free, number = path.with_name(name), 2
    while free.exists():
        free, number = path.with_name(f"{name}-{number}"), number + 1
    return free


LOG_SUFFIXES = ("-wal", "-shm")
_ASIDE = re.compile(r"(-wal)?\.(?P<word>[a-z]+)-\d{8}-\d{6}(-\d+)?")


def find_set_aside(path: Path, words: Collection[str]) -> tuple[Path, ...]:
    """Return what `free_name` named with one of these words, of a database or of its log, the oldest first.

    One that has a log of its own is returned once. Raises StorageFailed.
    """
    copies: set[Path] = set()
    for file in list_folder(path.parent):
        if not file.name.startswith(path.name):
            continue
        rest = file.name[len(path.name) :]
        for suffix in LOG_SUFFIXES:
            rest = rest.removesuffix(suffix)
        match = _ASIDE.fullmatch(rest)
        if match is not None and match["word"] in words:
            copies.add(path.with_name(path.name + rest))
    return tuple(sorted(copies))


def delete_with_logs(path: Path) -> None:
    """Delete a database and its logs, as far as they exist. Raises StorageFailed."""
    for suffix in (*LOG_SUFFIXES, ""):
        file = path.with_name(path.name + suffix)
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise file_error(error, file) from error


def data_folder(override: Path | None = None) -> Path:
    """Return the data folder, absolute and existing: `override`, or the platform's own place.

    A folder that is made here is readable by its owner only (0700); an existing one keeps its rights. Raises
    StorageFailed.
    """
    if override is None:
        import platformdirs

        override = platformdirs.user_data_path("desktop-agent", appauthor=False)
    folder = whole_path(override)
    make_private_folder(folder)
    return folder


def whole_path(path: Path) -> Path:
    """Return the absolute path, with the home folder for `~`. Raises StorageFailed where there is no such home."""
    try:
        return path.expanduser().absolute()
    except RuntimeError:
        sentence = Sentence("There is no home folder for “{path}”.", {"path": str(path)})
        raise StorageFailed(sentence, "Write the path from the root on.") from None


def make_private_folder(folder: Path, within: Path | None = None) -> None:
    """Create `folder` with mode 0700, and what is missing above it. Raises StorageFailed.

    `within` is not created: a data folder that was moved away while in use would find another one in its place when
    it is put back.
    """
    missing = [parent for parent in (folder, *folder.parents) if within is not None and within in parent.parents]
    try:
        if within is None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        elif not within.is_dir():
            raise missing_error(within)
        for parent in reversed(missing):
            parent.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise file_error(error, folder) from error
