"""What FTS5 and SQLite are asked for a query."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from desktop_agent.storage.conversation_rows import to_microseconds
from desktop_agent.storage.search.index_file import HAS_FILE_WRITTEN, HAS_IMAGE, HAS_TOOL_CALL, IS_NOTE
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
    """What FTS5 is asked: what is ranked, and what must match as well but says nothing about the rank.

    What matches `whole` has the last word as it was typed, which counts.
    """

    match: str
    also: str | None
    whole: str | None
    is_ranked: bool

    @classmethod
    def of(cls, terms: Sequence[Term], places: frozenset[SearchPlace]) -> "MatchPlan":
        """Return the plan for some terms; no places: all of them."""
        columns = " ".join(dict.fromkeys(name for place in _COLUMNS if place in places for name in _COLUMNS[place]))
        within = f"{{{columns}}} : " if columns else ""
        match = f"{within}({' AND '.join(map(match_of, terms))})"
        *others, last = terms
        is_word = not is_unspaced(last.pieces[-1])
        begun = [Term(last.pieces[:-1])] if len(last.pieces) > 1 else []
        if not last.is_open or not (others or begun):
            return cls(match, None, None, is_ranked=not is_short_beginning(last))
        # To rank by a beginning FTS5 gathers all words with it once more; the word itself says more and costs little.
        needed = " AND ".join(map(match_of, (*others, *begun)))
        return cls(
            f"{within}({needed})",
            None if is_short_beginning(last) else match,
            f"{within}({needed} AND {match_of(Term(last.pieces))})" if is_word else None,
            is_ranked=True,
        )


def is_short_beginning(term: Term) -> bool:
    """Return whether its last word may go on and is so short that nearly every message has one that begins so."""
    return term.is_open and not is_unspaced(term.pieces[-1]) and len(term.pieces[-1]) <= _SHORT


def match_of(term: Term) -> str:
    """Return what matches a term."""
    # Tokens have letters and digits alone, so that no quotes are among them.
    spellings = [f'"{" ".join(tokens)}"{" *" if term.is_open else ""}' for tokens in term.spellings]
    return spellings[0] if len(spellings) == 1 else f"({' OR '.join(spellings)})"


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
    return query.folder is not None or query.tag is not None or query.program is not None


def is_within(created_at: int, updated_at: int, query: SearchQuery) -> bool:
    """Return whether the conversation was under way in the time asked for."""
    is_after = query.since is None or updated_at >= to_microseconds(query.since)
    return is_after and (query.until is None or created_at < to_microseconds(query.until))


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
        conditions.append(f"d.role IN ({', '.join('?' * len(query.roles))}) AND NOT d.flags & {IS_NOTE}")
        values += sorted(query.roles)
    in_files = query.places == frozenset({SearchPlace.FILES})
    flags = {HAS_IMAGE: query.has_image, HAS_TOOL_CALL: query.has_tool_call, HAS_FILE_WRITTEN: in_files}
    conditions += [f"d.flags & {flag}" for flag, is_wanted in flags.items() if is_wanted]
    return " AND ".join(conditions), values
