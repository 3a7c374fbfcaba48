"""Chat Completions: OpenAI's own and everybody else's. Builds the body for a family of servers, and sends it.

Whatever cannot be sent as requested is reported in an adjustment.
"""

import logging
import re
from dataclasses import dataclass, field, replace
from typing import Any

from desktop_agent.providers.catalogue.catalogue import estimate_token_count
from desktop_agent.providers.dialects.openai_chat.messages import REPLAYED_REASONING, Recipient, encode_messages
from desktop_agent.providers.dialects.openai_chat.reasoning import ReasoningOptions, reasoning_options
from desktop_agent.providers.dialects.openai_chat.response_stream import FrameReader
from desktop_agent.providers.dialects.openai_server import OpenAIServer, droppable_fields
from desktop_agent.providers.dialects.request_building import (
    JSON_ONLY,
    answer_limit,
    check_capabilities,
    openai_model_facts,
    tool_fields,
    wire_name,
)
from desktop_agent.providers.dialects.response_stream import OpenedStream
from desktop_agent.providers.dialects.server_families import ServerQuirks, join_url
from desktop_agent.providers.transport.error_responses import error_words
from desktop_agent.providers.transport.http_client import HttpResponse
from desktop_agent.providers.transport.json_codec import dumps
from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.errors import InvalidRequest, ProviderError, Sentence
from desktop_agent.types.providers import Capabilities, JsonFormat, ModelRequest, TokenCount
from desktop_agent.types.tool_calls import ToolSpec

_log = logging.getLogger(__name__)


class OpenAIChat(OpenAIServer):
    """One server that speaks Chat Completions."""

    dialect = "openai-chat"
    # Models that refused calls without the reasoning before them.
    _wanting_reasoning: frozenset[str] = frozenset()

    async def count_tokens(self, request: ModelRequest) -> TokenCount:
        """Return an estimate: this dialect has no endpoint for it."""
        return estimate_token_count(request, self._vendor)

    async def _open(self, request: ModelRequest) -> OpenedStream:
        quirks = self._quirks
        if not request.text_only:
            await self._ask_what_it_makes(request.model)
        answer, body = await self._ask(request, Recipient(quirks, self._account(request.model)))
        provider, has_tags = quirks.thinking_provider, quirks.think_tags
        builder = self._part_builder(request, provider, has_think_tags=has_tags, keeps_arguments=True)
        has_several = body.fields.get("n", 1) not in (None, 1)
        reader = FrameReader(builder, answer.headers, are_several=has_several)
        return self._opened_stream(request, answer, builder, reader, body.adjustments)

    async def _ask(self, request: ModelRequest, recipient: Recipient) -> tuple[HttpResponse, "RequestBody"]:
        """Return the head of a good answer, and the body that was sent last. Raises the server's error."""
        model, known, url = request.model, self._capabilities(request.model), join_url(self._root, "chat/completions")
        recipient = replace(recipient, wants_reasoning=model in self._wanting_reasoning)
        without, is_dropped = self._refused.get(model, frozenset[str]()), False
        while True:
            body = build_body(request, recipient, known, without)
            try:
                answer = await self._send(request, url, body.fields)
            except InvalidRequest as error:
                if error.status not in (400, 422):
                    raise
                # Kimi requires the reasoning of earlier calls, and so does DeepSeek behind other addresses.
                if REPLAYED_REASONING in error_words(error) and not recipient.wants_reasoning:
                    recipient = replace(recipient, wants_reasoning=True)
                    _log.info("the server wants the reasoning of earlier calls back; asking once more with it")
                elif not is_dropped and (named := refused_fields(error, body)):
                    without, is_dropped = without | named, True
                    _log.info("the server does not take %s; asking once more without", ", ".join(sorted(without)))
                else:
                    raise
                continue
            if is_dropped:
                self._refused[model] = without
            if recipient.wants_reasoning:
                self._wanting_reasoning |= {model}
            return answer, body


_JSON_BY_SCHEMA = f"{JSON_ONLY} It must fit this JSON schema: {{schema}}"


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """The field to send, what is added to the instructions, and notes."""

    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    extra_instructions: str = ""
    adjustments: tuple[Sentence, ...] = ()


def format_options(
    request: ModelRequest, quirks: ServerQuirks, known: Capabilities, *, refused: bool = False
) -> FormatOptions:
    """Return how to request the format; `refused`: this server does not accept the field."""
    json_format = request.config.response_format
    if json_format is None:
        return FormatOptions()
    support = "none" if refused or known.structured_output is False else quirks.structured
    schema = json_format.json_schema and {k: v for k, v in json_format.json_schema.items() if k != "$schema"}
    extra_instructions = JSON_ONLY if schema is None else _JSON_BY_SCHEMA.format(schema=dumps(schema).decode())
    if support == "none":
        values = {"model": request.model}
        note = Sentence("“{model}” is asked in words to answer in JSON: nothing makes sure that it does.", values)
        return FormatOptions({}, extra_instructions, (note,))
    if schema is not None and support == "object":
        values = {"model": request.model}
        note = Sentence("“{model}” is told the schema in words: only that it is JSON is made sure.", values)
        return FormatOptions({"response_format": {"type": "json_object"}}, extra_instructions, (note,))
    if schema is None and support != "only_schema":
        # OpenAI and others refuse the mode unless the word JSON is in the messages.
        return FormatOptions({"response_format": {"type": "json_object"}}, extra_instructions)
    return FormatOptions({"response_format": _schema_format(json_format, schema or {"type": "object"}, quirks)})


