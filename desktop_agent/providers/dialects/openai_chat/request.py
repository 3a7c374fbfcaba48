"""Build the JSON body of Chat Completions for a family of servers, with response format and prompt caching.

Whatever cannot be sent as it was wished for is said in an adjustment.
"""

import re
from dataclasses import dataclass, field, replace
from typing import Any

from desktop_agent.providers.dialects.gemini.request import thinking_ability
from desktop_agent.providers.dialects.openai_chat.messages import Recipient, encode_messages
from desktop_agent.providers.dialects.openai_chat.model_listing import ReasoningSetting, reasoning_setting
from desktop_agent.providers.dialects.request_building import answer_limit, check_capabilities, openai_model_facts
from desktop_agent.providers.dialects.server_families import ServerQuirks
from desktop_agent.providers.transport.error_responses import error_words
from desktop_agent.providers.transport.json_codec import dumps
from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.errors import ProviderError, Sentence
from desktop_agent.types.providers import Capabilities, JsonFormat, ModelRequest
from desktop_agent.types.tool_calls import ToolSpec

_JSON_ONLY = "Answer with a JSON object and nothing else."
_JSON_BY_SCHEMA = "Answer with a JSON object and nothing else. It must fit this JSON schema: {schema}"


@dataclass(frozen=True, slots=True)
class FormatSetting:
    """The field to send, what is added to the instructions, and what is to be said about it."""

    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    extra_instructions: str = ""
    adjustments: tuple[Sentence, ...] = ()


def format_setting(
    request: ModelRequest, quirks: ServerQuirks, known: Capabilities, *, refused: bool = False
) -> FormatSetting:
    """How to ask for the format that is wished for; `refused`: this server answered that it does not take the field."""
    wish = request.config.response_format
    if wish is None:
        return FormatSetting()
    takes = "none" if refused or known.structured_output is False else quirks.structured
    schema = None if wish.json_schema is None else {k: v for k, v in wish.json_schema.items() if k != "$schema"}
    extra_instructions = _JSON_ONLY if schema is None else _JSON_BY_SCHEMA.format(schema=dumps(schema).decode())
    if takes == "none":
        values = {"model": request.model}
        said = Sentence("“{model}” is asked in words to answer in JSON: nothing makes sure that it does.", values)
        return FormatSetting({}, extra_instructions, (said,))
    if schema is not None and takes == "object":
        values = {"model": request.model}
        said = Sentence("“{model}” is told the schema in words: only that it is JSON is made sure.", values)
        return FormatSetting({"response_format": {"type": "json_object"}}, extra_instructions, (said,))
    if schema is None and takes != "only_schema":
        # OpenAI and others refuse the mode unless the word stands in the messages.
        return FormatSetting({"response_format": {"type": "json_object"}}, extra_instructions)
    return FormatSetting({"response_format": _schema_format(wish, schema or {"type": "object"}, quirks)})


def _schema_format(wish: JsonFormat, schema: JsonObject, quirks: ServerQuirks) -> JsonObject:
    named: JsonObject = {"name": wish.name, "schema": schema}
    # Strict schemas name every property, which "any object" cannot; Mistral refuses the word.
    if wish.strict and wish.json_schema is not None and quirks.family != "mistral":
        named["strict"] = True
    return {"type": "json_schema", "json_schema": named}


_LONG_LIFETIME = {"mode": "explicit", "ttl": "12h"}


def caching_fields(request: ModelRequest, quirks: ServerQuirks, adjustments: list[Sentence]) -> dict[str, Any]:
    """Fields of the body. A key leads one conversation to the same cache."""
    caching = request.config.caching
    if caching.enabled and caching.lifetime == "long" and not _takes_options(request, quirks):
        values = {"model": request.model}
        adjustments.append(Sentence("How long prompts of “{model}” are kept cannot be chosen.", values))
    if not quirks.cache_key:
        return {}
    if not caching.enabled:
        # No breakpoint is named, so none is written; older models cannot be told.
        return {"prompt_cache_options": {"mode": "explicit"}} if _takes_options(request, quirks) else {}
    return {"prompt_cache_key": request.conversation_id} if request.conversation_id else {}


