"""What FTS5 and SQLite are asked for a query."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from desktop_agent.storage.conversation_rows import to_microseconds
from desktop_agent.storage.search.index_file import HAS_FILE_WRITTEN, HAS_IMAGE, HAS_TOOL_CALL
from desktop_agent.storage.search.searchable_text import plain_text
from desktop_agent.storage.search.text_analysis import Term, is_unspaced
from desktop_agent.types.search import SearchPlace, SearchQuery

_SHORT = 2
"""A beginning of a word so short says nothing beside other words, and nearly every message has one like it."""
_COLUMNS = {
    SearchPlace.TEXT: ("text",),
    SearchPlace.CALLS: ("calls", "files"),
    SearchPlace.ATTACHMENTS: ("attachments",),
    SearchPlace.FILES: ("files",),
}


@dataclass(frozen=True, slots=True)
class MatchPlan:
    """What FTS5 is asked. `gate`: what must match as well, asked before where that saves time."""

    match: str
    gate: str | None
    is_ranked: bool

    @classmethod
    def of(cls, terms: Sequence[Term], places: frozenset[SearchPlace]) -> "MatchPlan":
        """Return the plan for some terms; no places: all of them."""
        columns = " ".join(dict.fromkeys(name for place in _COLUMNS if place in places for name in _COLUMNS[place]))
        within = f"{{{columns}}} : " if columns else ""
        *others, last = terms
        is_short = last.is_open and len(last.tokens[-1]) <= _SHORT and not is_unspaced(last.pieces[-1])
        if is_short and (others or len(last.pieces) > 1):
            return cls._with_short_end(others, last, within)
        match = " AND ".join(map(match_of, terms))
        gate = f"{within}({' AND '.join(map(match_of, others))})" if others and last.is_open else None
        return cls(f"{within}({match})", gate, is_ranked=not is_short)

    @classmethod
    def _with_short_end(cls, others: Sequence[Term], last: Term, within: str) -> "MatchPlan":
        """Take the short end as a word that need not be there, but counts where it is."""
        begun = [Term(last.pieces[:-1])] if len(last.pieces) > 1 else []
        needed = " AND ".join(map(match_of, (*others, *begun)))
        return cls(f"{within}(({needed}) OR ({needed} AND {match_of(Term(last.pieces))}))", None, is_ranked=True)


def match_of(term: Term) -> str:
    """Return what matches a term."""
    # Tokens have letters and digits alone, so that no quotes are among them.
    return f'"{" ".join(term.tokens)}"{" *" if term.is_open else ""}'


def conversation_filter(query: SearchQuery) -> tuple[str, list[Any]]:
    """Return the condition on a conversation `c`, and its values."""
    values = {"c.workspace": query.workspace, "c.id": query.conversation_id, "c.model": query.model}
    given = {column: plain_text(value) for column, value in values.items() if value is not None}
    conditions = ["c.is_deleted = 0", *(f"{column} = ?" for column in given)]
    if is_placed(query):
        conditions.append("c.number IN temp.placed")
    return " AND ".join(conditions), list(given.values())


def is_placed(query: SearchQuery) -> bool:
    """Return whether the query asks for places that the index does not know: their numbers are in `temp.placed`."""
    return query.folder is not None or query.tag is not None


def message_filter(query: SearchQuery) -> tuple[str, list[Any]]:
    """Return the condition on a message `d` and its conversation `c`, and its values."""
    first, values = conversation_filter(replace(query, model=None))
    conditions = [first]
    moments = {"d.at >= ?": query.since, "d.at < ?": query.until}
    for condition, moment in moments.items():
        if moment is not None:
            conditions.append(condition)
            values.append(to_microseconds(moment))
    if query.model is not None:
        conditions.append("coalesce(d.model, c.model) = ?")
        values.append(plain_text(query.model))
    if query.roles:
        conditions.append(f"d.role IN ({', '.join('?' * len(query.roles))})")
        values += sorted(query.roles)
    in_files = query.places == frozenset({SearchPlace.FILES})
    flags = {HAS_IMAGE: query.has_image, HAS_TOOL_CALL: query.has_tool_call, HAS_FILE_WRITTEN: in_files}
    conditions += [f"d.flags & {flag}" for flag, is_wanted in flags.items() if is_wanted]
    return " AND ".join(conditions), values