def _schema_format(json_format: JsonFormat, schema: JsonObject, quirks: ServerQuirks) -> JsonObject:
    named: JsonObject = {"name": json_format.name, "schema": schema}
    # Strict schemas name every property, which "any object" cannot; Mistral refuses the field.
    if json_format.strict and json_format.json_schema is not None and quirks.family != "mistral":
        named["strict"] = True
    return {"type": "json_schema", "json_schema": named}


# OpenRouter caches Anthropic's models only on request (its API reference, cache_control), all others by itself.
_CLAUDE = re.compile(r"~?anthropic/")
_LONG_LIFETIME = {"mode": "explicit", "ttl": "12h"}


def caching_fields(request: ModelRequest, quirks: ServerQuirks, adjustments: list[Sentence]) -> dict[str, Any]:
    """Return fields of the body. A key directs one conversation to the same cache."""
    caching = request.config.caching
    if quirks.family == "openrouter" and _CLAUDE.match(request.model):
        lifetime = {"ttl": "1h"} if caching.lifetime == "long" else {}
        return {"cache_control": {"type": "ephemeral", **lifetime}} if caching.enabled else {}
    if caching.enabled and caching.lifetime == "long" and not _takes_options(request, quirks):
        values = {"model": request.model}
        adjustments.append(Sentence("The cache lifetime of “{model}” cannot be chosen.", values))
    if not quirks.cache_key:
        return {}
    if not caching.enabled:
        # Without a breakpoint nothing is cached; older models have no such option.
        return {"prompt_cache_options": {"mode": "explicit"}} if _takes_options(request, quirks) else {}
    return {"prompt_cache_key": request.conversation_id} if request.conversation_id else {}


def with_cache_breakpoints(
    messages: list[dict[str, Any]], request: ModelRequest, quirks: ServerQuirks
) -> list[dict[str, Any]]:
    """Mark the places for the long lifetime: after the instructions, and after the newest question."""
    caching = request.config.caching
    if not (caching.enabled and caching.lifetime == "long" and _takes_options(request, quirks)):
        return messages
    marked = list(messages)
    questions = [index for index, message in enumerate(messages) if message["role"] == "user"]
    first = [0] if messages and messages[0]["role"] in ("system", "developer") else []
    for index in (*first, *questions[-1:]):
        marked[index] = {**messages[index], "content": _with_breakpoint(messages[index]["content"])}
    return marked


