"""Build the JSON body of the Messages API, with cache marks. What differs from the request is in adjustments.

At most four cache marks: after the tools, the instructions, the last question, and the question before that.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from desktop_agent.providers.dialects.anthropic.messages import EncodedHistory, HistoryEncoder
from desktop_agent.providers.dialects.anthropic.model_listing import (
    ThinkingAbility,
    ThinkingOptions,
    resolve_conflicts,
    thinking_options,
)
from desktop_agent.providers.dialects.request_building import JSON_ONLY, PrefixDigest, wire_name
from desktop_agent.providers.transport.json_codec import is_array, is_object, object_in
from desktop_agent.types.errors import CapabilityMissing, Sentence, ToolCallingNotSupported
from desktop_agent.types.messages import now
from desktop_agent.types.providers import Capabilities, ModelRequest, ProviderConfig
from desktop_agent.types.tool_calls import ToolSpec

_MARKABLE = ("text", "image", "tool_use", "tool_result")


def add_cache_marks(fields: dict[str, Any], lifetime: Literal["short", "long"]) -> None:
    """Mark a body. All marks have one lifetime: longer ones would have to come before shorter ones."""
    control: dict[str, Any] = {"type": "ephemeral"}
    if lifetime == "long":
        control["ttl"] = "1h"
    for name in ("tools", "system"):
        if fields.get(name):
            fields[name][-1]["cache_control"] = dict(control)
    messages: list[dict[str, Any]] = [entry for entry in fields["messages"] if entry["role"] != "system"]
    prompts = [index for index, message in enumerate(messages) if message["role"] == "user"]
    indices = {len(messages) - 1, *[index for index in prompts if index < len(messages) - 1][-1:]}
    for index in indices:
        block = next((entry for entry in reversed(messages[index]["content"]) if entry["type"] in _MARKABLE), None)
        if block is not None:
            block["cache_control"] = dict(control)


def has_cache_marks(value: Any) -> bool:
    """Whether the person sets cache marks: then the program sets none, because their number and order count."""
    if is_object(value):
        return "cache_control" in value or any(map(has_cache_marks, value.values()))
    return is_array(value) and any(map(has_cache_marks, value))


DEFAULT_MAX_TOKENS = 8192
# Fields that the counting endpoint accepts; it refuses all others.
_COUNTED = frozenset(
    {"model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control", "speed"}
)
_NO_SAMPLING = "This provider sets its own sampling: {name} was not sent."
_LESS_TOKENS = "The model's longest answer is {tokens} tokens, so no more were asked for."
_FREE_CHOICE = Sentence("This model cannot be made to call a tool; it was left free to choose.")
_IN_WORDS = Sentence("This provider takes JSON by a schema only; JSON was asked for in words.")
_BLANK_STOP = Sentence("A stop sequence of blanks is not taken by this provider, so it was not sent.")
_BARE_LOOP = Sentence("Reasoning starts with the next question: it cannot be switched on between tool calls.")


@dataclass(frozen=True, slots=True)
class RequestBody:
    """The body and what belongs to it.

    `prefix` is the digest of all that the model reads. `carries_older`: it contains thinking of earlier turns.
    """

    fields: dict[str, Any]
    prefix: str
    adjustments: tuple[Sentence, ...]
    betas: tuple[str, ...] = ()
    carries_older: bool = False

    @property
    def count_fields(self) -> dict[str, Any]:
        return {name: value for name, value in self.fields.items() if name in _COUNTED}

    @property
    def cache_warming_fields(self) -> dict[str, Any]:
        """Return the fields for caching without an answer: nothing that only matters for an answer."""
        fields = {name: value for name, value in self.fields.items() if name != "stream"} | {"max_tokens": 0}
        if object_in(fields, "thinking").get("type") == "enabled":
            del fields["thinking"]
        if object_in(fields, "tool_choice").get("type") in ("any", "tool"):
            del fields["tool_choice"]
        config = {name: value for name, value in object_in(fields, "output_config").items() if name != "format"}
        fields.pop("output_config", None)
        return fields | ({"output_config": config} if config else {})


def build_body(
    request: ModelRequest, known: Capabilities, account: str, *, older: bool = True, signed: bool = True
) -> RequestBody:
    """Build the body; without `older` it has no thinking of earlier turns. `extra_options` win.

    `signed`: the server signs all thinking; others, such as llama.cpp, accept it without a signature.

    Raises ToolCallingNotSupported, ImagesNotSupported, CapabilityMissing, ImageRefused, and WrongUse for what cannot be
    sent at all.
    """
    _check(request, known)
    config = request.config
    extra = {name: value for name, value in config.extra_options.items() if name != "betas"}
    encoder = HistoryEncoder(request, known, account, older=older, signed=signed)
    top = {**_tools(request.tools), **_system(encoder.system, config)}
    digest = PrefixDigest(account)
    for name in ("tools", "system"):
        digest.add([name, extra.get(name, top.get(name))])
    history = encoder.encode(digest)
    limit, cut = _token_limit(config, known)
    ability = ThinkingAbility(request.model, known, config.show_reasoning, limit)
    setting = _thinking(request, ability, history, extra)
    choice, freed = _tool_choice(request, ability)
    fields = {
        "model": request.model,
        "max_tokens": limit,
        **top,
        "messages": history.messages,
        **choice,
        **({"thinking": setting.thinking} if setting.thinking is not None else {}),
        **_output(config, setting),
        **_stop_sequences(config),
        **_container(history.container),
        "stream": True,
    }
    if config.caching.enabled and not has_cache_marks(extra):
        add_cache_marks(fields, config.caching.lifetime)
    return RequestBody(
        fields=_with_extra_options(fields, extra),
        prefix=digest.value,
        adjustments=(*history.adjustments, *cut, *setting.adjustments, *freed, *_dropped_options(config)),
        betas=_betas(config.extra_options.get("betas")),
        carries_older=history.carries_older,
    )


def _check(request: ModelRequest, known: Capabilities) -> None:
    if request.tools and known.tools is False:
        raise ToolCallingNotSupported(Sentence("{model} does not call tools.", {"model": request.model}))
    if _schema(request.config) is not None and known.structured_output is False:
        raise CapabilityMissing(Sentence("{model} does not answer by a schema.", {"model": request.model}))


def _tools(tools: Iterable[ToolSpec]) -> dict[str, Any]:
    declarations = [
        {
            "name": wire_name(tool.name),
            **({"description": tool.description} if tool.description else {}),
            "input_schema": {"type": "object", **tool.input_schema},
        }
        for tool in tools
    ]
    return {"tools": declarations} if declarations else {}


def _system(text: str, config: ProviderConfig) -> dict[str, Any]:
    if config.response_format is not None and config.response_format.json_schema is None:
        text = f"{text}\n\n{JSON_ONLY}".lstrip()
    return {"system": [{"type": "text", "text": text}]} if text else {}


def _token_limit(config: ProviderConfig, known: Capabilities) -> tuple[int, tuple[Sentence, ...]]:
    """Return max_tokens, which this API requires."""
    limit, most = config.max_tokens, known.max_output_tokens
    if limit is None:
        return most or DEFAULT_MAX_TOKENS, ()
    if most is not None and limit > most:
        return most, (Sentence(_LESS_TOKENS, {"tokens": str(most)}),)
    return limit, ()


def _thinking(
    request: ModelRequest, ability: ThinkingAbility, history: EncodedHistory, extra: dict[str, Any]
) -> ThinkingOptions:
    setting = thinking_options(request.config.reasoning, ability)
    is_forced = bool(request.tools) and request.tool_choice.mode in ("required", "named") and ability.takes_forced_calls
    own_effort = object_in(extra, "output_config").get("effort")
    effort = own_effort if isinstance(own_effort, str) else setting.effort
    setting = resolve_conflicts(setting, ability, forced=is_forced, effort=effort)
    if history.is_bare and setting.kind == "enabled":
        return ThinkingOptions(None, setting.effort, (*setting.adjustments, _BARE_LOOP))
    return setting


def _tool_choice(request: ModelRequest, ability: ThinkingAbility) -> tuple[dict[str, Any], tuple[Sentence, ...]]:
    choice = request.tool_choice
    if not request.tools or choice.mode == "auto":
        return {}, ()
    if choice.mode == "none":
        return {"tool_choice": {"type": "none"}}, ()
    if not ability.takes_forced_calls:
        return {"tool_choice": {"type": "auto"}}, (_FREE_CHOICE,)
    if choice.mode == "required" or not choice.name:
        return {"tool_choice": {"type": "any"}}, ()
    return {"tool_choice": {"type": "tool", "name": wire_name(choice.name)}}, ()


def _output(config: ProviderConfig, setting: ThinkingOptions) -> dict[str, Any]:
    config_fields: dict[str, Any] = {}
    if setting.effort is not None:
        config_fields["effort"] = setting.effort
    schema = _schema(config)
    if schema is not None:
        config_fields["format"] = {"type": "json_schema", "schema": _closed(schema)}
    return {"output_config": config_fields} if config_fields else {}


def _schema(config: ProviderConfig) -> dict[str, Any] | None:
    return None if config.response_format is None else config.response_format.json_schema


def _closed(schema: Any) -> Any:
    """Return the schema with every object closed: this API accepts no others."""
    if is_array(schema):
        return [_closed(entry) for entry in schema]
    if not is_object(schema):
        return schema
    closed = {name: _closed(value) for name, value in schema.items()}
    if schema.get("type") == "object" and "properties" in schema:
        closed.setdefault("additionalProperties", False)
    return closed


def _stop_sequences(config: ProviderConfig) -> dict[str, Any]:
    sequences = [sequence for sequence in config.stop_sequences if sequence.strip()]
    return {"stop_sequences": sequences} if sequences else {}


def _container(container: dict[str, Any]) -> dict[str, Any]:
    """Continue code of this turn in the container where it ran, while that exists."""
    name, expires_at = container.get("id"), container.get("expires_at")
    try:
        is_available = datetime.fromisoformat(str(expires_at)) > now() + timedelta(seconds=5)
    except (ValueError, TypeError):
        is_available = False
    return {"container": name} if isinstance(name, str) and is_available else {}


def _with_extra_options(fields: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """Let the person's own options win; if they set a part of `output_config`, the rest of it stays."""
    merged = fields | extra
    if is_object(extra.get("output_config")) and "output_config" in fields:
        merged["output_config"] = fields["output_config"] | extra["output_config"]
    return merged


def _dropped_options(config: ProviderConfig) -> Iterator[Sentence]:
    values = {"temperature": config.temperature, "top_p": config.top_p, "top_k": config.top_k}
    for name, value in values.items():
        if value is not None:
            yield Sentence(_NO_SAMPLING, {"name": name})
    if any(not sequence.strip() for sequence in config.stop_sequences):
        yield _BLANK_STOP
    if config.response_format is not None and config.response_format.json_schema is None:
        yield _IN_WORDS


def _betas(names: Any) -> tuple[str, ...]:
    return tuple(beta for beta in names if isinstance(beta, str)) if is_array(names) else ()
