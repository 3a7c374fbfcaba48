"""Backups of a data folder: written while the program runs, listed, thinned out, and restored into a new folder.

A backup is a folder with the database, checked after it was copied, the pictures and saved files, and the settings.
Keys are not in it: they lie in the keyring. `backup.json` is written last, so a folder without it is unfinished.
"""

import asyncio
import json
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from desktop_agent.processes.worker_threads import CancelToken, WorkerThread, wait_to_end
from desktop_agent.storage.content_files import BLOB_FOLDER, PICTURE_FOLDER
from desktop_agent.storage.files import file_error, make_private_folder, sync_folder, write_atomically
from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.storage.store import Store
from desktop_agent.types.errors import Sentence, StorageFailed

T = TypeVar("T")

BACKUP_FOLDER = "backups"
"""The folder for backups inside a data folder."""
_MANIFEST = "backup.json"
_FORMAT = 1
_FOLDERS = (PICTURE_FOLDER, BLOB_FOLDER)
_SETTINGS = ("*.json", "*.toml")
_COUNT = """
    SELECT (SELECT count(*) FROM conversations WHERE deleted_at IS NULL),
        (SELECT count(*) FROM conversations WHERE deleted_at IS NOT NULL), (SELECT count(*) FROM messages)"""


@dataclass(frozen=True, slots=True)
class StoredCounts:
    """How much is stored. `messages` counts those of all branches, also in the trash."""

    conversations: int
    in_trash: int
    messages: int


@dataclass(frozen=True, slots=True)
class Backup:
    """A finished backup. `size` is in bytes; files that it shares with the data folder count too."""

    folder: Path
    created_at: datetime
    counts: StoredCounts
    size: int


def count_stored(folder: Path) -> StoredCounts:
    """Count what the database of a data folder or a backup holds. Raises StorageFailed."""
    path = folder / DATABASE_NAME
    try:
        with closing(sqlite3.connect(path.absolute().as_uri() + "?mode=ro", uri=True)) as connection:
            return StoredCounts(*connection.execute(_COUNT).fetchone())
    except sqlite3.Error as error:
        sentence = Sentence("There are no readable conversations in “{folder}”.", {"folder": str(folder)})
        raise StorageFailed(sentence, "Choose another folder.", detail=str(error)) from error


def measure_folder(folder: Path) -> tuple[StoredCounts, int]:
    """Return how much a data folder holds, and its size in bytes without backups, in this thread.

    Raises StorageFailed.
    """
    counts = count_stored(folder)
    return counts, _size_of(folder) - (_size_of(folder / BACKUP_FOLDER) if (folder / BACKUP_FOLDER).is_dir() else 0)


async def write_backup(store: Store, data_folder: Path, backups: Path) -> Backup:
    """Write a backup into a new folder of `backups`, named by the time. Raises StorageFailed; then nothing is left."""
    created_at = datetime.now(UTC).replace(microsecond=0)
    targets: list[Path] = []
    try:
        await _in_thread(lambda _: targets.append(_make_target(backups, created_at)))
        (target,) = targets
        await store.snapshot(target / DATABASE_NAME)
        return await _in_thread(lambda token: _finish(data_folder, target, created_at, token))
    except BaseException:
        for target in targets:
            await _in_thread(lambda _: shutil.rmtree(target, ignore_errors=True))  # noqa: B023  awaited at once
        raise


async def list_backups(backups: Path) -> tuple[Backup, ...]:
    """Return the finished backups in a folder, the newest first; none where there is no such folder."""
    return await _in_thread(lambda _: _list(backups))


async def remove_old_backups(backups: Path, keep: int) -> int:
    """Delete all but the newest `keep` backups; return how many. Raises StorageFailed."""
    return await _in_thread(lambda _: _remove_old(backups, keep))


async def restore_backup(backup: Path, data_folder: Path) -> tuple[StoredCounts, StoredCounts]:
    """Copy a backup into a new data folder, and open that once; return what the backup has, and what the folder has.

    Raises StorageFailed where the folder has something in it, or the backup is unfinished.
    """
    before = await _in_thread(lambda token: _copy_back(backup, data_folder, token))
    store = await Store.open(data_folder)
    try:
        await store.integrity_checker.run(full=True)
    finally:
        await store.close()
    return before, await _in_thread(lambda _: count_stored(data_folder))


async def _in_thread(work: Callable[[CancelToken], T]) -> T:
    """A thread of its own: a long copy holds up no journal, and no other file.

    A cancel sets the token and waits for the end of the work: what is cleaned up after it is not written again.
    """
    worker, token = WorkerThread("backup"), CancelToken()
    try:
        return await wait_to_end(asyncio.wrap_future(worker.submit(lambda: work(token))), token.cancel)
    finally:
        worker.stop()


