"""The index of conversations that other programs have on this disk: a file of its own, of the same tables.

Beside these it has which conversation of which program each one is, and the ids of messages, since there is no database
to look them up in. Newer conversations have larger numbers, so that they are looked through first: each takes a block
of numbers above all others, or, while older ones are added, below them.
"""

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from desktop_agent.data_files import load_text
from desktop_agent.storage.connection import transaction
from desktop_agent.storage.conversation_rows import to_microseconds
from desktop_agent.storage.search.index_file import IndexWriter
from desktop_agent.storage.search.index_reader import FoundConversation, find_in
from desktop_agent.storage.search.outbox import ConversationRow
from desktop_agent.storage.search.query_plan import is_within
from desktop_agent.types.conversation_tree import ConversationOrigin
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.search import ConversationHits, SearchHit, SearchQuery

_FIRST = 1 << 40
"""The number of the first message that is ever added: there is room for others above and below."""

Origin = tuple[str, str]
"""A program, and the id of a conversation there."""


class IndexingStopped(Exception):
    """Something else is to be done first: whoever reads or writes for the index ends here."""


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """A conversation as its program's list has it. `index_id` is the id in queries and results.

    `changed` differs after each change of it.
    """

    origin: Origin
    index_id: str
    title: str
    created_at: datetime
    updated_at: datetime
    changed: str
    workspace: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class IndexedEntry:
    """What the index has of a conversation."""

    changed: str
    characters: int


