"""What the store returns and takes, and its JSON.

The quick way is pydantic's own JSON. It refuses lone surrogates, which do occur in what models and tools write, so
text with them takes the slow way through the standard library, where they are escapes and survive.
"""

import json
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Annotated, Any, TypedDict, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from desktop_agent.storage.connection import text_of
from desktop_agent.types.blocks import Block, Image, JsonObject, Unknown
from desktop_agent.types.conversation_tree import BranchPoints, ConversationOrigin
from desktop_agent.types.engine_events import Envelope, Event
from desktop_agent.types.frozen_model import EMPTY, TupleOf
from desktop_agent.types.messages import AttachedText, Message, MessageState, Role
from desktop_agent.types.permissions import Mode, Rule, RuleEffect, RuleScope
from desktop_agent.types.policies import PromptPolicy, QueuedMessage
from desktop_agent.types.provider_events import Usage
from desktop_agent.types.providers import ConversationParameters, Reasoning
from desktop_agent.types.tool_calls import UntrustedSource

T = TypeVar("T")
TRASH_RETENTION = timedelta(days=30)
"""The first opening after this removes a deleted conversation for good."""


class ConversationState(BaseModel):
    """The stored state of a conversation besides its messages.

    `mode` is a mode's name; `own_mode` is the whole mode, where it is no built-in one, so that what it denied stays
    denied if it is removed. `is_mode_gone`: it was removed, and its restrictions hold. `policies` are the persistent
    ones, in the order of installation. `queue` are messages that wait, those whose hooks have not decided yet among
    them. `stopped_run` is the run that the person last stopped: after a crash before its end, nothing of it is
    resumed. `outside` are the sources of untrusted content since the person last let such pass, `trusted` the sources
    before. `title_usage` and `specialist_usage` are what models used for its titles and as its specialists, which no
    message has.
    """

    model_config = ConfigDict(frozen=True)

    mode: str = "default"
    own_mode: Mode | None = None
    is_mode_gone: bool = False
    policies: TupleOf[PromptPolicy] = EMPTY
    queue: TupleOf[QueuedMessage] = EMPTY
    stopped_run: str | None = None
    outside: TupleOf[UntrustedSource] = EMPTY
    trusted: TupleOf[UntrustedSource] = EMPTY
    title_usage: Usage | None = None
    specialist_usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class ConversationRecord:
    """One row of the list. `message_count` is the length of the branch that ends in `head_message_id`.

    `workspace` is a real path, resolved when the person chose it and never again. `reasoning` and `parameters` are what
    they chose for this conversation; None leaves a choice to the model. `folder` is the id of the folder that it is in;
    None at the top.
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
    origin: ConversationOrigin | None = None
    folder: str | None = None
    pinned_at: datetime | None = None
    archived_at: datetime | None = None
    tags: tuple[str, ...] = ()

    @property
    def is_pinned(self) -> bool:
        return self.pinned_at is not None


ListPlace = tuple[bool, int, int]
"""Where a list of conversations goes on: whether its last one is pinned, its time and its number."""


@dataclass(frozen=True, slots=True)
class ListScope:
    """Which conversations a list has. `folder` is the id of a folder; with `archived` None both kinds are in it.

    A list in pages has what is in the folder itself (None: at the top), or all that is archived. A list of records has
    what is in the folder or in one within it (None: everywhere), and has the `tag`.

    Two lists in pages ignore folders and include the archive: with `title`, all whose titles have these words or parts
    of words ("": all); with `in_trash`, what is deleted, the last deleted first.
    """

    folder: str | None = None
    archived: bool | None = None
    tag: str | None = None
    title: str | None = None
    in_trash: bool = False


EVERYTHING = ListScope()


@dataclass(frozen=True, slots=True)
class ListedConversation:
    """What a list shows of a conversation."""

    id: str
    title: str
    updated_at: datetime
    is_pinned: bool = False
    tags: tuple[str, ...] = ()
    deleted_at: datetime | None = None


class ConversationChanges(TypedDict, total=False):
    """Changes of a conversation; what is absent stays.

    A new `title` counts as given by the person unless `title_is_automatic` says otherwise. `head_message_id` moves
    the end of the branch: the next commit goes after it (None: at the very beginning).
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
    """The stored rules, oldest first. `stricter` of them are understood in part, and hold for more than they said;
    `lost` rows are not among them.
    """

    rules: tuple[Rule, ...]
    stricter: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True)
