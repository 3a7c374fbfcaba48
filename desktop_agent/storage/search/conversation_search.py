"""The search in all conversations, for the event loop."""

import asyncio
import json
import logging
import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from desktop_agent.processes.worker_threads import WorkerThread
from desktop_agent.storage.connection import DatabaseConnection, RunInDatabase, is_damage, text_of
from desktop_agent.storage.folder_rows import conversations_in, read_folders, read_tags
from desktop_agent.storage.search import outbox
from desktop_agent.storage.search.found_index import FoundHits, find_hits
from desktop_agent.storage.search.found_indexer import FoundIndexer
from desktop_agent.storage.search.index_file import FOUND_INDEX_NAME, INDEX_NAME
from desktop_agent.storage.search.index_reader import Found, FoundConversation, FoundMessage, IndexReader, SearchStopped
from desktop_agent.storage.search.indexer import Indexer
from desktop_agent.storage.search.query_plan import is_placed, is_within
from desktop_agent.storage.search.searchable_text import plain_text
from desktop_agent.types.folders import folder_paths
from desktop_agent.types.messages import Role
from desktop_agent.types.search import ConversationHits, SearchChoices, SearchHit, SearchQuery, SearchResults

_log = logging.getLogger(__name__)
T = TypeVar("T")
_MAX_CHOICES = 40
_NUMBERS = "number IN (SELECT value FROM json_each(?))"
# "+" keeps SQLite from reading the whole index of conversations that are not deleted.
_SELECT_CONVERSATIONS = (
    f"SELECT number, id, title, created_at, updated_at FROM conversations WHERE {_NUMBERS} AND +deleted_at IS NULL"  # noqa: S608  a constant
)
_SELECT_MESSAGES = f"SELECT number, id, role, created_at, conversation FROM messages WHERE {_NUMBERS}"  # noqa: S608  a constant


class ConversationSearch:
    """Finds messages and titles. `run` runs work in the database, and raises StorageFailed."""

    def __init__(self, folder: Path, run: RunInDatabase) -> None:
        self._run = run
        self._path = folder / INDEX_NAME
        self._reader = IndexReader(self._path)
        self._indexer = Indexer(folder, run)
        self._found_reader = IndexReader(folder / FOUND_INDEX_NAME)
        self.found = FoundIndexer(folder, self._close_found_reader)
        """The indexer of other programs' conversations."""
        self._worker: WorkerThread | None = None
        self._newest = 0
        """The number of the newest search; older ones stop."""

    def start_indexing(self) -> None:
        """Make the index and keep it up to date, in the background. Harmless when repeated."""
        self._indexer.start()

    def notice_change(self) -> None:
        """Index what was written, soon; nothing where no index is kept."""
        self._indexer.wake()

    def notice_deletion(self) -> None:
        """Remove from the index what was deleted for good, also where indexing was not started."""
        if self._path.exists():
            self._indexer.start()
        self._indexer.wake()

    async def index_all(self) -> bool:
        """Index all there is at once; False where that cannot be, as when another process is at it."""
        return await self._indexer.catch_up()

    async def find(self, query: SearchQuery, limit: int = 30, *, seconds: float | None = None) -> SearchResults | None:
        """Return up to `limit` conversations; None when a newer search has taken the place of this one.

        After about so many `seconds` what the newer messages have is returned, `is_cut`, once there is anything.
        Whatever is wrong with the index, less is found. Raises StorageFailed where the database cannot be read.
        """
        self._newest += 1
        number = self._newest
        self._interrupt()
        self._indexer.start()
        self._indexer.wake()
        self.found.notice_search()
        try:
            own = await self._find(query, limit, number, seconds)
            others = await self._find_others(query, limit, number, own.relevance)
        except asyncio.CancelledError:
            self._newest += number == self._newest
            self._interrupt()
            raise
        if number != self._newest:
            return None
        known = frozenset(self._indexer.known_tokens)
        results = await self._run(lambda db: _resolve(db, own, others, query, limit, known))
        if results.is_complete:
            return results
        return replace(results, obstacle=self._indexer.obstacle or self.found.obstacle)

    async def choices(self) -> SearchChoices:
        """Return what a search can be narrowed to. Raises StorageFailed."""
        choices = await self._run(_read_choices)
        return replace(choices, programs=tuple(self.found.titles.items()))

    async def close(self) -> None:
        """Stop searching and indexing. Harmless when repeated."""
        self._newest += 1
        self._interrupt()
        if self._worker is not None:
            await self._worker.run(self._reader.close)
            await self._close_found_reader()
            self._worker.stop()
            self._worker = None
        # Last: whoever only reads cannot delete the log.
        await self._indexer.close()
        await self.found.close()

    async def _close_found_reader(self) -> None:
        if self._worker is not None:
            await self._worker.run(self._found_reader.close)

    def _interrupt(self) -> None:
        self._reader.interrupt()
        self._found_reader.interrupt()

    async def _find(self, query: SearchQuery, limit: int, number: int, seconds: float | None) -> Found:
        placed: tuple[int, ...] = ()
        if query.program is None and is_placed(query):
            placed = await self._run(lambda db: conversations_in(db, query.folder, query.tag))
        return await self._read(
            lambda: self._reader.find(query, limit, lambda: number != self._newest, placed, seconds),
            Found(),
            number,
            self._indexer.distrust,
        )

    async def _find_others(self, query: SearchQuery, limit: int, number: int, relevance: float) -> FoundHits:
        titles = self.found.titles
        if not titles or query.folder is not None or query.tag is not None:
            return FoundHits(is_complete=True)

        def find() -> FoundHits | None:
            return self._found_reader.read(
                lambda connection: find_hits(
                    connection, query, limit, lambda: number != self._newest, titles, relevance
                )
            )

        return await self._read(find, None, number, self.found.distrust) or FoundHits()

    async def _read(self, work: Callable[[], T], otherwise: T, number: int, distrust: Callable[[], None]) -> T:
        """Return what is read from an index in its thread, or `otherwise`, whatever is wrong with it."""
        if self._worker is None:
            self._worker = WorkerThread("search")
        try:
            return await self._worker.run(work)
        except (SearchStopped, sqlite3.Error, ValueError, zlib.error) as error:
            if number == self._newest:
                _log.warning("a search index could not be read: %s", type(error).__name__)
                if not isinstance(error, sqlite3.Error) or is_damage(error):
                    distrust()
            return otherwise


