"""The database as each version of the schema left it: `kept_schemas/version_N.sql`, with content of each kind.

    python -m tests.data_folder.schemas

writes the file of the newest version from the one before it; then add rows of what is new to it, by hand. A file is
never made anew: it is what the program of its day has written. The content is a part of `kept`, which
tests/data_folder/make.py wrote.
"""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from desktop_agent.storage.migrations import MIGRATIONS, apply_migrations

FOLDER = Path(__file__).parent / "kept_schemas"
VERSIONS = sorted(int(path.stem.removeprefix("version_")) for path in FOLDER.glob("version_*.sql"))


def file_of(version: int) -> Path:
    return FOLDER / f"version_{version}.sql"


def write_database(path: Path, version: int) -> None:
    """Make the database as it was then."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(file_of(version).read_text(encoding="utf-8"))


def dump(database: sqlite3.Connection) -> str:
    """Return all of a database as SQL, its version too."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    return "\n".join([*database.iterdump(), f"PRAGMA user_version={version};", ""])


def main() -> int:
    """Write the file of the newest version, unless there is one."""
    newest = len(MIGRATIONS)
    if file_of(newest).exists():
        print(f"{file_of(newest)} is there")
        return 1
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        database.executescript(file_of(VERSIONS[-1]).read_text(encoding="utf-8"))
        apply_migrations(database)
        file_of(newest).write_text(dump(database), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