class MessagePlace:
    """Where a stored message is: the number of its row, and its position in its branch, 1 for the first."""

    number: int
    id: str
    position: int


@dataclass(frozen=True, slots=True)
class BranchPart:
    """Messages of one branch that follow each other, oldest first.

    `above` is the message before the first one, None at the beginning of the branch. `branch_points` are those that
    the part has, the place above it included.
    """

    messages: tuple[Message, ...] = ()
    above: MessagePlace | None = None
    branch_points: BranchPoints = field(default_factory=dict[str | None, tuple[str, ...]])


@dataclass(frozen=True, slots=True)
class LoadedConversation:
    """A stored conversation.

    `part` is the branch that ends in the head, or its end. `journal` holds the rows of runs without RunFinished, in
    order; `below` usage and approvals of finished runs below them. `skipped` counts journal rows that this version
    cannot read. `earlier` has the summaries of those runs that the part lacks, and their answers, these without blocks.
    """

    record: ConversationRecord
    part: BranchPart = BranchPart()
    journal: tuple[Envelope, ...] = ()
    skipped: int = 0
    below: tuple[Envelope, ...] = ()
    earlier: tuple[Message, ...] = ()

    @property
    def messages(self) -> tuple[Message, ...]:
        return self.part.messages


def _as_source(value: object) -> object:
    """Read older drafts, which have the title of a server alone."""
    return UntrustedSource("mcp", value) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Draft:
    """What the person was writing. `outside` are the MCP servers and links whose words or pictures are in it.

    `pasted` are texts beside the typed one that are too long for an editor. `resource_places` say where each of the
    `resources` stands among these and the images; one without a place comes last.
    """

    text: str = ""
    images: tuple[Image, ...] = ()
    resources: tuple[AttachedText, ...] = ()
    outside: tuple[Annotated[UntrustedSource, BeforeValidator(_as_source)], ...] = ()
    pasted: tuple[str, ...] = ()
    resource_places: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """An event of some conversation, and the conversation's current title."""

    conversation_id: str
    title: str
    envelope: Envelope


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Return the adapter of a type. Building one takes milliseconds, so it is built when it is first needed."""
    return TypeAdapter(kind)


@cache
def _event_adapter() -> TypeAdapter[Any]:
    # Not through `_adapter`: a union is hashed by hashing all its members, each time.
    return TypeAdapter(Annotated[Event, Field(discriminator="type")])


def _to_json(adapter: TypeAdapter[Any], value: object) -> str:
    try:
        return adapter.dump_json(value).decode()
    except PydanticSerializationError:
        # Not mode="json": it replaces lone surrogates in the keys of objects.
        return json.dumps(adapter.dump_python(value), separators=(",", ":"), default=to_jsonable_python)


def _from_json(adapter: TypeAdapter[Any], text: str) -> Any:
    try:
        return adapter.validate_json(text)
    except (ValidationError, UnicodeEncodeError):
        return adapter.validate_python(json.loads(text))


def to_json_unless(initial: object, kind: Any, value: object) -> str | None:
    """Return the JSON of a value of this type, or None for the initial one."""
    return None if value == initial else _to_json(_adapter(kind), value)


def read_json(kind: Any, text: str | None, otherwise: T) -> T:
    """Return what the text says; `otherwise` where there is none, or none that this version can read."""
    try:
        return otherwise if text is None else _from_json(_adapter(kind), text)
    except (ValueError, RecursionError):
        return otherwise


def message_to_json(message: Message) -> str:
    """Return the JSON of a message."""
    return _to_json(_adapter(Message), message)


def event_to_json(event: Event) -> str:
    """Return the JSON of an event."""
    return _to_json(_event_adapter(), event)


def draft_to_json(draft: Draft) -> str:
    """Return the JSON of a draft."""
    return _to_json(_adapter(Draft), draft)


def state_to_json(state: ConversationState) -> str | None:
    """Return the JSON of a state, or None for the initial one."""
    return to_json_unless(ConversationState(), ConversationState, state)


def read_state(text: str | None) -> ConversationState:
    """Return the state; of one that cannot be read, the parts that can."""
    try:
        return ConversationState() if text is None else _from_json(_adapter(ConversationState), text)
    except (ValueError, RecursionError):
        return _salvaged_state(_json_object(text or ""))


def _salvaged_state(data: JsonObject) -> ConversationState:
    state = ConversationState()
    for name in ConversationState.model_fields:
        if name in data:
            with suppress(ValueError, RecursionError):
                known = _adapter(ConversationState).validate_python({name: data[name]})
                state = state.model_copy(update={name: getattr(known, name)})
    return state


def rule_to_json(rule: Rule) -> str:
    """Return the JSON of a rule."""
    return _to_json(_adapter(Rule), rule)


def read_rule(text: str) -> Rule | None:
    """Return the rule, or None when this version does not understand all of it."""
    return read_json(Rule, text, None)


def read_rule_partially(text: str, id_: str) -> Rule | None:
    """Return a rule that denies or asks without the parts not understood: it holds for more than it said.

    Return None for one that allows, and where even that is unclear: such a rule holds no more.
    """
    parts = _json_object(text)
    effect = next((known for known in (RuleEffect.DENY, RuleEffect.ASK) if known == parts.get("effect")), None)
    if effect is None:
        return None
    rule = Rule(id=id_, effect=effect, tool="*", scope=RuleScope.ALWAYS)
    for name in (Rule.model_fields.keys() - {"id", "effect"}) & parts.keys():
        with suppress(ValueError, RecursionError):
            rule = _from_json(_adapter(Rule), json.dumps({**json.loads(rule_to_json(rule)), name: parts[name]}))
    if "also" in parts and parts["also"] != list(rule.also):
        # Which other tools it named is unknown.
        rule = rule.model_copy(update={"tool": "*"})
    lacks_conversation = rule.scope is RuleScope.CONVERSATION and rule.conversation_id is None
    return rule.model_copy(update={"scope": RuleScope.ALWAYS}) if lacks_conversation else rule


def read_event(text: str) -> Event | None:
    """Return the event, or None when this version does not know it or the text is damaged."""
    try:
        return _from_json(_event_adapter(), text)
    except (ValueError, RecursionError):
        return None


def read_draft(text: str) -> Draft:
    """Return the draft; of one that cannot be read, at least the text."""
    try:
        return _from_json(_adapter(Draft), text)
    except (ValueError, RecursionError):
        raw = _json_object(text).get("text")
        return Draft(text=raw if isinstance(raw, str) else "")


def message_from_row(id_: Any, role: Any, state: Any, body: Any) -> Message:
    """Return the message of these columns; see `read_message`."""
    return read_message(text_of(body), id_=text_of(id_), role=text_of(role), state=text_of(state))


def read_message(text: str, *, id_: str, role: str, state: str) -> Message:
    """Return the message. Unknown content becomes `Unknown` blocks; it never fails.

    `id_`, `role` and `state` come from the row and replace what the JSON lacks.
    """
    try:
        return _from_json(_adapter(Message), text)
    except (ValueError, RecursionError):
        return _salvaged_message(text, id_, role, state)


def _salvaged_message(text: str, id_: str, role: str, state: str) -> Message:
    data = _json_object(text)
    raw_blocks: Any = data.get("blocks")
    blocks = (
        tuple(map(_read_block, cast("list[Any]", raw_blocks))) if isinstance(raw_blocks, list) else (Unknown(raw=text),)
    )
    fields: dict[str, Any] = {}
    for name in Message.model_fields.keys() & data.keys():
        with suppress(ValueError):
            fields[name] = getattr(Message.model_validate({"role": "user", name: data[name]}), name)
    message = Message(
        id=id_,
        role=Role(role) if role in set(Role) else Role.ASSISTANT,
        state=MessageState(state) if state in set(MessageState) else MessageState.INTERRUPTED,
    )
    return message.model_copy(update={**fields, "id": id_, "blocks": blocks})


def _read_block(raw: Any) -> Block:
    try:
        return _adapter(Block).validate_python(raw)
    except ValueError:
        return Unknown(raw=raw)


def _json_object(text: str) -> JsonObject:
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return cast("JsonObject", data) if isinstance(data, dict) else {}
