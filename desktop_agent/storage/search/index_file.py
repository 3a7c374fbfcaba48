"""The file of the search index, and the one connection that writes it.

The words of messages are in tables of 8,192 messages each, by number. A search looks into the newest first and stops
when it has enough, so that a short beginning of a word is quick in any number of messages, and what was deleted for
good is removed from its own table alone. The tables have no content of their own: the texts lie beside, compressed,
from which an entry is deleted word by word and snippets are made. FTS5 keeps the words of deleted rows until their
segments are merged; `compact_one` does that, and empties the log.
"""

import os
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from desktop_agent.data_files import load_text
from desktop_agent.storage.connection import SAFE_PRAGMAS, rewrite_if_small, transaction, with_pragmas
from desktop_agent.storage.conversation_rows import to_microseconds
from desktop_agent.storage.locks.open_files import file_identity
from desktop_agent.storage.records import read_message
from desktop_agent.storage.search.outbox import (
    ChangedRow,
    Changes,
    ConversationRow,
    GoneConversation,
    GoneMessage,
    MessageRow,
)
from desktop_agent.storage.search.searchable_text import (
    SearchableText,
    has_file_written,
    has_image,
    has_tool_call,
    is_note,
    plain_text,
    searchable_text,
)
from desktop_agent.storage.search.text_analysis import TOKENIZER, to_index_words
from desktop_agent.types.messages import Message

INDEX_NAME = "search.sqlite3"
FOUND_INDEX_NAME = "search-found.sqlite3"
"""Of conversations that other programs have on this disk; see `found_index`."""
FORMAT = 4
"""One more with every change of the tables or of how texts are split. An index of another format is made anew."""
HAS_IMAGE, HAS_TOOL_CALL, HAS_FILE_WRITTEN, IS_NOTE = 1, 2, 4, 8
_SHARD_BITS = 13
_PAGE_SIZE = 8192
"""Compressed texts fill larger pages better: 5 % less than with 4,096."""
_AUTOMERGE = 4
"""So many segments of a level are merged into one: FTS5's usual number."""
_TITLES = -1
"""In the place of a shard: the table of titles."""

_TITLES_TABLE = f"""CREATE VIRTUAL TABLE titles USING fts5(words, content='', tokenize="{TOKENIZER}");"""
_SHARD = """CREATE VIRTUAL TABLE IF NOT EXISTS words_{shard} USING fts5(
    text, calls, attachments, files, content='', tokenize="{tokenizer}")"""


class IndexUnusable(Exception):
    """The file is damaged, of another format, or none of ours: it is to be made anew."""


def connect_index(path: Path, mode: str) -> sqlite3.Connection:
    """Open the file; `mode` as in SQLite's URIs. Raises sqlite3.Error."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}",
        isolation_level=None,
        uri=True,
        # A search is interrupted from another thread.
        check_same_thread=False,
        # One statement for each table of words.
        cached_statements=1024,
    )
    return with_pragmas(connection, *SAFE_PRAGMAS, "cache_size=-16000")


def is_current(connection: sqlite3.Connection) -> bool:
    """Return whether this version can use the index. Raises sqlite3.Error."""
    return connection.execute("PRAGMA user_version").fetchone()[0] == FORMAT


def read_pieces(connection: sqlite3.Connection, number: int) -> sqlite3.Cursor:
    """Return the pieces of a message's text, for `SearchableText.from_blob`."""
    return connection.execute(
        "SELECT t.body FROM documents d JOIN texts t ON t.number BETWEEN d.text AND d.last_text WHERE d.number = ?"
        " ORDER BY t.number",
        (number,),
    )


def remove_index(path: Path) -> None:
    """Delete the file and its log. Raises OSError."""
    for suffix in ("-wal", "-shm", ""):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