class FoundIndexWriter(IndexWriter):
    """Writes the index; for one thread. All methods raise sqlite3.Error and OSError."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            self.connection.executescript(f"BEGIN IMMEDIATE;{load_text(__name__, 'found_index.sql')}COMMIT;")
            if not self.is_begun:
                self.begin("", 1, 0)
            low, high, newest = self.connection.execute(
                "SELECT min(number), max(number + size), max(updated_at) FROM origins"
            ).fetchone()
        except BaseException:
            self.close()
            raise
        self._low, self._high = low or _FIRST, high or _FIRST
        self._newest: int = newest or 0

    def indexed(self) -> dict[Origin, IndexedEntry]:
        """Return what is in the index."""
        rows = self.connection.execute("SELECT program, id, changed, characters FROM origins")
        return {(program, _id_of(id_)): IndexedEntry(changed, characters) for program, id_, changed, characters in rows}

    def put(self, entry: FoundEntry, messages: Sequence[Message], pause: Callable[[], None]) -> int:
        """Add a conversation, or put it in the place of its older state; return how many characters it has.

        `pause` is called after each message; what it raises leaves everything as it was.
        """
        try:
            with transaction(self.connection):
                return self._put(entry, messages, pause)
        except BaseException:
            self.read_shards()
            raise

    def _put(self, entry: FoundEntry, messages: Sequence[Message], pause: Callable[[], None]) -> int:
        size, updated = max(1, len(messages)), _microseconds(entry.updated_at)
        self._remove(entry.origin)
        number = self._take_numbers(size, updated)
        self.put_conversation(_row_of(number, entry))
        characters = 0
        for place, message in enumerate(messages, number):
            text = self.add_message(place, number, _microseconds(message.created_at), message)
            characters += sum(map(len, text.parts))
            pause()
        ids = ((place, message.id) for place, message in enumerate(messages, number))
        self.connection.executemany("INSERT INTO message_ids VALUES (?, ?)", ids)
        self.connection.execute(
            "INSERT INTO origins VALUES (?, ?, ?, ?, ?, ?, ?)",
            (number, size, entry.origin[0], _blob_of(entry.origin[1]), entry.changed, updated, characters),
        )
        return characters

    def remove(self, origins: Iterable[Origin]) -> None:
        """Remove these conversations. Their words are gone when the index is compact again."""
        with transaction(self.connection):
            for origin in origins:
                self._remove(origin)

    def note_progress(self, programs: Iterable[str], *, is_complete: bool) -> None:
        """Note which programs are in the index, and whether they are in it as a whole."""
        token, below = token_of(programs), 0 if is_complete else 1
        with transaction(self.connection):
            self.connection.execute(
                "UPDATE state SET token = ?, conversations_below = ? WHERE (token, conversations_below) <> (?, ?)",
                (token, below, token, below),
            )

    def _take_numbers(self, size: int, updated: int) -> int:
        if updated >= self._newest:
            number, self._high, self._newest = self._high, self._high + size, updated
            return number
        self._low -= size
        return self._low

    def _remove(self, origin: Origin) -> None:
        row = self.connection.execute(
            "SELECT number, size FROM origins WHERE program = ? AND id = ?", (origin[0], _blob_of(origin[1]))
        ).fetchone()
        if row is None:
            return
        number, size = row
        self.remove_conversation(number)
        self.connection.execute("DELETE FROM message_ids WHERE number >= ? AND number < ?", (number, number + size))
        self.connection.execute("DELETE FROM origins WHERE number = ?", (number,))


def token_of(programs: Iterable[str]) -> str:
    """Return the token of an index of these programs."""
    return " ".join(sorted(programs))


def _blob_of(id_: str) -> bytes:
    return id_.encode("utf-8", "surrogatepass")


def _id_of(blob: bytes) -> str:
    return blob.decode("utf-8", "surrogatepass")


def _row_of(number: int, entry: FoundEntry) -> ConversationRow:
    return ConversationRow(
        number=number,
        id=entry.index_id,
        title=entry.title,
        model=entry.model,
        workspace=entry.workspace,
        created_at=_microseconds(entry.created_at),
        is_deleted=False,
    )


def _microseconds(moment: datetime) -> int:
    return to_microseconds(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class FoundHits:
    """What was found, each with its score, the best first; `is_complete` as in SearchResults."""

    hits: tuple[tuple[float, ConversationHits], ...] = ()
    is_complete: bool = False
    has_more: bool = False


def find_hits(
    connection: sqlite3.Connection,
    query: SearchQuery,
    limit: int,
    is_stopped: Callable[[], bool],
    titles: Mapping[str, str],
    relevance: float,
) -> FoundHits:
    """Return the best conversations of the programs in `titles`, which has their names for people.

    `relevance` is that of the best own message; see `find_in`.
    Raises as IndexReader.find.
    """
    placed: list[int] = []
    if query.program is not None:
        rows = connection.execute("SELECT number FROM origins WHERE program = ?", (query.program,))
        placed = [row[0] for row in rows]
    found = find_in(connection, query, limit, is_stopped, placed, relevance)
    hits = [
        (conversation.score, _hits_of(connection, conversation, query, titles)) for conversation in found.conversations
    ]
    return FoundHits(
        tuple((score, hit) for score, hit in hits if hit is not None),
        found.is_complete and token_of(titles) in found.tokens,
        found.has_more,
    )


def _hits_of(
    connection: sqlite3.Connection, found: FoundConversation, query: SearchQuery, titles: Mapping[str, str]
) -> ConversationHits | None:
    row = connection.execute(
        "SELECT o.program, o.id, c.id, c.created_at, o.updated_at FROM origins o"
        " JOIN conversations c ON c.number = o.number WHERE o.number = ?",
        (found.number,),
    ).fetchone()
    # Of a program that was switched off a moment ago, nothing is shown.
    if row is None or row[0] not in titles:
        return None
    program, id_, index_id, created_at, updated_at = row
    if not found.messages and not is_within(created_at, updated_at, query):
        return None
    return ConversationHits(
        index_id,
        found.title,
        found.title_matches,
        tuple(_message_hits(connection, found)),
        found.count,
        ConversationOrigin(program=program, id=_id_of(id_)),
        titles[program],
    )


def _message_hits(connection: sqlite3.Connection, found: FoundConversation) -> Iterable[SearchHit]:
    sql = "SELECT i.id, d.role, d.at FROM message_ids i JOIN documents d ON d.number = i.number WHERE i.number = ?"
    for message in found.messages:
        with closing(connection.execute(sql, (message.number,))) as cursor:
            id_, role, at = cursor.fetchone()
        snippet = message.snippet
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)
        yield SearchHit(id_, Role(role), moment, snippet.place, snippet.text, snippet.matches, message.is_note)