def _make_target(backups: Path, created_at: datetime) -> Path:
    make_private_folder(backups)
    name = created_at.strftime("%Y-%m-%d %H-%M-%S")
    target, number = backups / name, 2
    while True:
        try:
            # Not the one that another process has just made.
            target.mkdir(mode=0o700)
        except FileExistsError:
            target, number = backups / f"{name} {number}", number + 1
        except OSError as error:
            raise file_error(error, target) from error
        else:
            return target


def _finish(data_folder: Path, target: Path, created_at: datetime, token: CancelToken) -> Backup:
    for path in _content_of(data_folder):
        token.raise_if_cancelled()
        _share(path, target / path.relative_to(data_folder))
    counts = count_stored(target)
    manifest = {"format": _FORMAT, "created_at": created_at.isoformat(), "counts": asdict(counts)}
    try:
        write_atomically(target / _MANIFEST, json.dumps(manifest, indent=2).encode())
    except OSError as error:
        raise file_error(error, target) from error
    return Backup(target, created_at, counts, _size_of(target))


def _content_of(folder: Path) -> Iterator[Path]:
    """Yield the files besides the database. Links are left out: a backup holds content."""
    for pattern in (*_SETTINGS, *(f"{name}/*/*" for name in _FOLDERS)):
        for path in folder.glob(pattern):
            if path.is_file() and not path.is_symlink():
                yield path


def _share(source: Path, target: Path) -> None:
    """Give the target the content of the source: pictures and saved files never change, so a link is enough."""
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if source.parent.parent.name in _FOLDERS:
            with suppress(OSError):  # another file system, or one without links
                os.link(source, target)
                return
        with suppress(FileNotFoundError):  # it was deleted meanwhile, so nothing needs it
            shutil.copy2(source, target)
    except OSError as error:
        raise file_error(error, target) from error


def _list(backups: Path) -> tuple[Backup, ...]:
    found = [backup for path in backups.glob(f"*/{_MANIFEST}") if (backup := _read(path)) is not None]
    return tuple(sorted(found, key=lambda backup: (backup.created_at, backup.folder.name), reverse=True))


def _read(manifest: Path) -> Backup | None:
    try:
        data = json.loads(manifest.read_bytes())
        created_at, counts = datetime.fromisoformat(data["created_at"]), StoredCounts(**data["counts"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return Backup(manifest.parent, created_at, counts, _size_of(manifest.parent))


def _size_of(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # it was deleted meanwhile
            status = path.lstat()
            size += status.st_size if stat.S_ISREG(status.st_mode) else 0
    return size


def _remove_old(backups: Path, keep: int) -> int:
    old = _list(backups)[keep:]
    for backup in old:
        try:
            # First: what is half deleted is no backup.
            (backup.folder / _MANIFEST).unlink()
            shutil.rmtree(backup.folder)
        except OSError as error:
            raise file_error(error, backup.folder) from error
    return len(old)


def _copy_back(backup: Path, data_folder: Path, token: CancelToken) -> StoredCounts:
    if _read(backup / _MANIFEST) is None:
        sentence = Sentence("“{folder}” is no finished backup.", {"folder": str(backup)})
        raise StorageFailed(sentence, "Choose a folder that a backup has written.")
    counts = count_stored(backup)
    make_private_folder(data_folder)
    try:
        if any(data_folder.iterdir()):
            sentence = Sentence("“{folder}” is not empty.", {"folder": str(data_folder)})
            raise StorageFailed(sentence, "Restore into a new folder; then nothing can be overwritten.")
        _copy_content(backup, data_folder, token)
    except OSError as error:
        raise file_error(error, data_folder) from error
    return counts


def _copy_content(backup: Path, data_folder: Path, token: CancelToken) -> None:
    """Copy all of it, or leave the folder empty, so that it can be tried again. Raises OSError."""
    # Last: a folder with a database is a data folder.
    unfinished = data_folder / f".{DATABASE_NAME}"
    copies = {data_folder / path.relative_to(backup): path for path in _content_of(backup) if path.name != _MANIFEST}
    copies[unfinished] = backup / DATABASE_NAME
    try:
        for target, path in copies.items():
            token.raise_if_cancelled()
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copy2(path, target)
        unfinished.replace(data_folder / DATABASE_NAME)
    except BaseException:
        for target in copies:
            with suppress(OSError):
                target.unlink(missing_ok=True)
        for folder in sorted({target.parent for target in copies}, reverse=True):
            with suppress(OSError):  # others put something there
                _remove_empty(folder, data_folder)
        raise
    sync_folder(data_folder)


def _remove_empty(folder: Path, top: Path) -> None:
    while folder != top:
        folder.rmdir()
        folder = folder.parent
