"""The copies of the database that were made before it was migrated: listed, opened in a new folder.

The program notes its version in each database that it has open, as the header's `application_id`, which copies keep:
major * 1,000,000 + minor * 1,000 + patch, and 0 where nobody noted it.
"""

import asyncio
import re
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from desktop_agent.storage.backups.backup import StoredCounts, copy_into_new_folder, count_stored, open_once
from desktop_agent.storage.connection import DatabaseConnection
from desktop_agent.storage.files import list_folder
from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.storage.store import Store
from desktop_agent.types.errors import StorageFailed

_NAME = re.compile(re.escape(DATABASE_NAME) + r"\.before-version-\d+")
_VERSION = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})")


@dataclass(frozen=True, slots=True)
class MigrationCopy:
    """A copy of a database of version `schema`. `program` is the version that wrote it; "" where that is unknown.

    `size` is in bytes.
    """

    path: Path
    created_at: datetime
    schema: int
    program: str
    counts: StoredCounts
    size: int


async def note_program(store: Store, version: str) -> None:
    """Note in the database which version of the program has it open. Raises StorageFailed."""
    number = _to_number(version)

    def work(db: sqlite3.Connection) -> None:
        if db.execute("PRAGMA application_id").fetchone()[0] != number:
            db.execute(f"PRAGMA application_id = {number}")

    if number and store.read_only is None:
        await store.run(work)


async def list_migration_copies(data_folder: Path) -> tuple[MigrationCopy, ...]:
    """Return the copies in a data folder that can be read, the newest first. Raises StorageFailed."""
    return await asyncio.to_thread(_list, data_folder)


async def open_migration_copy(copy: Path, data_folder: Path, new_folder: Path) -> tuple[StoredCounts, StoredCounts]:
    """Make a data folder of a copy, with today's pictures, saved files and settings, and open it once.

    Return what the copy has, and what the folder has. Raises StorageFailed as `restore_backup` does.
    """
    before = await copy_into_new_folder(data_folder, copy, new_folder)
    return before, await open_once(new_folder)


def _list(data_folder: Path) -> tuple[MigrationCopy, ...]:
    copies: list[MigrationCopy] = []
    for path in list_folder(data_folder):
        if _NAME.fullmatch(path.name):
            with suppress(OSError, sqlite3.Error, StorageFailed):
                copies.append(_read(path))
    return tuple(sorted(copies, key=lambda copy: copy.created_at, reverse=True))


def _read(path: Path) -> MigrationCopy:
    status = path.stat()
    uri = path.absolute().as_uri() + "?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, factory=DatabaseConnection)) as connection:
        (schema,) = connection.execute("PRAGMA user_version").fetchone()
        (number,) = connection.execute("PRAGMA application_id").fetchone()
    created_at = datetime.fromtimestamp(status.st_mtime, UTC)
    return MigrationCopy(path, created_at, schema, _to_version(number), count_stored(path), status.st_size)


def _to_number(version: str) -> int:
    match = _VERSION.match(version)
    if match is None:
        return 0
    major, minor, patch = (int(part) for part in match.groups())
    return major * 1_000_000 + minor * 1_000 + patch


def _to_version(number: int) -> str:
    return f"{number // 1_000_000}.{number // 1_000 % 1_000}.{number % 1_000}" if number > 0 else ""
