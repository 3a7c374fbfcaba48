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

from desktop_agent.storage import content_files, conversation_rows, folder_rows, schedules, usage
from desktop_agent.storage.connection import connect, text_of, transaction, write_verified_copy
from desktop_agent.storage.files import sync_folder
from desktop_agent.storage.search import outbox
from desktop_agent.types.errors import DatabaseTooNew, Sentence

_FIRST_TABLES = """
CREATE TABLE conversations (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 101 CHECK (mark = 101),
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    title_is_automatic INTEGER NOT NULL,
    created_at INTEGER NOT NULL,  -- microseconds since 1970, UTC
    updated_at INTEGER NOT NULL,
    endpoint_id TEXT,
    model TEXT,
    workspace TEXT,
    head INTEGER,  -- the message that ends the branch in view
    message_count INTEGER NOT NULL DEFAULT 0,
    deleted_at INTEGER
);
CREATE INDEX conversations_by_time ON conversations (deleted_at, updated_at DESC);

CREATE TABLE messages (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 102 CHECK (mark = 102),
    conversation INTEGER NOT NULL REFERENCES conversations (number) ON DELETE CASCADE,
    id TEXT NOT NULL,
    parent INTEGER,  -- always a smaller number
    position INTEGER NOT NULL,  -- 1 for the first of a branch
    role TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (conversation, id)
);

CREATE TABLE runs (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 103 CHECK (mark = 103),
    conversation INTEGER NOT NULL REFERENCES conversations (number) ON DELETE CASCADE,
    id TEXT NOT NULL,
    finished INTEGER NOT NULL DEFAULT 0,
    UNIQUE (conversation, id)
);
CREATE INDEX runs_open ON runs (conversation) WHERE finished = 0;

-- number is run * 2^32 + seq: rows of a run lie together and in order without an index.
CREATE TABLE journal (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 104 CHECK (mark = 104),
    parent_run_id TEXT,
    turn_id TEXT,
    at TEXT NOT NULL,
    type TEXT NOT NULL,
    event TEXT NOT NULL
);

-- number is the conversation's, or 0 for the one that is not yet created.
CREATE TABLE drafts (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 105 CHECK (mark = 105),
    body TEXT NOT NULL
);

CREATE TABLE pictures (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 106 CHECK (mark = 106),
    digest TEXT NOT NULL UNIQUE,
    media_type TEXT NOT NULL,
    size INTEGER NOT NULL,
    width INTEGER,
    height INTEGER
);

-- conversation as in drafts: 0 is the draft that has none.
CREATE TABLE picture_uses (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 107 CHECK (mark = 107),
    conversation INTEGER NOT NULL,
    digest TEXT NOT NULL,
    UNIQUE (conversation, digest)
);
CREATE INDEX picture_uses_by_digest ON picture_uses (digest);
"""

_REASONING = """
ALTER TABLE conversations ADD COLUMN reasoning TEXT;  -- JSON, or NULL for what the model does by itself
"""

_SESSION_STATE = f"""
ALTER TABLE conversations ADD COLUMN state TEXT;  -- JSON, or NULL for what every conversation begins with
{conversation_rows.RULES_TABLE}
{content_files.CHECKPOINTS_TABLE}
"""

_PARAMETERS = """
ALTER TABLE conversations ADD COLUMN parameters TEXT;  -- JSON, or NULL for what the server does by itself
"""

_BRANCHES = """
CREATE INDEX messages_by_parent ON messages (conversation, parent);
ALTER TABLE conversations ADD COLUMN origin TEXT;  -- JSON, or NULL for what began here
"""

# Step i turns version i into version i + 1. A step that was released is never changed again.
MIGRATIONS: tuple[str, ...] = (
    _FIRST_TABLES,
    _REASONING,
    _SESSION_STATE,
    _PARAMETERS,
    _BRANCHES,
    outbox.TABLES,
    folder_rows.TABLES,
    usage.TABLES,
    schedules.TABLES,
)
_MADE = re.compile(r"^\s*(?:CREATE TABLE (\w+)|ALTER TABLE (\w+) ADD COLUMN (\w+))", re.MULTILINE)
TABLES_BY_MARK: dict[int, str] = {
    101: "conversations",
    102: "messages",
    103: "runs",
    104: "journal",
    105: "drafts",
    106: "pictures",
    107: "picture_uses",
    108: "rules",
    110: "checkpoints",
    113: "folders",
    114: "tags",
    115: "usage",
    116: "schedules",
    117: "schedule_runs",
}


def schema_version(connection: sqlite3.Connection) -> int:
    """Return the schema version that the file claims; 0 when nothing was ever written."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def has_views(connection: sqlite3.Connection) -> bool:
    """Return whether there is a view: we make none, and in the place of a table it may never end.

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
    made, to_come = (set(_MADE.findall("\n".join(part))) for part in (steps[:version], steps[version:]))
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    present = {(text_of(name), "", "") for (name,) in tables}
    for _, table, _ in made | to_come:
        if table:
            columns = connection.execute(f"PRAGMA table_info({table})")
            present |= {("", table, text_of(column[1])) for column in columns}
    return not made <= present or not present.isdisjoint(to_come - made)


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