class IndexWriter:
    """Writes the index; for one thread. All methods raise sqlite3.Error and OSError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.connection = self._open()
        """For tables beside those of the index too."""
        self._identity = file_identity(path)
        self._shards: set[int] = set()
        self.read_shards()

    def _open(self) -> sqlite3.Connection:
        with suppress(FileExistsError):
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        connection = connect_index(self._path, "mode=rw")
        try:
            for pragma in (f"page_size={_PAGE_SIZE}", "journal_mode=WAL", "synchronous=NORMAL", "secure_delete=ON"):
                connection.execute(f"PRAGMA {pragma}").fetchall()
            if connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0:
                # One transaction: half of the tables would be an index of another format.
                tables = f"{load_text(__name__, 'index.sql')}{_TITLES_TABLE}PRAGMA user_version={FORMAT};"
                connection.executescript(f"BEGIN IMMEDIATE;{tables}COMMIT;")
            if not is_current(connection):
                raise IndexUnusable  # noqa: TRY301
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    @property
    def has_its_name(self) -> bool:
        """Return whether the file that has the name is still this one."""
        return file_identity(self._path) == self._identity

    def read_shards(self) -> None:
        """Read which tables of words there are; to be repeated after a transaction that was rolled back."""
        self._shards = {row[0] for row in self.connection.execute("SELECT number FROM shards")}

    def belongs_to(self, token: str | None) -> bool:
        """Return whether the index is of the state of the database that has this token."""
        row = self.connection.execute("SELECT token, next_token FROM state").fetchone()
        return row is not None and token is not None and token in row

    @property
    def is_begun(self) -> bool:
        return self.connection.execute("SELECT 1 FROM state").fetchone() is not None

    def begin(self, token: str, conversations_below: int, messages_below: int) -> None:
        """Begin an empty index for the database with this token; all below these numbers is to be added."""
        self.connection.execute(
            "INSERT INTO state VALUES (1, ?, NULL, ?, ?)", (token, conversations_below, messages_below)
        )

    def rest(self) -> tuple[int, int]:
        """Return below which numbers conversations and messages are not in the index yet; 0 where all are."""
        row = self.connection.execute("SELECT conversations_below, messages_below FROM state").fetchone()
        return int(row[0]), int(row[1])

    def add_conversations(self, rows: Sequence[ConversationRow]) -> None:
        """Add the next conversations, newest first; none: all are added."""
        below = rows[-1].number if rows else 0
        with transaction(self.connection):
            self.connection.execute("UPDATE state SET conversations_below = ?", (below,))
            for row in reversed(rows):
                self.put_conversation(row)

    def add_messages(self, rows: Sequence[MessageRow]) -> None:
        """Add the next messages, newest first; none: all are added."""
        below = rows[-1].number if rows else 0
        with transaction(self.connection):
            self.connection.execute("UPDATE state SET messages_below = ?", (below,))
            # FTS5 writes a segment of its own for each number that is smaller than the one before.
            self._put_messages(reversed(rows))
            if not rows:
                self.mark_all_for_compaction()

    def apply(self, changes: Changes, next_token: str) -> None:
        """Apply changes. They are durable afterwards, so that the database may forget them."""
        self.connection.execute("PRAGMA synchronous=FULL")
        try:
            with transaction(self.connection):
                self.connection.execute("UPDATE state SET token = ?, next_token = ?", (changes.token, next_token))
                for row in changes.rows:
                    self._apply(row)
        finally:
            self.connection.execute("PRAGMA synchronous=NORMAL")

    def _apply(self, row: ChangedRow) -> None:
        match row:
            case MessageRow():
                self._put_messages([row])
            case ConversationRow():
                self.put_conversation(row)
            case GoneMessage(number):
                self._remove_messages([number])
            case GoneConversation(number):
                self.remove_conversation(number)

    def _put_messages(self, rows: Iterable[MessageRow]) -> None:
        for row in rows:
            before = self._remove_message(row.number)
            message = read_message(row.body, id_=row.id, role=row.role, state=row.state)
            text = self.add_message(row.number, row.conversation, _moment(row.created_at), message)
            # The number of a message that was deleted for good is given to the next one.
            if before is not None and not before.is_beginning_of(text):
                self._mark_for_compaction([row.number >> _SHARD_BITS])

    def add_message(self, number: int, conversation: int, at: int, message: Message) -> SearchableText:
        """Add a message under a new number, in the transaction of the caller; return what can be found of it.

        `at` is in microseconds since 1970.
        """
        text = searchable_text(message)
        flags = HAS_IMAGE * has_image(message) | HAS_TOOL_CALL * has_tool_call(message)
        flags |= HAS_FILE_WRITTEN * has_file_written(message)
        if not flags and not any(text.parts):
            return text
        flags |= IS_NOTE * is_note(message)
        model = None if message.model is None else plain_text(message.model)
        pieces = self._insert_text(number, text) if any(text.parts) else (None, None)
        self.connection.execute(
            "INSERT INTO documents (number, conversation, at, role, flags, text, last_text, model)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (number, conversation, at, message.role.value, flags, *pieces, model),
        )
        return text

    def _insert_text(self, number: int, text: SearchableText) -> tuple[int | None, int | None]:
        shard = number >> _SHARD_BITS
        if shard not in self._shards:
            self._create_table(shard)
            self._shards.add(shard)
            # Those beside it are full: one segment is looked through more quickly than several.
            self._mark_for_compaction(self._shards & {shard - 1, shard + 1})
        sql = f"INSERT INTO words_{shard} (rowid, text, calls, attachments, files) VALUES (?, ?, ?, ?, ?)"  # noqa: S608  a number
        self.connection.execute(sql, (number, *map(to_index_words, text.parts)))
        # SQLite gives each the number after the largest.
        pieces = [
            self.connection.execute("INSERT INTO texts (body) VALUES (?)", (blob,)).lastrowid
            for blob in text.to_blobs()
        ]
        return pieces[0], pieces[-1]

    def _create_table(self, shard: int) -> None:
        self.connection.execute(_SHARD.format(shard=shard, tokenizer=TOKENIZER))
        self.connection.execute("INSERT OR IGNORE INTO shards VALUES (?)", (shard,))
        if any(self.rest()):
            # It is filled at once and compacted then: merging its segments before would be done for nothing.
            self._set_automerge(f"words_{shard}", 0)

    def _set_automerge(self, table: str, segments: int) -> None:
        self.connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('automerge', ?)", (segments,))  # noqa: S608  a number

    def _remove_messages(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if self._remove_message(number) is not None:
                self._mark_for_compaction([number >> _SHARD_BITS])

    def _remove_message(self, number: int) -> SearchableText | None:
        """Remove a message and return its text; its words stay until the index is compacted."""
        rows = read_pieces(self.connection, number).fetchall()
        self.connection.execute(
            "DELETE FROM texts WHERE number BETWEEN (SELECT text FROM documents WHERE number = ?)"
            " AND (SELECT last_text FROM documents WHERE number = ?)",
            (number, number),
        )
        self.connection.execute("DELETE FROM documents WHERE number = ?", (number,))
        if not rows:
            return None
        shard, text = number >> _SHARD_BITS, SearchableText.from_blobs(row[0] for row in rows)
        self.connection.execute(
            f"INSERT INTO words_{shard} (words_{shard}, rowid, text, calls, attachments, files)"  # noqa: S608  a number
            " VALUES ('delete', ?, ?, ?, ?, ?)",
            (number, *map(to_index_words, text.parts)),
        )
        return text

    def put_conversation(self, row: ConversationRow) -> None:
        """Add or replace a conversation without its messages, in the transaction of the caller."""
        title = plain_text(row.title)
        self._put_title(row.number, title)
        self.connection.execute(
            "INSERT OR REPLACE INTO conversations (number, title, model, workspace, created_at, is_deleted, id)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                row.number,
                title,
                None if row.model is None else plain_text(row.model),
                None if row.workspace is None else plain_text(row.workspace),
                row.created_at,
                row.is_deleted,
                plain_text(row.id),
            ),
        )

    def _put_title(self, number: int, title: str) -> None:
        before = self._title(number)
        if before == title:
            return
        if before is not None:
            self._remove_title(number, before)
            # It was the beginning of a prompt that was deleted for good, or anything else that nobody may read.
            if not title.startswith(before):
                self._mark_for_compaction([_TITLES])
        self.connection.execute("INSERT INTO titles (rowid, words) VALUES (?, ?)", (number, to_index_words(title)))

    def remove_conversation(self, number: int) -> None:
        """Remove a conversation with its messages, in the transaction of the caller."""
        numbers = self.connection.execute("SELECT number FROM documents WHERE conversation = ?", (number,)).fetchall()
        self._remove_messages(row[0] for row in numbers)
        if (title := self._title(number)) is not None:
            self._remove_title(number, title)
        self.connection.execute("DELETE FROM conversations WHERE number = ?", (number,))
        self._mark_for_compaction([_TITLES])

    def _title(self, number: int) -> str | None:
        row = self.connection.execute("SELECT title FROM conversations WHERE number = ?", (number,)).fetchone()
        return None if row is None else row[0]

    def _remove_title(self, number: int, title: str) -> None:
        self.connection.execute(
            "INSERT INTO titles (titles, rowid, words) VALUES ('delete', ?, ?)", (number, to_index_words(title))
        )

    def mark_all_for_compaction(self) -> None:
        """Let each table become one segment, which is looked through more quickly than several."""
        self._mark_for_compaction([_TITLES, *self._shards])

    def _mark_for_compaction(self, shards: Iterable[int]) -> None:
        self.connection.executemany("INSERT OR IGNORE INTO compactions VALUES (?)", [(shard,) for shard in shards])

    @property
    def is_compact(self) -> bool:
        """Return whether no words of deleted messages are left, nor more segments than need be."""
        return self.connection.execute("SELECT 1 FROM compactions").fetchone() is None

    def compact_one(self) -> bool:
        """Compact one of the tables that need it; False where the log cannot be emptied, since somebody reads it."""
        row = self.connection.execute("SELECT shard FROM compactions ORDER BY shard DESC").fetchone()
        if row is None:
            return True
        table = "titles" if row[0] == _TITLES else f"words_{row[0]}"
        self.connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")  # noqa: S608  a number
        self._set_automerge(table, _AUTOMERGE)
        if self.connection.execute("SELECT count(*) FROM compactions").fetchone()[0] == 1:
            rewrite_if_small(self.connection)
        if self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            return False
        self.connection.execute("DELETE FROM compactions WHERE shard = ?", row)
        return True


def _moment(iso: str) -> int:
    try:
        return to_microseconds(datetime.fromisoformat(iso))
    except (ValueError, TypeError):  # carried over from a damaged page
        return 0