def _with_breakpoint(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [*parts[:-1], {**parts[-1], "prompt_cache_breakpoint": _LONG_LIFETIME}]


def _takes_options(request: ModelRequest, quirks: ServerQuirks) -> bool:
    facts = openai_model_facts(request.model) if quirks.cache_key else None
    return facts is not None and facts.cache_options


DROPPABLE_FIELDS = droppable_fields("chat")
_UNREQUESTED_FIELDS = droppable_fields("chat_unrequested")
_MAX_STOPS = 4


@dataclass(frozen=True, slots=True)
class RequestBody:
    """The body, the names of its fields that may be dropped, and notes about what differs from the request."""

    fields: dict[str, Any]
    droppable: frozenset[str]
    adjustments: tuple[Sentence, ...] = ()


def build_body(
    request: ModelRequest, recipient: Recipient, known: Capabilities, without: frozenset[str] = frozenset()
) -> RequestBody:
    """Build the body; `without` names fields that this server refused before (`max_tokens`: by that name).

    Raises ImagesNotSupported and ToolCallingNotSupported if the server's listing says so, CapabilityMissing, and
    WrongUse for what cannot be sent at all. `extra_options` are merged last and win.
    """
    check_capabilities(request, known)
    quirks = recipient.quirks
    setting = reasoning_options(request, quirks, known)
    format_fields = format_options(request, quirks, known, refused="response_format" in without)
    notes = [*setting.adjustments, *format_fields.adjustments]
    recipient = replace(recipient, checks_signatures=_checks_signatures(request, quirks, known))
    fields: dict[str, Any] = {"model": request.model, "messages": _messages(request, recipient, setting, format_fields)}
    fields |= {"stream": True, **format_fields.fields}
    fields |= _limits(request, quirks, known, setting.refused | without, notes)
    optional = _sampling(request, quirks, known, setting.refused, notes)
    if known.makes_images and not request.text_only:
        # OpenRouter and Vercel's gateway: some models want it, and those that paint only refuse “text” in it.
        optional["modalities"] = list(known.outputs or ())
    optional |= {**setting.fields, **_stream_options(quirks), **caching_fields(request, quirks, notes)}
    fields |= {name: value for name, value in optional.items() if name not in without}
    fields |= _tools(request, quirks, known, notes)
    if missed := sorted(without - _UNREQUESTED_FIELDS):
        values = {"names": ", ".join(missed)}
        notes.append(Sentence("This server does not accept {names}, so the question was sent without.", values))
    extra_options = request.config.extra_options
    # extra_options are the person's own: they win, and they are never dropped.
    return RequestBody(fields | extra_options, (DROPPABLE_FIELDS & fields.keys()) - extra_options.keys(), tuple(notes))


def refused_fields(error: ProviderError, body: RequestBody) -> frozenset[str]:
    """Return which fields of the body an error is about: the one that it names, else those in its message."""
    words = error_words(error)
    named = re.search(r'"param"\s*:\s*"(\w+)', error.detail)
    # An exactly named parameter is the cause; others in the sentence are advice.
    if named is not None and named[1] in body.droppable:
        return frozenset({named[1]})
    fields = words & body.droppable
    if "reasoning_effort" in body.droppable and words & {"think", "thinking", "reasoning"}:
        fields |= {"reasoning_effort"}
    if "max_tokens" in body.fields and "max_completion_tokens" in words:
        fields |= {"max_tokens"}
    return frozenset(fields)


def _messages(
    request: ModelRequest, recipient: Recipient, setting: ReasoningOptions, format_fields: FormatOptions
) -> list[dict[str, Any]]:
    developer = recipient.quirks.family == "openai" and setting.is_reasoning_model
    messages = encode_messages(
        request, recipient, developer=developer, extra_instructions=format_fields.extra_instructions
    )
    return with_cache_breakpoints(messages, request, recipient.quirks)


def _checks_signatures(request: ModelRequest, quirks: ServerQuirks, known: Capabilities) -> bool:
    if quirks.family != "google-openai":
        return False
    # Late: few servers of this dialect are Google's.
    from desktop_agent.providers.dialects.gemini.request import thinking_ability

    return thinking_ability(request.model.removeprefix("models/"), known).checks_signatures


def _sampling(
    request: ModelRequest, quirks: ServerQuirks, known: Capabilities, refused: frozenset[str], notes: list[Sentence]
) -> dict[str, Any]:
    config = request.config
    options = {"temperature": config.temperature, "top_p": config.top_p, "top_k": config.top_k}
    values: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if not quirks.top_k and values.pop("top_k", None) is not None:
        notes.append(Sentence("This API has no top_k, so it was left out."))
    accepted = {} if known.sampling is False else {name: value for name, value in values.items() if name not in refused}
    if dropped := sorted(values.keys() - accepted.keys()):
        names = {"model": request.model, "names": ", ".join(dropped)}
        notes.append(Sentence("“{model}” does not take {names} while it reasons, so that was left out.", names))
    return accepted


def _limits(
    request: ModelRequest, quirks: ServerQuirks, known: Capabilities, refused: frozenset[str], notes: list[Sentence]
) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    tokens, cut = answer_limit(request, known)
    notes += cut
    if tokens is not None:
        fields["max_completion_tokens" if "max_tokens" in refused else quirks.max_tokens_field] = tokens
    stops = list(request.config.stop_sequences)
    if stops and "stop" in refused:
        values = {"model": request.model}
        notes.append(Sentence("“{model}” takes no stop sequences, so they were left out.", values))
    elif stops:
        if quirks.switch == "openai" and len(stops) > _MAX_STOPS:
            notes.append(Sentence("This server takes four stop sequences, so the others were left out."))
            stops = stops[:_MAX_STOPS]
        fields["stop"] = stops
    return fields


def _stream_options(quirks: ServerQuirks) -> dict[str, Any]:
    if not quirks.ask_for_usage:
        return {}
    padding = {"include_obfuscation": False} if quirks.family == "openai" else {}
    return {"stream_options": {"include_usage": True, **padding}}


def _tools(request: ModelRequest, quirks: ServerQuirks, known: Capabilities, notes: list[Sentence]) -> dict[str, Any]:
    named = {"type": "function", "function": {"name": wire_name(request.tool_choice.name or "")}}
    choices = {"none": "none", "required": quirks.required_word, "named": named}
    tools = [_tool(spec) for spec in request.tools]
    return tool_fields(request, known, notes, tools, choices, takes_choice=quirks.tool_choice)


def _tool(spec: ToolSpec) -> dict[str, Any]:
    # Mistral refuses "$schema", which no server needs.
    schema = {name: value for name, value in spec.input_schema.items() if name != "$schema"}
    function: dict[str, Any] = {"name": wire_name(spec.name), "parameters": schema}
    if spec.description:
        function["description"] = spec.description
    return {"type": "function", "function": function}
