"""Messages, events and drafts as JSON text, and back, whatever is in them.

The quick way is pydantic's own JSON. It refuses lone surrogates, which do occur in what models and tools write, so
text with them takes the slow way through the standard library, where they are escapes and survive.
"""

import json
from contextlib import suppress
from functools import cache
from typing import Annotated, Any, cast

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from desktop_agent.storage.records import ConversationState, Draft
from desktop_agent.vocabulary.blocks import Block, JsonObject, Unknown
from desktop_agent.vocabulary.conduct.rules import Rule, RuleEffect, RuleScope
from desktop_agent.vocabulary.engine_events import Event
from desktop_agent.vocabulary.messages import Message, MessageState, Role
from desktop_agent.vocabulary.requests import ConversationParameters, Reasoning


@cache
def _messages() -> TypeAdapter[Message]:
    return TypeAdapter(Message)


@cache
def _blocks() -> TypeAdapter[Any]:
    return TypeAdapter(Block)


@cache
def _events() -> TypeAdapter[Any]:
    return TypeAdapter(Annotated[Event, Field(discriminator="type")])


@cache
def _drafts() -> TypeAdapter[Draft]:
    return TypeAdapter(Draft)


@cache
def _reasoning() -> TypeAdapter[Any]:
    return TypeAdapter(Reasoning)


@cache
def _parameters() -> TypeAdapter[ConversationParameters]:
    return TypeAdapter(ConversationParameters)


@cache
def _states() -> TypeAdapter[ConversationState]:
    return TypeAdapter(ConversationState)


@cache
def _rules() -> TypeAdapter[Rule]:
    return TypeAdapter(Rule)


def _written(adapter: TypeAdapter[Any], value: object) -> str:
    try:
        return adapter.dump_json(value).decode()
    except PydanticSerializationError:
        # Not mode="json": it replaces lone surrogates in the keys of objects.
        return json.dumps(adapter.dump_python(value), separators=(",", ":"), default=to_jsonable_python)


def _read(adapter: TypeAdapter[Any], text: str) -> Any:
    try:
        return adapter.validate_json(text)
    except (ValidationError, UnicodeEncodeError):
        return adapter.validate_python(json.loads(text))


def message_text(message: Message) -> str:
    """The JSON of a message."""
    return _written(_messages(), message)


def event_text(event: Event) -> str:
    """The JSON of an event."""
    return _written(_events(), event)


def draft_text(draft: Draft) -> str:
    """The JSON of a draft."""
    return _written(_drafts(), draft)


def reasoning_text(reasoning: Reasoning | None) -> str | None:
    """The JSON of a choice, or None where there is none."""
    return None if reasoning is None else _written(_reasoning(), reasoning)


def read_reasoning(text: str | None) -> Reasoning | None:
    """The choice; None where there is none, or none that this version knows."""
    try:
        return None if text is None else _read(_reasoning(), text)
    except (ValueError, RecursionError):
        return None


def parameters_text(parameters: ConversationParameters) -> str | None:
    """The JSON of what the person set, or None where nothing was."""
    return None if parameters == ConversationParameters() else _written(_parameters(), parameters)


def read_parameters(text: str | None) -> ConversationParameters:
    """What was set; nothing where it cannot be read."""
    try:
        return ConversationParameters() if text is None else _read(_parameters(), text)
    except (ValueError, RecursionError):
        return ConversationParameters()


def state_text(state: ConversationState) -> str | None:
    """The JSON of a state, or None for the one that every conversation begins with."""
    return None if state == ConversationState() else _written(_states(), state)


def read_state(text: str | None) -> ConversationState:
    """The state; of one that cannot be read, the parts that can."""
    try:
        return ConversationState() if text is None else _read(_states(), text)
    except (ValueError, RecursionError):
        return _mended_state(_object(text or ""))


def _mended_state(data: JsonObject) -> ConversationState:
    state = ConversationState()
    for name in ConversationState.model_fields:
        if name in data:
            with suppress(ValueError, RecursionError):
                known = _states().validate_python({name: data[name]})
                state = state.model_copy(update={name: getattr(known, name)})
    return state


def rule_text(rule: Rule) -> str:
    """The JSON of a rule."""
    return _written(_rules(), rule)


def read_rule(text: str) -> Rule | None:
    """The rule, or None when this version does not understand all of it."""
    try:
        return _read(_rules(), text)
    except (ValueError, RecursionError):
        return None


def read_rule_in_part(text: str, id_: str) -> Rule | None:
    """A rule that denies or asks, without what is not understood of it: it holds for more than it said.

    None for one that allows, and where even that cannot be told: such a rule holds no more.
    """
    try:
        said: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    parts = cast("dict[str, Any]", said)
    effect = next((each for each in (RuleEffect.DENY, RuleEffect.ASK) if each == parts.get("effect")), None)
    if effect is None:
        return None
    rule = Rule(id=id_, effect=effect, tool="*", scope=RuleScope.ALWAYS)
    for name in (Rule.model_fields.keys() - {"id", "effect"}) & parts.keys():
        with suppress(ValueError, RecursionError):
            rule = _read(_rules(), json.dumps({**json.loads(rule_text(rule)), name: parts[name]}))
    if "also" in parts and parts["also"] != list(rule.also):
        # Of which other tools it spoke cannot be told.
        rule = rule.model_copy(update={"tool": "*"})
    of_nobody = rule.scope is RuleScope.CONVERSATION and rule.conversation_id is None
    return rule.model_copy(update={"scope": RuleScope.ALWAYS}) if of_nobody else rule


def read_event(text: str) -> Event | None:
    """The event, or None when this version does not know it or the text is damaged."""
    try:
        return _read(_events(), text)
    except (ValueError, RecursionError):
        return None


def read_draft(text: str) -> Draft:
    """The draft; of one that cannot be read, at least the text."""
    try:
        return _read(_drafts(), text)
    except (ValueError, RecursionError):
        raw = _object(text).get("text")
        return Draft(text=raw if isinstance(raw, str) else "")


def read_message(text: str, *, id_: str, role: str, state: str) -> Message:
    """The message. What this version does not know becomes `Unknown` blocks; it never fails.

    `id_`, `role` and `state` come from the row and stand in where the JSON is of no use.
    """
    try:
        return _read(_messages(), text)
    except (ValueError, RecursionError):
        return _mended(text, id_, role, state)


def _mended(text: str, id_: str, role: str, state: str) -> Message:
    data = _object(text)
    raw_blocks: Any = data.get("blocks")
    blocks = tuple(map(_block, cast("list[Any]", raw_blocks))) if isinstance(raw_blocks, list) else (Unknown(raw=text),)
    kept = {name: value for name, value in data.items() if name in Message.model_fields and _fits(name, value)}
    message = Message(
        id=id_,
        role=Role(role) if role in set(Role) else Role.ASSISTANT,
        state=MessageState(state) if state in set(MessageState) else MessageState.INTERRUPTED,
    )
    return message.model_copy(update={**_checked(kept), "id": id_, "blocks": blocks})


def _block(raw: Any) -> Block:
    try:
        return _blocks().validate_python(raw)
    except ValueError:
        return Unknown(raw=raw)


def _fits(name: str, value: Any) -> bool:
    try:
        Message.model_validate({"role": "user", name: value})
    except ValueError:
        return False
    return True


def _checked(values: dict[str, Any]) -> dict[str, Any]:
    known = Message.model_validate({"role": "user", **values})
    return {name: getattr(known, name) for name in values}


def _object(text: str) -> JsonObject:
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return cast("JsonObject", data) if isinstance(data, dict) else {}
