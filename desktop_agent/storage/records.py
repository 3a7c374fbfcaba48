"""What the store hands out and takes in."""

from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict

from desktop_agent.vocabulary.blocks import Image
from desktop_agent.vocabulary.engine_events import Envelope
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.messages import Message
from desktop_agent.vocabulary.requests import Reasoning


@dataclass(frozen=True, slots=True)
class ConversationRecord:
    """One row of the list. `message_count` is the length of the branch that ends in `head_message_id`.

    `reasoning` is what the person chose for this conversation; None leaves it to the model.
    """

    id: str
    title: str
    created_at: datetime
    updated_at: datetime
    endpoint_id: str | None = None
    model: str | None = None
    workspace: str | None = None
    message_count: int = 0
    title_is_automatic: bool = True
    head_message_id: str | None = None
    deleted_at: datetime | None = None
    reasoning: Reasoning | None = None


class ConversationChanges(TypedDict, total=False):
    """What may be changed about a conversation; what is absent stays.

    A new `title` counts as given by the person unless `title_is_automatic` says otherwise. `head_message_id` moves
    the end of the branch: what is committed next goes after it (None: at the very beginning).
    """

    title: str
    title_is_automatic: bool
    endpoint_id: str | None
    model: str | None
    workspace: str | None
    head_message_id: str | None
    reasoning: Reasoning | None


@dataclass(frozen=True, slots=True)
class LoadedConversation:
    """A conversation as it was left.

    `messages` is the branch that ends in the head, oldest first. `journal` holds the rows of runs that never said
    RunFinished, in order. `skipped` counts journal rows that this version cannot read.
    """

    record: ConversationRecord
    messages: tuple[Message, ...] = ()
    journal: tuple[Envelope, ...] = ()
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Draft:
    """What the person was writing."""

    text: str = ""
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenReport:
    """What the person must be told about the opening; empty when all is well."""

    notices: tuple[Sentence, ...] = ()
