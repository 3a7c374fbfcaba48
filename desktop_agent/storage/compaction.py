"""Making the database and the indexes of the search as small as their content."""

import asyncio
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from desktop_agent.processes.worker_threads import CancelToken, wait_to_end
from desktop_agent.storage.connection import DatabaseConnection, connect, result_code
from desktop_agent.storage.locks.open_files import find_other_processes
from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.storage.search.index_file import FOUND_INDEX_NAME, INDEX_NAME
from desktop_agent.storage.store import Store
from desktop_agent.types.errors import DatabaseBusy, DiskFull, Sentence

# SQLite builds the new content beside the old: in memory up to here, above in the system's folder for temporary files.
_MAX_IN_MEMORY = 256 * 1024 * 1024
# The new content is written to the log, and from there into the database.
_ROOM = 2.2
_INDEXES = INDEX_NAME, FOUND_INDEX_NAME
_STEPS = 20_000
"""Instructions of SQLite between two checks for cancellation."""


@dataclass(frozen=True, slots=True)
class CompactionSizes:
    """Bytes of the database and the indexes of the search, before and after."""

    before: int
    after: int


async def compact(store: Store, folder: Path) -> CompactionSizes:
    """Compact the database of a store and its search indexes; other work on the database waits meanwhile.

    When it is cancelled everything stays as it was. Raises DatabaseBusy while another process has the folder open,
    DiskFull where there is no room for it, and StorageFailed.
    """
    if store.read_only is not None:
        raise store.read_only
    before = await asyncio.to_thread(_prepare, folder)
    token = CancelToken()

    def work(db: DatabaseConnection) -> None:
        # An interrupt from another thread is lost where no statement runs just then.
        db.set_progress_handler(lambda: token.is_cancelled, _STEPS)
        try:
            token.raise_if_cancelled()
            _compact_database(db, folder)
        except sqlite3.OperationalError as error:
            # Nobody waits for it any more, and the disk refused nothing.
            if result_code(error) != sqlite3.SQLITE_INTERRUPT:
                raise
        finally:
            db.set_progress_handler(None, 0)

    await wait_to_end(asyncio.ensure_future(store.run(work)), token.cancel)
    for name in _INDEXES:
        await asyncio.to_thread(_compact_index, folder / name)
    return CompactionSizes(before, await asyncio.to_thread(_size, folder))


def _prepare(folder: Path) -> int:
    """Return the size. Raises DatabaseBusy and DiskFull."""
    # This process is one of them.
    if len(find_other_processes(folder).present) > 1:
        raise DatabaseBusy(
            Sentence("The conversations cannot be compacted while another program has them open."),
            "Close it, then try again.",
        )
    size = _size(folder)
    if shutil.disk_usage(folder).free < _ROOM * size:
        needed = {"needed": f"{_ROOM * size / 1e6:.1f} MB", "folder": str(folder)}
        what = Sentence("Compacting needs {needed} of free room on the disk of “{folder}”.", needed)
        raise DiskFull(what, "Free some space, then try again. Nothing was changed.")
    return size


def _compact_database(db: DatabaseConnection, folder: Path) -> None:
    if (folder / DATABASE_NAME).stat().st_size > _MAX_IN_MEMORY:
        db.execute("PRAGMA temp_store=FILE")
    try:
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        db.execute("PRAGMA temp_store=MEMORY")


def _compact_index(path: Path) -> None:
    """Compact an index, unless it is in use or SQLite refuses: it can be made anew at any time."""
    if path.exists():
        with suppress(sqlite3.Error), closing(connect(path)) as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _size(folder: Path) -> int:
    size = 0
    for name in DATABASE_NAME, *_INDEXES:
        for suffix in "", "-wal":
            with suppress(OSError):
                size += folder.joinpath(name + suffix).stat().st_size
    return size
