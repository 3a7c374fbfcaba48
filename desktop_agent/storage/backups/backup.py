"""Backups of a data folder: written while the program runs, listed, thinned out, and restored into a new folder.

A backup is a folder with the database, checked after it was copied, the pictures and saved files, and the settings.
Keys are not in it: they lie in the keyring. `backup.json` is written last, so a folder without it is unfinished.
"""

import asyncio
import json
import os
import re
import shutil
import sqlite3
import stat
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TypeVar, cast

from desktop_agent.processes.worker_threads import CancelToken, WorkerThread, wait_to_end
from desktop_agent.storage.connection import DatabaseConnection, text_of
from desktop_agent.storage.content_files import BLOB_FOLDER, PICTURE_FOLDER
from desktop_agent.storage.files import (
    file_error,
    find_link_error,
    list_folder,
    make_private_folder,
    sync_folder,
    write_atomically,
)
from desktop_agent.storage.migrations import has_views, refuse_newer
from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.storage.store import Store
from desktop_agent.types.errors import Sentence, StorageFailed

T = TypeVar("T")

BACKUP_FOLDER = "backups"
"""The folder for backups inside a data folder."""
_KNOWN_FOLDERS = "backup-folders"
"""The file in the data folder that names other folders with backups, in JSON; no backup has it."""
_MAX_KNOWN_FOLDERS = 100
_MANIFEST = "backup.json"
_MAX_MANIFEST_BYTES = 100_000
_FORMAT = 1
_MAX_COUNT = 2**53
_MIN_YEAR, _MAX_YEAR = 1971, 9000
_FOLDERS = (PICTURE_FOLDER, BLOB_FOLDER)
_SETTINGS = (".json", ".toml")
_NAME = re.compile(r"\d{4}-\d\d-\d\d \d\d-\d\d-\d\d( \d+)?")
_UNFINISHED_SECONDS = 24 * 60 * 60
_SELECT_MESSAGE = """
    SELECT 1 FROM conversations c JOIN messages m ON m.conversation = c.number WHERE c.id = ? AND m.id = ?"""
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
    """A finished backup. `size` is in bytes; files that it shares with the data folder count too.

    `is_automatic`: the program wrote it by itself, and deletes it when there are newer ones.
    """

    folder: Path
    created_at: datetime
    counts: StoredCounts
    size: int
    is_automatic: bool = False


def count_stored(folder: Path) -> StoredCounts:
    """Count what the database of a data folder or a backup holds, or a database itself. Raises StorageFailed."""
    path = folder / DATABASE_NAME if folder.is_dir() else folder
    try:
        with _open_read_only(path) as connection:
            return StoredCounts(*connection.execute(_COUNT).fetchone())
    except sqlite3.Error as error:
        raise _unreadable(folder, error) from error


def _unreadable(folder: Path, error: sqlite3.Error) -> StorageFailed:
    sentence = Sentence("There are no readable conversations in “{folder}”.", {"folder": str(folder)})
    return StorageFailed(sentence, "Choose another folder.", detail=str(error))


def measure_folder(folder: Path) -> tuple[StoredCounts, int]:
    """Return how much a data folder holds, and its size in bytes without backups, in this thread.

    Raises StorageFailed.
    """
    counts = count_stored(folder)
    return counts, _size_of(folder) - (_size_of(folder / BACKUP_FOLDER) if (folder / BACKUP_FOLDER).is_dir() else 0)


async def write_backup(store: Store, data_folder: Path, backups: Path, *, is_automatic: bool = False) -> Backup:
    """Write a backup into a new folder of `backups`, named by the time. Raises StorageFailed; then nothing is left."""
    created_at = datetime.now(UTC).replace(microsecond=0)
    targets: list[Path] = []
    try:
        await _in_thread(lambda _: targets.append(_make_target(backups, created_at)))
        (target,) = targets
        await store.snapshot(target / DATABASE_NAME)
        return await _in_thread(lambda token: _finish(data_folder, target, created_at, token, is_automatic))
    except BaseException:
        for target in targets:
            await _in_thread(lambda _: shutil.rmtree(target, ignore_errors=True))  # noqa: B023  awaited at once
        raise


