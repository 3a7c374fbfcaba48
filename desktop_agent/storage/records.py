"""What the store hands out and takes in."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, TypedDict

from pydantic import BaseModel, BeforeValidator, ConfigDict

from desktop_agent.vocabulary.blocks import Image
from desktop_agent.vocabulary.conduct.modes import Mode
from desktop_agent.vocabulary.conduct.prompt_policies import PromptPolicy
from desktop_agent.vocabulary.conduct.queue import QueuedMessage
from desktop_agent.vocabulary.conduct.rules import Rule
from desktop_agent.vocabulary.engine_events import Envelope
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.messages import Message
from desktop_agent.vocabulary.requests import ConversationParameters, Reasoning
from desktop_agent.vocabulary.tool_calls import UntrustedSource

TRASH_RETENTION = timedelta(days=30)
"""The first opening after this removes a deleted conversation for good."""


class ConversationState(BaseModel):
    """How a conversation stands besides what was said, kept so that it survives the end of the program.

    `mode` is a mode's name; `own_mode` is all of it, where it is no built-in one, so that what it denied stays denied
    should it be removed. `is_mode_gone`: it was, and what holds is what goes on of it. `policies` are the persistent
    ones, in the order of installation. `queue` are messages that wait, those whose hooks have not decided yet among
    them. `stopped_run` is the run that Stop was pressed in last: should the program die before that run has ended,
    nothing of it is gone on with. `outside` is where content from outside came from since the person last let such
    pass, `trusted` where it came from before.
    """

    model_config = ConfigDict(frozen=True)

    mode: str = "default"
    own_mode: Mode | None = None
    is_mode_gone: bool = False
    policies: tuple[PromptPolicy, ...] = ()
    queue: tuple[QueuedMessage, ...] = ()
    stopped_run: str | None = None
    outside: tuple[UntrustedSource, ...] = ()
    trusted: tuple[UntrustedSource, ...] = ()


@dataclass(frozen=True, slots=True)
class ConversationRecord:
    """One row of the list. `message_count` is the length of the branch that ends in `head_message_id`.

    `reasoning` is what the person chose for this conversation; None leaves it to the model. So do the `parameters`.
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
    parameters: ConversationParameters = field(default_factory=ConversationParameters)
    state: ConversationState = field(default_factory=ConversationState)


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
    parameters: ConversationParameters
    state: ConversationState


@dataclass(frozen=True, slots=True)
class StoredRules:
    """The standing rules, oldest first. `stricter` of them are understood in part, and hold for more than they said;
    `lost` rows are not among them.
    """

    rules: tuple[Rule, ...]
    stricter: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True)
class LoadedConversation:
    """A conversation as it was left.

    `messages` is the branch that ends in the head, oldest first. `journal` holds the rows of runs that never said
    RunFinished, in order; `below` what runs that they started, and that are over, used and were asked. `skipped` counts
    journal rows that this version cannot read.
    """

    record: ConversationRecord
    messages: tuple[Message, ...] = ()
    journal: tuple[Envelope, ...] = ()
    skipped: int = 0
    below: tuple[Envelope, ...] = ()


@dataclass(frozen=True, slots=True)
class InterruptedRuns:
    """A conversation with runs that never ended. `waits`: one of their calls waits for approval."""

    conversation_id: str
    waits_for_approval: bool


@dataclass(frozen=True, slots=True)
class DraftResource:
    """A text of an MCP server that is attached to a draft."""

    server: str
    title: str
    uri: str
    text: str
    server_id: str = ""


def _as_source(kept: object) -> object:
    """Older drafts have the title of a server alone."""
    return UntrustedSource("mcp", kept) if isinstance(kept, str) else kept


@dataclass(frozen=True, slots=True)
class Draft:
    """What the person was writing. `outside` are the MCP servers whose words or pictures are in it.

    `pasted` are texts beside the typed one that are too long for an editor.
    """

    text: str = ""
    images: tuple[Image, ...] = ()
    resources: tuple[DraftResource, ...] = ()
    outside: tuple[Annotated[UntrustedSource, BeforeValidator(_as_source)], ...] = ()
    pasted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenReport:
    """What the person must be told about the opening; empty when all is well."""

    notices: tuple[Sentence, ...] = ()


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """An event of some conversation, and what that is called now."""

    conversation_id: str
    title: str
    envelope: Envelope
