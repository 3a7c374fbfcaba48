"""Reads the search index: newest messages first, table by table, until there is enough to rank."""

import math
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

from desktop_agent.storage.locks.open_files import FileIdentity, file_identity
from desktop_agent.storage.search.index_file import IS_NOTE, connect_index, is_current, read_pieces
from desktop_agent.storage.search.query_plan import (
    MatchPlan,
    conversation_filter,
    is_placed,
    is_short_beginning,
    match_of,
    message_filter,
)
from desktop_agent.storage.search.searchable_text import SearchableText
from desktop_agent.storage.search.snippets import NO_SNIPPET, Snippet, find_matches, make_snippet
from desktop_agent.storage.search.text_analysis import Term, parse_query, to_index_words, token_pattern
from desktop_agent.types.search import MatchRange, SearchPlace, SearchQuery

T = TypeVar("T")

MAX_RANKED = 500
"""So many messages are ranked, the newest that match. Whoever looks for older ones narrows the search."""
_MAX_OF_ONE = 50
"""So many of one conversation, so that others are found beside it."""
_MAX_SEEN = 5000
_MAX_TITLES = 200
_TITLES_TRIED = 250
_MIN_TITLES_BEGUN = 50
"""Of the newest titles tried. Where fewer have the beginning, few words have it, which FTS5 gathers quickly."""
_MAX_LISTED_HITS = 3
"""Of one conversation, unless the search is within it."""

_WEIGHTS = "1.0, 0.4, 1.0, 0.6"
"""Of the columns: results of tools are long, and mostly not what is looked for."""
_WHOLE_WORD = 2.0
"""Added where the last word is there as it was typed: what SQLite gives to a word that every tenth message has."""
_TITLE_WEIGHT = 3.0
_DAY = 86_400_000_000
_RECENT_DAYS = 60


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """A message by its numbers. `at` is in microseconds since 1970. Those that are shown have a `snippet`."""

    number: int
    conversation: int
    at: int
    score: float
    is_note: bool = False
    snippet: Snippet = NO_SNIPPET


@dataclass(frozen=True, slots=True)
class FoundConversation:
    """A conversation by its number, with the best of `count` messages."""

    number: int
    title: str
    title_matches: tuple[MatchRange, ...]
    messages: tuple[FoundMessage, ...]
    count: int
    score: float


@dataclass(frozen=True, slots=True)
class Found:
    """What the index has, the best first. `tokens` say of which states of the database it is.

    `relevance` is that of the best message, whenever it was written. `is_cut`: the time was over before the oldest
    messages were looked through.
    """

    tokens: tuple[str | None, ...] = ()
    is_complete: bool = False
    has_more: bool = False
    is_cut: bool = False
    conversations: tuple[FoundConversation, ...] = ()
    relevance: float = 0.0


class SearchStopped(Exception):
    """A newer search has taken the place of this one."""


class IndexReader:
    """Reads the index; `find` is for one thread, `interrupt` for any."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mutex = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._identity: FileIdentity = None

    def find(
        self,
        query: SearchQuery,
        limit: int,
        is_stopped: Callable[[], bool],
        placed: Iterable[int] = (),
        seconds: float | None = None,
    ) -> Found:
        """Return the best conversations; nothing where there is no index.

        `placed` are the numbers of conversations in the folder and with the tag that the query asks for. After so many
        `seconds`, and once there is anything, older messages are not looked through.
        Raises SearchStopped; sqlite3.Error where the index is damaged, or the search was interrupted.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        return (
            self.read(lambda connection: find_in(connection, query, limit, is_stopped, placed, deadline=deadline))
            or Found()
        )

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Return what `work` reads in one state of the index; None where there is no index. Raises as `find`."""
        connection = self._current_connection()
        if connection is None:
            return None
        connection.execute("BEGIN")
        try:
            return work(connection)
        finally:
            if connection.in_transaction:
                connection.execute("COMMIT")

    def interrupt(self) -> None:
        """Let a search under way end with an error."""
        with self._mutex:
            if self._connection is not None:
                self._connection.interrupt()

    def close(self) -> None:
        """Close the file. Harmless when repeated."""
        with self._mutex:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _current_connection(self) -> sqlite3.Connection | None:
        """Return a connection to the file that has the name now."""
        with suppress(OSError):
            identity = file_identity(self._path)
            if self._connection is not None and identity == self._identity:
                return self._connection
            self.close()
            if identity is not None:
                connection = self._open()
                with self._mutex:
                    self._connection, self._identity = connection, identity
        return self._connection

    def _open(self) -> sqlite3.Connection | None:
        log = self._path.with_name(f"{self._path.name}-wal")
        # In a folder that cannot be written a log can be read by nobody; without one the file is whole.
        modes = ("mode=ro",) if log.exists() and log.stat().st_size else ("mode=ro", "immutable=1")
        for mode in modes:
            with suppress(sqlite3.OperationalError):
                connection = connect_index(self._path, mode)
                if is_current(connection):
                    return connection
                connection.close()
                return None
        return None


def _write_placed(connection: sqlite3.Connection, numbers: Iterable[int]) -> None:
    """Write the numbers into a table that is in memory and this connection's alone."""
    connection.execute("CREATE TABLE IF NOT EXISTS temp.placed (number INTEGER PRIMARY KEY)")
    connection.execute("DELETE FROM temp.placed")
    connection.executemany("INSERT INTO temp.placed VALUES (?)", ((number,) for number in numbers))