async def find_backup_folders(data_folder: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the folders into which backups of a data folder were ever written, and those of them that are gone.

    The latter may be on a disk that is not connected. The folder in the data folder is always among the first. Raises
    StorageFailed.
    """
    return await _in_thread(lambda _: _find_folders(data_folder))


async def forget_backup_folders(data_folder: Path, gone: Collection[Path]) -> None:
    """Look into these folders no more, until a backup is written into them again. Raises StorageFailed."""
    await _in_thread(lambda _: _save_known(data_folder, [path for path in _known(data_folder) if path not in gone]))


async def list_backups(backups: Path) -> tuple[Backup, ...]:
    """Return the finished backups in a folder, the newest first; none where there is no such folder."""
    return await _in_thread(lambda _: _list(backups))


async def remove_old_backups(backups: Path, keep: int) -> int:
    """Delete all but the newest `keep` automatic backups; return how many. Raises StorageFailed.

    Those that a person asked for stay, and do not count.
    """
    return await _in_thread(lambda _: _remove_old(backups, keep))


async def remove_backup(folder: Path) -> None:
    """Delete one backup. Raises StorageFailed."""
    await _in_thread(lambda _: _remove(folder))


async def remove_unfinished_backups(backups: Path) -> None:
    """Delete unfinished backups of processes that died. One younger than a day may still be written by another one."""
    await _in_thread(lambda _: _remove_unfinished(backups))


async def is_backup_due(data_folder: Path, backups: Path, interval: timedelta) -> bool:
    """Return whether the newest backup is older than the interval, and something was written since."""
    return await _in_thread(lambda _: _is_due(data_folder, backups, interval))


async def find_with_conversations(paths: Sequence[Path], conversation_ids: Collection[str]) -> tuple[Path, ...]:
    """Return those backups and databases that have one of these conversations, or cannot be read."""
    return await _in_thread(lambda _: tuple(path for path in paths if _has_one_of(path, conversation_ids)))


async def find_with_message(paths: Sequence[Path], conversation_id: str, message_id: str) -> tuple[Path, ...]:
    """Return those backups and databases that have this message in this conversation, or cannot be read."""
    return await _in_thread(lambda _: tuple(path for path in paths if _has_message(path, conversation_id, message_id)))


async def restore_backup(backup: Path, data_folder: Path) -> tuple[StoredCounts, StoredCounts]:
    """Copy a backup into a new data folder, and open that once; return what the backup has, and what the folder has.

    Raises StorageFailed where the folder has something in it, or the backup is unfinished.
    """
    await _in_thread(lambda _: _require_finished(backup))
    before = await copy_into_new_folder(backup, backup / DATABASE_NAME, data_folder)
    return before, await open_once(data_folder)


async def copy_into_new_folder(content: Path, database: Path, data_folder: Path) -> StoredCounts:
    """Make a data folder of a database and the pictures, saved files and settings in `content`.

    Return what the database has. Raises StorageFailed where the folder has something in it.
    """
    return await _in_thread(lambda token: _copy_back(content, database, data_folder, token))


async def open_once(data_folder: Path) -> StoredCounts:
    """Open a data folder, which may upgrade it, check it, and return what it has. Raises StorageFailed."""
    store = await Store.open(data_folder)
    try:
        await store.integrity_checker.run(full=True)
    finally:
        await store.close()
    return await _in_thread(lambda _: count_stored(data_folder))


async def _in_thread(work: Callable[[CancelToken], T]) -> T:
    """Do work in a thread of its own: a long copy holds up no journal, and no other file.

    A cancel sets the token and waits for the end of the work: what is cleaned up after it is not written again. Raises
    StorageFailed, also where a folder cannot be listed, as on a network disk that has gone.
    """
    worker, token = WorkerThread("backup"), CancelToken()
    try:
        return await wait_to_end(asyncio.wrap_future(worker.submit(lambda: work(token))), token.cancel)
    except OSError as error:
        raise file_error(error, Path(error.filename or "?")) from error
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


def _finish(
    data_folder: Path,
    target: Path,
    created_at: datetime,
    token: CancelToken,
    is_automatic: bool,  # noqa: FBT001
) -> Backup:
    for path in _content_of(data_folder, with_links=True):
        token.raise_if_cancelled()
        _share(path, target / path.relative_to(data_folder))
    counts = count_stored(target)
    manifest = {
        "format": _FORMAT,
        "created_at": created_at.isoformat(),
        "counts": asdict(counts),
        "automatic": is_automatic,
    }
    try:
        write_atomically(target / _MANIFEST, json.dumps(manifest, indent=2).encode())
    except OSError as error:
        raise file_error(error, target) from error
    _remember(data_folder, target.parent)
    return Backup(target, created_at, counts, _size_of(target), is_automatic)


def _remember(data_folder: Path, backups: Path) -> None:
    backups = Path(os.path.realpath(backups))
    # The backup is good also where nothing can be read or written in the data folder.
    with suppress(StorageFailed, OSError):
        known = _known(data_folder)
        if backups not in (*known, Path(os.path.realpath(data_folder / BACKUP_FOLDER))):
            _save_known(data_folder, [*known, backups][-_MAX_KNOWN_FOLDERS:])


def _known(data_folder: Path) -> list[Path]:
    """Return the folders of the list; none of one that is missing or broken. Raises OSError."""
    try:
        paths = json.loads((data_folder / _KNOWN_FOLDERS).read_bytes())
    except (FileNotFoundError, ValueError, RecursionError):
        return []
    texts = cast("list[object]", paths) if isinstance(paths, list) else []
    return [Path(text) for text in texts if isinstance(text, str) and Path(text).is_absolute()]


def _save_known(data_folder: Path, known: Sequence[Path]) -> None:
    path = data_folder / _KNOWN_FOLDERS
    try:
        write_atomically(path, json.dumps([str(folder) for folder in known], indent=2).encode())
    except OSError as error:
        raise file_error(error, path) from error


def _find_folders(data_folder: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    known = _known(data_folder)
    # False also for a network disk that fails, where `Path.is_dir` raises.
    present = [path for path in known if os.path.isdir(path)]  # noqa: PTH112
    return (data_folder / BACKUP_FOLDER, *present), tuple(path for path in known if path not in present)


def _content_of(folder: Path, *, with_links: bool = False) -> Iterator[Path]:
    """Yield the files besides the database. Links too, if wanted: a person may keep the settings elsewhere.

    Raises OSError and StorageFailed, also for a link that is wanted and leads to nothing.
    """
    settings = [path for path in list_folder(folder) if path.suffix in _SETTINGS]
    parts = [part for name in _FOLDERS for part in list_folder(folder / name)]
    for path in chain(settings, *map(list_folder, parts)):
        try:
            is_file = stat.S_ISREG(path.stat(follow_symlinks=with_links).st_mode)
        except FileNotFoundError:
            if (dangling := find_link_error(path)) is not None:
                raise dangling from None
            continue  # it was deleted meanwhile, so nothing needs it
        if is_file:
            yield path


def _share(source: Path, target: Path) -> None:
    """Give the target the content of the source: pictures and saved files never change, so a link is enough."""
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Of a link the content: a backup holds no links.
        if source.parent.parent.name in _FOLDERS and not source.is_symlink():
            with suppress(OSError):  # another file system, or one without links
                os.link(source, target)
                return
        with suppress(FileNotFoundError):  # it was deleted meanwhile, so nothing needs it
            shutil.copy2(source, target)
    except OSError as error:
        raise file_error(error, target) from error


def _list(backups: Path) -> tuple[Backup, ...]:
    finished = [backup for path in list_folder(backups) if (backup := _read(path / _MANIFEST)) is not None]
    return tuple(sorted(finished, key=lambda backup: (backup.created_at, backup.folder.name), reverse=True))


def _read(manifest: Path) -> Backup | None:
    try:
        if not manifest.is_file() or manifest.stat().st_size > _MAX_MANIFEST_BYTES:
            return None
        data = json.loads(manifest.read_bytes())
        created_at = datetime.fromisoformat(data["created_at"])
        counts = _counts_in(data["counts"]) or count_stored(manifest.parent)
    except (OSError, ValueError, TypeError, KeyError, RecursionError, StorageFailed):
        return None
    if created_at.tzinfo is None or not _MIN_YEAR <= created_at.year <= _MAX_YEAR:
        # Of a changed manifest: it could not be compared with the others, or shown in the local time.
        return None
    return Backup(manifest.parent, created_at, counts, _size_of(manifest.parent), data.get("automatic") is True)


def _counts_in(counts: object) -> StoredCounts | None:
    """Return the counts of a manifest; None for a changed one that has something else."""
    if not isinstance(counts, dict):
        return None
    numbers = [cast("dict[str, object]", counts).get(field.name) for field in fields(StoredCounts)]
    whole = [number for number in numbers if type(number) is int and 0 <= number <= _MAX_COUNT]
    return StoredCounts(*whole) if len(whole) == len(numbers) else None


def _size_of(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # it was deleted meanwhile
            status = path.lstat()
            size += status.st_size if stat.S_ISREG(status.st_mode) else 0
    return size


def _remove_old(backups: Path, keep: int) -> int:
    # Those of a clock that was ahead stay until it is their time, and push no other out.
    automatic = (backup for backup in _list(backups) if backup.is_automatic)
    old = [backup for backup in automatic if backup.created_at <= datetime.now(UTC)][keep:]
    for backup in old:
        _remove(backup.folder)
    return len(old)


def _remove(folder: Path) -> None:
    try:
        # First: what is half deleted is no backup.
        (folder / _MANIFEST).unlink()
        shutil.rmtree(folder)
    except OSError as error:
        raise file_error(error, folder) from error


def _remove_unfinished(backups: Path) -> None:
    for path in backups.glob("*"):
        with suppress(OSError):
            is_old = time.time() - path.stat().st_mtime > _UNFINISHED_SECONDS
            if _NAME.fullmatch(path.name) and is_old and path.is_dir() and not (path / _MANIFEST).exists():
                shutil.rmtree(path)


def _is_due(data_folder: Path, backups: Path, interval: timedelta) -> bool:
    # A clock that was ahead must not put the next one off.
    newest = next((backup for backup in _list(backups) if backup.created_at <= datetime.now(UTC)), None)
    if newest is None:
        counts = count_stored(data_folder)
        return counts.conversations + counts.in_trash > 0
    files = (data_folder / f"{DATABASE_NAME}{suffix}" for suffix in ("", "-wal"))
    written_at = max((path.stat().st_mtime for path in files if path.exists()), default=0.0)
    return datetime.now(UTC) - newest.created_at >= interval and written_at > newest.created_at.timestamp()


def _has_one_of(backup: Path, conversation_ids: Collection[str]) -> bool:
    try:
        with _open_read_only(backup) as connection:
            ids = {text_of(id_) for (id_,) in connection.execute("SELECT id FROM conversations")}
    except sqlite3.Error:
        return True
    return not ids.isdisjoint(conversation_ids)


def _has_message(backup: Path, conversation_id: str, message_id: str) -> bool:
    try:
        with _open_read_only(backup) as connection:
            return connection.execute(_SELECT_MESSAGE, (conversation_id, message_id)).fetchone() is not None
    except sqlite3.Error:
        return True


@contextmanager
def _open_read_only(backup: Path) -> Generator[sqlite3.Connection]:
    path = backup / DATABASE_NAME if backup.is_dir() else backup
    if path.exists() and not path.is_file():
        # Opening a pipe would wait for its writer.
        message = f"{path} is not an ordinary file"
        raise sqlite3.OperationalError(message)
    uri = path.absolute().as_uri() + "?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, factory=DatabaseConnection)) as connection:
        if has_views(connection):
            # A view in the place of a table may never end.
            message = f"{path} has views"
            raise sqlite3.DatabaseError(message)
        yield connection


def _require_finished(backup: Path) -> None:
    if _read(backup / _MANIFEST) is None:
        sentence = Sentence("“{folder}” is not a finished backup.", {"folder": str(backup)})
        raise StorageFailed(sentence, "Choose a folder that a backup has written.")


def _copy_back(content: Path, database: Path, data_folder: Path, token: CancelToken) -> StoredCounts:
    counts = count_stored(database)
    try:
        with _open_read_only(database) as connection:
            refuse_newer(connection, database)
    except sqlite3.Error as error:
        raise _unreadable(database, error) from error
    make_private_folder(data_folder)
    try:
        if any(data_folder.iterdir()):
            sentence = Sentence("“{folder}” is not empty.", {"folder": str(data_folder)})
            raise StorageFailed(sentence, "Restore into a new folder; then nothing can be overwritten.")
        _copy_content(content, database, data_folder, token)
    except OSError as error:
        raise file_error(error, data_folder) from error
    return counts


def _copy_content(content: Path, database: Path, data_folder: Path, token: CancelToken) -> None:
    """Copy all of it, or leave the folder empty, so that it can be tried again. Raises OSError."""
    # Last: a folder with a database is a data folder.
    unfinished = data_folder / f".{DATABASE_NAME}"
    copies = {data_folder / path.relative_to(content): path for path in _content_of(content) if path.name != _MANIFEST}
    copies[unfinished] = database
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