def _read_choices(connection: DatabaseConnection) -> SearchChoices:
    folders = sorted(folder_paths(read_folders(connection)).items(), key=lambda entry: entry[1])
    return SearchChoices(
        _last_used(connection, "model"), _last_used(connection, "workspace"), read_tags(connection), tuple(folders)
    )


def _last_used(connection: DatabaseConnection, column: Literal["model", "workspace"]) -> tuple[str, ...]:
    sql = (
        f"SELECT {column} FROM conversations WHERE deleted_at IS NULL AND {column} <> ''"  # noqa: S608  one of two constants
        f" GROUP BY {column} ORDER BY max(updated_at) DESC LIMIT {_MAX_CHOICES}"
    )
    return tuple(text_of(row[0]) for row in connection.execute(sql))


def _resolve(
    connection: DatabaseConnection,
    own: Found,
    others: FoundHits,
    query: SearchQuery,
    limit: int,
    known_tokens: Collection[str | None],
) -> SearchResults:
    """Return the best of both, own ones as they are now in the database; what is deleted by now is left out."""
    scored, is_complete, has_more = list(others.hits), others.is_complete, own.has_more or others.has_more
    token = outbox.read_token(connection)
    if token is None or {token, *known_tokens}.isdisjoint(own.tokens):
        # Of another database.
        is_complete, has_more = False, others.has_more
    else:
        is_behind = connection.execute("SELECT 1 FROM search_changes LIMIT 1").fetchone() is not None
        is_complete = is_complete and own.is_complete and not is_behind
        scored += _current_hits(connection, own.conversations, query)
    scored.sort(key=lambda entry: -entry[0])
    shown = tuple(hits for _, hits in scored[:limit])
    return SearchResults(shown, is_complete, has_more or len(scored) > limit, is_cut=own.is_cut)


def _current_hits(
    connection: DatabaseConnection, found: Sequence[FoundConversation], query: SearchQuery
) -> Iterator[tuple[float, ConversationHits]]:
    """Yield what was found with its score, as it is now in the database."""
    conversations = _rows_by_number(connection, _SELECT_CONVERSATIONS, [conversation.number for conversation in found])
    messages = _rows_by_number(
        connection, _SELECT_MESSAGES, [message.number for conversation in found for message in conversation.messages]
    )
    for conversation in found:
        row = conversations.get(conversation.number)
        if row is None:
            continue
        hits = tuple(
            _hit(message, *messages[message.number][:3])
            for message in conversation.messages
            if message.number in messages and messages[message.number][3] == conversation.number
        )
        id_, title, created_at, updated_at = text_of(row[0]), text_of(row[1]), row[2], row[3]
        # Renamed since it was indexed: the matches are of the older title.
        matches = conversation.title_matches if plain_text(title) == conversation.title else ()
        if hits or (matches and is_within(created_at, updated_at, query)):
            count = conversation.count - len(conversation.messages) + len(hits)
            yield conversation.score, ConversationHits(id_, title, matches, hits, count)


def _rows_by_number(connection: DatabaseConnection, select: str, numbers: Sequence[int]) -> dict[int, tuple[Any, ...]]:
    """Return the other columns of each row by its first, the number. One statement is quicker than one for each row."""
    return {row[0]: row[1:] for row in connection.execute(select, (json.dumps(numbers),))}


def _hit(found: FoundMessage, id_: Any, role: Any, created_at: Any) -> SearchHit:
    word = text_of(role)
    return SearchHit(
        text_of(id_),
        Role(word) if word in set(Role) else Role.ASSISTANT,
        _moment(text_of(created_at)),
        found.snippet.place,
        found.snippet.text,
        found.snippet.matches,
        found.is_note,
    )


def _moment(iso: str) -> datetime:
    try:
        return datetime.fromisoformat(iso)
    except ValueError:  # carried over from a damaged page
        return datetime.fromtimestamp(0, UTC)
