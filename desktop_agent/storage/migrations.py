"""The tables, and how an older database is migrated to today's.

Conversations, messages and runs reference one another by row numbers, which are short and quick; the ids that the
program uses are columns. `mark` is the same in every row of a table: a rescue that finds a row on a page without its
surroundings knows by it to which table the row belongs.
"""

import os
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from desktop_agent.data_files import load_text
from desktop_agent.storage.connection import connect, text_of, transaction, write_verified_copy
from desktop_agent.storage.files import sync_folder
from desktop_agent.types.errors import DatabaseTooNew, Sentence

_VERSION = 10
MIGRATIONS = tuple(load_text(__name__, f"tables/version_{number}.sql") for number in range(1, _VERSION + 1))
"""Step i turns version i into version i + 1. A step that was released is never changed again."""
_MADE = re.compile(r"^\s*(?:CREATE TABLE (\w+)|ALTER TABLE (\w+) ADD COLUMN (\w+))", re.MULTILINE)
_MARKED = re.compile(r"CREATE TABLE (\w+) \(\s+number [^,]*,\s+mark INTEGER NOT NULL DEFAULT (\d+)")
TABLES_BY_MARK = {
    int(mark): table for step in MIGRATIONS for table, mark in _MARKED.findall(step) if not table.startswith("search_")
}
"""The tables that a rescue copies. Those of the search outbox are left out: a new index does not need them."""


def schema_version(connection: sqlite3.Connection) -> int:
    """Return the schema version that the file claims; 0 when nothing was ever written."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def has_views(connection: sqlite3.Connection) -> bool:
    """Return whether there is a view: we make none, and reading one in the place of a table may never end.

    Raises sqlite3.Error.
    """
    return connection.execute("SELECT 1 FROM sqlite_schema WHERE type = 'view'").fetchone() is not None


def has_strange_schema(connection: sqlite3.Connection, steps: Sequence[str] = MIGRATIONS) -> bool:
    """Return whether there are views or triggers that we did not make, or its tables are not those of its version.

    Raises sqlite3.Error.
    """
    own = "\n".join(steps)
    triggers = connection.execute("SELECT sql FROM sqlite_schema WHERE type = 'trigger'")
    is_foreign = has_views(connection) or any(text_of(sql) not in own for (sql,) in triggers)
    return is_foreign or _has_wrong_version(connection, steps)


def _has_wrong_version(connection: sqlite3.Connection, steps: Sequence[str]) -> bool:
    """Return whether a table or column of an earlier step is missing, or one of a step to come is there."""
    version = schema_version(connection)
    applied, pending = (set(_MADE.findall("\n".join(part))) for part in (steps[:version], steps[version:]))
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    present = {(text_of(name), "", "") for (name,) in tables}
    for _, table, _ in applied | pending:
        if table:
            columns = connection.execute(f"PRAGMA table_info({table})")
            present |= {("", table, text_of(column[1])) for column in columns}
    return not applied <= present or not present.isdisjoint(pending - applied)


def refuse_newer(connection: sqlite3.Connection, path: Path, steps: Sequence[str] = MIGRATIONS) -> None:
    """Raise DatabaseTooNew if this version cannot read the file."""
    version = schema_version(connection)
    if version > len(steps):
        raise DatabaseTooNew(
            Sentence("The conversations in “{path}” were saved by a newer version.", {"path": str(path)}),
            detail=f"schema {version}, known up to {len(steps)}",
        )


def create_database(path: Path) -> None:
    """Make a new, empty database; the name appears only when it is complete. Raises sqlite3.Error and OSError."""
    unfinished = create_unfinished(path)
    unfinished.replace(path)
    sync_folder(path.parent)


def create_unfinished(path: Path) -> Path:
    """Make a new, empty database beside where it belongs. Raises sqlite3.Error and OSError."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    for suffix in ("", "-wal", "-shm"):
        unfinished.with_name(unfinished.name + suffix).unlink(missing_ok=True)
    os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    with closing(connect(unfinished)) as connection:
        migrate(connection, unfinished)
    return unfinished


def migrate(connection: sqlite3.Connection, path: Path, steps: Sequence[str] = MIGRATIONS) -> Path | None:
    """Bring the database up to date, step by step; a database with content is copied first.

    Return the copy, or None if there was nothing to do. A step that fails leaves its version as it was. Raises
    sqlite3.Error and StorageFailed.
    """
    version = schema_version(connection)
    if version == len(steps):
        return None
    copy = None
    if version > 0:
        copy = path.with_name(f"{path.name}.before-version-{len(steps)}")
        copy.unlink(missing_ok=True)
        write_verified_copy(connection, copy)
    apply_migrations(connection, steps)
    return copy


def apply_migrations(connection: sqlite3.Connection, steps: Sequence[str] = MIGRATIONS) -> None:
    """Apply the missing steps, without a copy. Raises sqlite3.Error."""
    version = schema_version(connection)
    for number, step in enumerate(steps[version:], start=version + 1):
        with transaction(connection):
            for statement in _split_statements(step):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version={number}")


def _split_statements(script: str) -> list[str]:
    """Split a script into statements: executescript would commit the transaction around it."""
    statements: list[str] = []
    statement = ""
    for line in script.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            statements.append(statement)
            statement = ""
    return statements
