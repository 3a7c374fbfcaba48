"""A search in all conversations: what is asked, and what is found."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from desktop_agent.types.conversation_tree import ConversationOrigin
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Role

MatchRange = tuple[int, int]
"""The beginning and the end of a match, in characters of the text beside it."""


class SearchPlace(StrEnum):
    """Where words are looked for.

    CALLS: names, arguments and results of tool calls. FILES: the arguments of those that write files, which are found
    as CALLS too. ATTACHMENTS: their names.
    """

    TITLE = "title"
    TEXT = "text"
    CALLS = "calls"
    ATTACHMENTS = "attachments"
    FILES = "files"


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What a person looks for.

    All words of `text` must be in one message, or in one title; words in double quotes must follow one another. The
    last word is a prefix unless a space ends it; with only one or two letters beside other words it need not be there,
    but counts where it is a word. Every other field narrows the search, and empty ones do not; without `text`
    the newest messages that pass are found, in FILES alone those that wrote any. `since` is included, `until` is not.
    `roles` are those who said it; a note of the program was said by nobody.
    `model` is the one that answered or, for other messages, that of the conversation. `workspace` is exact. `folder` is
    the id of one; what is in folders within it is found, too. `program`: only what that other assistant left on this
    disk, by its stable word. Conversations of other programs are in no folder, and have no tags.
    """

    text: str = ""
    since: datetime | None = None
    until: datetime | None = None
    model: str | None = None
    workspace: str | None = None
    conversation_id: str | None = None
    roles: frozenset[Role] = frozenset()
    places: frozenset[SearchPlace] = frozenset()
    has_image: bool = False
    has_tool_call: bool = False
    folder: str | None = None
    tag: str | None = None
    program: str | None = None


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A message that was found. `snippet` is a line of it, `matches` are the ranges in it that were looked for.

    `is_note`: nobody said it; the program put it there, such as what was undone, or where a merged conversation begins.
    """

    message_id: str
    role: Role
    at: datetime
    place: SearchPlace
    snippet: str
    matches: tuple[MatchRange, ...] = ()
    is_note: bool = False


@dataclass(frozen=True, slots=True)
class ConversationHits:
    """A conversation with its best hits, the best first, of `hit_count` messages that were found in it.

    Where only the title was found there are none. No more than 50 are counted, unless the search is within it.
    One that another program has on this disk has an `origin`, and the name of that program for people.
    """

    conversation_id: str
    title: str
    title_matches: tuple[MatchRange, ...] = ()
    hits: tuple[SearchHit, ...] = ()
    hit_count: int = 0
    origin: ConversationOrigin | None = None
    program_title: str = ""


@dataclass(frozen=True, slots=True)
class SearchResults:
    """The conversations in which something was found, the best first.

    `is_complete` is False while not every message is in the index. `obstacle` says why that stays so, where something
    is in the way. `has_more`: there are older messages, or further conversations, beyond the limits.
    `is_cut`: the time limit passed before the older messages were searched.
    """

    conversations: tuple[ConversationHits, ...] = ()
    is_complete: bool = True
    has_more: bool = False
    obstacle: Sentence | None = None
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class SearchChoices:
    """What a search can be narrowed to: models and workspaces, the last used first; tags; folders of conversations;
    and other assistants.

    `folders` has the id and the path of each, in the order of the paths. `programs` has the stable word and the name of
    each assistant whose conversations are searched.
    """

    models: tuple[str, ...] = ()
    workspaces: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    folders: tuple[tuple[str, tuple[str, ...]], ...] = ()
    programs: tuple[tuple[str, str], ...] = ()