def find_in(
    connection: sqlite3.Connection,
    query: SearchQuery,
    limit: int,
    is_stopped: Callable[[], bool],
    placed: Iterable[int] = (),
    relevance: float = 0.0,
    deadline: float | None = None,
) -> Found:
    """Return what `IndexReader.find` does, in the transaction of the caller; `deadline` is of `time.monotonic`.

    `relevance`: that of the best message in another index, which the best one here gets too. SQLite's measure depends
    on how many messages of an index have a word, so those of two indexes say nothing about each other.
    """
    if is_placed(query):
        _write_placed(connection, placed)
    state = connection.execute(
        "SELECT token, next_token, max(conversations_below, messages_below) FROM state"
    ).fetchone()
    if state is None:
        return Found()
    found = _Search(connection, query, limit, is_stopped, relevance, deadline).run()
    return replace(found, tokens=state[:2], is_complete=state[2] == 0)


class _Search:
    """One search, in the transaction of the caller."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        query: SearchQuery,
        limit: int,
        is_stopped: Callable[[], bool],
        relevance: float,
        deadline: float | None,
    ) -> None:
        self._connection = connection
        self._query = query
        self._limit = limit
        # Those with a short beginning have no rank: only their age decides which are shown.
        self._most_titles = min(_MAX_TITLES, 2 * limit)
        self._is_stopped = is_stopped
        self._relevance = relevance
        self._best = 0.0
        self._deadline = deadline
        self._conversations = 0
        self._is_cut = False
        self._terms = parse_query(query.text)
        self._filter, self._values = message_filter(query)

    def run(self) -> Found:
        if self._query.text.strip() and not self._terms:
            return Found()
        groups, has_more = self._groups()
        if self._relevance and self._best:
            scale = self._relevance / self._best
            groups = {n: [replace(m, score=m.score * scale) for m in group] for n, group in groups.items()}
        titles = dict(self._titles())
        if self._terms:
            for group in groups.values():
                group.sort(key=lambda message: -message.score)
        scores = {
            number: _group_score(groups.get(number, ())) + titles.get(number, 0.0)
            for number in dict.fromkeys((*groups, *titles))
        }
        best = sorted(scores, key=lambda number: -scores[number])
        shown = tuple(self._shown(number, groups.get(number, []), scores[number]) for number in best[: self._limit])
        has_more = has_more or len(titles) >= self._most_titles or len(best) > self._limit
        return Found(has_more=has_more, is_cut=self._is_cut, conversations=shown, relevance=self._best)

    def _shown(self, number: int, messages: Sequence[FoundMessage], score: float) -> FoundConversation:
        if self._is_stopped():
            raise SearchStopped
        (title,) = self._connection.execute("SELECT title FROM conversations WHERE number = ?", (number,)).fetchone()
        most = _MAX_LISTED_HITS if self._query.conversation_id is None else self._limit
        with_snippets = tuple(replace(message, snippet=self._snippet(message.number)) for message in messages[:most])
        return FoundConversation(number, title, find_matches(title, self._terms), with_snippets, len(messages), score)

    def _snippet(self, number: int) -> Snippet:
        with closing(read_pieces(self._connection, number)) as rows:
            return make_snippet(self._pieces(rows), self._terms, self._query.places)

    def _pieces(self, rows: Iterable[tuple[bytes]]) -> Iterator[SearchableText]:
        for (body,) in rows:
            if self._is_stopped():
                raise SearchStopped
            yield SearchableText.from_blob(body)

    def _groups(self) -> tuple[dict[int, list[FoundMessage]], bool]:
        """Return the newest messages that match, by conversation, and whether there may be more."""
        groups: dict[int, list[FoundMessage]] = {}
        if self._query.places == frozenset((SearchPlace.TITLE,)):
            return groups, False
        today = time.time() * 1_000_000
        most = _MAX_OF_ONE if self._query.conversation_id is None else MAX_RANKED
        room = MAX_RANKED
        has_more = False
        for count, (number, conversation, at, rank, flags) in enumerate(self._rows(), 1):
            if room == 0 or count > _MAX_SEEN:
                return groups, True
            group = groups.setdefault(conversation, [])
            if len(group) == most:
                has_more = True
                continue
            room -= 1
            self._conversations = len(groups)
            self._best = max(self._best, -rank)
            score = -rank * _recency(at, today) if self._terms else 0.0
            group.append(FoundMessage(number, conversation, at, score, is_note=bool(flags & IS_NOTE)))
        return groups, has_more

    def _rows(self) -> Iterator[tuple[int, int, int, float, int]]:
        if not self._terms:
            yield from self._connection.execute(
                "SELECT d.number, d.conversation, d.at, 0.0, d.flags FROM documents d"  # noqa: S608  constants
                f" CROSS JOIN conversations c ON c.number = d.conversation WHERE {self._filter}"
                " ORDER BY d.number DESC",
                self._values,
            )
            return
        plan = MatchPlan.of(self._terms, self._query.places)
        for (shard,) in self._connection.execute("SELECT number FROM shards ORDER BY number DESC").fetchall():
            if self._is_stopped():
                raise SearchStopped
            if self._conversations and self._deadline is not None and time.monotonic() > self._deadline:
                self._is_cut = True
                return
            if not plan.is_ranked and self._conversations > self._limit:
                # Only their age decides which are shown, and gathering all that begins so takes long in each table.
                return
            yield from self._shard_rows(f"words_{shard}", plan)

    def _shard_rows(self, table: str, plan: MatchPlan) -> Iterator[tuple[int, int, int, float, int]]:
        # One statement for all plans: preparing one takes as long as a rare word's rows in its table.
        matching = f"{table}.rowid IN (SELECT rowid FROM {table} WHERE {table} MATCH ?)"  # noqa: S608  a number
        yield from self._connection.execute(
            f"SELECT {table}.rowid, d.conversation, d.at,"  # noqa: S608  numbers and constants
            f" iif(?, bm25({table}, {_WEIGHTS}), -1.0) - iif(? IS NULL, 0.0, {_WHOLE_WORD} * ({matching})), d.flags"
            f" FROM {table} CROSS JOIN documents d ON d.number = {table}.rowid"
            " CROSS JOIN conversations c ON c.number = d.conversation"
            # All words with a beginning are gathered at once, and only where the rest matches: "+".
            f" WHERE {table} MATCH ? AND (? IS NULL OR +{matching}) AND {self._filter} ORDER BY {table}.rowid DESC",
            (plan.is_ranked, plan.whole, plan.whole, plan.match, plan.also, plan.also, *self._values),
        )

    def _titles(self) -> Iterator[tuple[int, float]]:
        query = self._query
        is_of_messages = query.roles or query.has_image or query.has_tool_call
        if not self._terms or is_of_messages or (query.places and SearchPlace.TITLE not in query.places):
            return
        rows = self._begun_titles()
        if rows is None:
            rows = [row[:3] for row in islice(self._title_rows(self._terms), _MAX_TITLES)]
        today = time.time() * 1_000_000
        for number, rank, at in rows:
            # SQLite's measure is about nothing for words that most titles have.
            yield number, _TITLE_WEIGHT * (1 - rank) * _recency(at, today)

    def _title_rows(self, terms: Sequence[Term]) -> Iterator[tuple[int, float, int, str]]:
        """Yield the number, rank, time and text of the titles with these terms, newest first."""
        conditions, values = conversation_filter(self._query)
        if terms:
            yield from self._connection.execute(
                "SELECT titles.rowid, bm25(titles), c.created_at, c.title FROM titles"  # noqa: S608  constants
                " CROSS JOIN conversations c ON c.number = titles.rowid"
                f" WHERE titles MATCH ? AND {conditions} ORDER BY titles.rowid DESC",
                (" AND ".join(map(match_of, terms)), *values),
            )
            return
        yield from self._connection.execute(
            "SELECT c.number, 0.0, c.created_at, c.title FROM conversations c"  # noqa: S608  constants
            f" WHERE {conditions} ORDER BY c.number DESC",
            values,
        )

    def _begun_titles(self) -> list[tuple[int, float, int]] | None:
        """Return the newest titles with a short beginning of a word, which is looked for in each of them.

        FTS5 would gather all words with it of all titles. None where it is to do that.
        """
        *others, last = self._terms
        if not is_short_beginning(last):
            return None
        if len(last.pieces) > 1:
            others.append(Term(last.pieces[:-1]))
        pattern = token_pattern(last)
        begun: list[tuple[int, float, int]] = []
        for tried, (number, rank, at, title) in enumerate(self._title_rows(others)):
            if tried == _TITLES_TRIED and len(begun) < _MIN_TITLES_BEGUN:
                return None
            if pattern.search(to_index_words(title)):
                begun.append((number, rank, at))
                if len(begun) == self._most_titles:
                    break
        return begun


def _group_score(messages: Sequence[FoundMessage]) -> float:
    return max((message.score for message in messages), default=0.0) + 0.1 * math.log1p(len(messages))


def _recency(at: int, today: float) -> float:
    """Return 2 for now, 1.5 for two months ago, and down to 1."""
    return 1 + 1 / (1 + max(0.0, today - at) / _DAY / _RECENT_DAYS)