def with_cache_breakpoints(
    messages: list[dict[str, Any]], request: ModelRequest, quirks: ServerQuirks
) -> list[dict[str, Any]]:
    """The long lifetime is asked for at places: behind the instructions, and behind the newest question."""
    caching = request.config.caching
    if not (caching.enabled and caching.lifetime == "long" and _takes_options(request, quirks)):
        return messages
    marked = list(messages)
    questions = [place for place, message in enumerate(messages) if message["role"] == "user"]
    first = [0] if messages and messages[0]["role"] in ("system", "developer") else []
    for place in (*first, *questions[-1:]):
        marked[place] = {**messages[place], "content": _with_breakpoint(messages[place]["content"])}
    return marked


def _with_breakpoint(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [*parts[:-1], {**parts[-1], "prompt_cache_breakpoint": _LONG_LIFETIME}]


def _takes_options(request: ModelRequest, quirks: ServerQuirks) -> bool:
    facts = openai_model_facts(request.model) if quirks.cache_key else None
    return facts is not None and facts.cache_options


# Fields that may be dropped, once, when a server answers that it does not take them. A limit on tokens, a stop
# sequence and a forced tool are not among them: they are promises to the person. A format is: it is told in words then.
DROPPABLE_FIELDS = frozenset(
    {
        "stream_options",
        "prompt_cache_key",
        "prompt_cache_options",
        "reasoning_effort",
        "reasoning",
        "reasoning_format",
        "thinking",
        "chat_template_kwargs",
        "response_format",
        "temperature",
        "top_p",
        "top_k",
    }
)
# Nobody asked for these, so nobody misses them.
_UNREQUESTED_FIELDS = frozenset(
    {"stream_options", "prompt_cache_key", "prompt_cache_options", "max_tokens", "response_format"}
)
_MAX_STOPS = 4


@dataclass(frozen=True, slots=True)
class RequestBody:
    """The body, the names of its fields that may be dropped, and what is different from what was asked for."""

    fields: dict[str, Any]
    droppable: frozenset[str]
    adjustments: tuple[Sentence, ...] = ()


def build_body(
    request: ModelRequest, recipient: Recipient, known: Capabilities, without: frozenset[str] = frozenset()
) -> RequestBody:
    """The body to send; `without` names fields that this server refused before (`max_tokens`: by that name).

    Raises ImagesNotSupported and ToolCallingNotSupported where the server's listing says so, CapabilityMissing, and
    WrongUse for what cannot be sent at all. `extra_options` are merged last and win.
    """
    check_capabilities(request, known)
    quirks = recipient.quirks
    switch = reasoning_setting(request, quirks, known)
    form = format_setting(request, quirks, known, refused="response_format" in without)
    said = [*switch.adjustments, *form.adjustments]
    recipient = replace(recipient, checks_signatures=_checks_signatures(request, quirks, known))
    fields: dict[str, Any] = {"model": request.model, "messages": _messages(request, recipient, switch, form)}
    fields |= {"stream": True, **form.fields}
    fields |= _limits(request, quirks, known, switch.refused | without, said)
    optional = _sampling(request, quirks, known, switch.refused, said)
    optional |= {**switch.fields, **_stream_options(quirks), **caching_fields(request, quirks, said)}
    fields |= {name: value for name, value in optional.items() if name not in without}
    fields |= _tools(request, quirks, known, said)
    if missed := sorted(without - _UNREQUESTED_FIELDS):
        values = {"names": ", ".join(missed)}
        said.append(Sentence("This server does not take {names}, so the question was asked without.", values))
    own = request.config.extra_options
    # extra_options are the person's own words: they win, and they are never dropped.
    return RequestBody(fields | own, (DROPPABLE_FIELDS & fields.keys()) - own.keys(), tuple(said))


def refused_fields(error: ProviderError, body: RequestBody) -> frozenset[str]:
    """Which fields of the body an error complains about: the one that it names, else those in its words."""
    words = error_words(error)
    named = re.search(r'"param"\s*:\s*"(\w+)', error.detail)
    # A parameter that is named exactly is meant; others in the sentence are advice.
    if named is not None and named[1] in body.droppable:
        return frozenset({named[1]})
    found = words & body.droppable
    if "reasoning_effort" in body.droppable and words & {"think", "thinking", "reasoning"}:
        found |= {"reasoning_effort"}
    if "max_tokens" in body.fields and "max_completion_tokens" in words:
        found |= {"max_tokens"}
    return frozenset(found)


def _messages(
    request: ModelRequest, recipient: Recipient, switch: ReasoningSetting, form: FormatSetting
) -> list[dict[str, Any]]:
    developer = recipient.quirks.family == "openai" and switch.is_reasoning_model
    written = encode_messages(request, recipient, developer=developer, extra_instructions=form.extra_instructions)
    return with_cache_breakpoints(written, request, recipient.quirks)


def _checks_signatures(request: ModelRequest, quirks: ServerQuirks, known: Capabilities) -> bool:
    is_google = quirks.family == "google-openai"
    return is_google and thinking_ability(request.model.removeprefix("models/"), known).checks_signatures


def _sampling(
    request: ModelRequest, quirks: ServerQuirks, known: Capabilities, refused: frozenset[str], said: list[Sentence]
) -> dict[str, Any]:
    config = request.config
    wished = {"temperature": config.temperature, "top_p": config.top_p, "top_k": config.top_k}
    values: dict[str, Any] = {name: value for name, value in wished.items() if value is not None}
    if not quirks.top_k and values.pop("top_k", None) is not None:
        said.append(Sentence("This interface has no top_k, so it was left out."))
    taken = {} if known.sampling is False else {name: each for name, each in values.items() if name not in refused}
    if lost := sorted(values.keys() - taken.keys()):
        names = {"model": request.model, "names": ", ".join(lost)}
        said.append(Sentence("“{model}” does not take {names} while it reasons, so that was left out.", names))
    return taken


def _limits(
    request: ModelRequest, quirks: ServerQuirks, known: Capabilities, refused: frozenset[str], said: list[Sentence]
) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    tokens, cut = answer_limit(request, known)
    said += cut
    if tokens is not None:
        fields["max_completion_tokens" if "max_tokens" in refused else quirks.max_tokens_field] = tokens
    stops = list(request.config.stop_sequences)
    if stops and "stop" in refused:
        values = {"model": request.model}
        said.append(Sentence("“{model}” takes no stop sequences, so they were left out.", values))
    elif stops:
        if quirks.switch == "openai" and len(stops) > _MAX_STOPS:
            said.append(Sentence("This server takes four stop sequences, so the others were left out."))
            stops = stops[:_MAX_STOPS]
        fields["stop"] = stops
    return fields


def _stream_options(quirks: ServerQuirks) -> dict[str, Any]:
    if not quirks.ask_for_usage:
        return {}
    padding = {"include_obfuscation": False} if quirks.family == "openai" else {}
    return {"stream_options": {"include_usage": True, **padding}}


def _tools(request: ModelRequest, quirks: ServerQuirks, known: Capabilities, said: list[Sentence]) -> dict[str, Any]:
    """Tools and the choice among them. A server that ignores the choice gets no tools when none may be called;
    there `required` and a named tool are wishes that cannot be sent."""
    choice = request.tool_choice
    if not request.tools or (choice.mode == "none" and not quirks.tool_choice):
        return {}
    fields: dict[str, Any] = {"tools": [_tool(spec) for spec in request.tools]}
    if choice.mode == "auto":
        return fields
    if choice.mode != "none" and (known.forced_tools is False or not quirks.tool_choice):
        values = {"model": request.model}
        said.append(Sentence("“{model}” cannot be made to call a tool, so it decides by itself.", values))
        return fields
    words = {"none": "none", "required": quirks.required_word}
    fields["tool_choice"] = words.get(choice.mode) or {"type": "function", "function": {"name": choice.name}}
    return fields


def _tool(spec: ToolSpec) -> dict[str, Any]:
    # Mistral refuses "$schema", and nobody needs it.
    schema = {name: value for name, value in spec.input_schema.items() if name != "$schema"}
    function: dict[str, Any] = {"name": spec.name, "parameters": schema}
    if spec.description:
        function["description"] = spec.description
    return {"type": "function", "function": function}
