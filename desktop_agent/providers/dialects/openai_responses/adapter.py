"""The Responses API: OpenAI's own, and servers that offer the same. Builds the body for a family, and sends it.

`store` is false for everybody. Downgrades of reasoning, and fields this interface lacks, are reported in adjustments.
"""

import logging
import re
from dataclasses import dataclass, field, replace
from typing import Any

from desktop_agent.providers.catalogue.catalogue import estimate_token_count
from desktop_agent.providers.dialects.openai_responses.messages import Recipient, encode_input, instructions_for
from desktop_agent.providers.dialects.openai_responses.output_items import PROVIDER
from desktop_agent.providers.dialects.openai_responses.response_stream import ResponsesReader
from desktop_agent.providers.dialects.openai_server import OpenAIServer, droppable_fields
from desktop_agent.providers.dialects.request_building import (
    BETWEEN_TOOLS_IGNORED,
    JSON_ONLY,
    OpenAIModelFacts,
    answer_limit,
    check_capabilities,
    choose_effort,
    choose_openai_effort,
    choose_xai_effort,
    openai_model_facts,
    tool_fields,
    wire_name,
)
from desktop_agent.providers.dialects.response_stream import OpenedStream
from desktop_agent.providers.dialects.server_families import ServerQuirks, join_url
from desktop_agent.providers.transport.error_responses import error_words
from desktop_agent.providers.transport.http_client import HttpResponse
from desktop_agent.providers.transport.json_codec import dumps, loads, object_in
from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.errors import InvalidRequest, NotFound, ProviderError, Sentence, UnreadableAnswer
from desktop_agent.types.messages import Message
from desktop_agent.types.providers import (
    Capabilities,
    ImageLimits,
    JsonFormat,
    ModelRequest,
    ReasoningBetweenTools,
    TokenCount,
)
from desktop_agent.types.tool_calls import ToolSpec

_log = logging.getLogger(__name__)
_WITHOUT_EARLIER_REASONING = Sentence(
    "The server did not accept earlier reasoning, so the question was sent without it."
)


class OpenAIResponses(OpenAIServer):
    """One server that speaks the Responses API.

    The reasoning of earlier answers is left out, too, if the server does not accept it. Servers cache prompts
    automatically in this dialect: a key for each conversation and, if a model accepts it, a longer lifetime are sent,
    but nothing can be cached ahead.
    """

    dialect = "openai-responses"
    # Keys of earlier reasoning that the server refused.
    _unreadable: frozenset[str] = frozenset()

    def picture_limits(self, model: str) -> ImageLimits:
        """Return what this family of servers accepts; pictures that it made go back as the items that they were."""
        return replace(super().picture_limits(model), in_answers_of=PROVIDER)

    async def count_tokens(self, request: ModelRequest) -> TokenCount:
        """Let OpenAI's servers count; estimate for others, and if they do not count after all."""
        if self._quirks.switch == "openai":
            body = dumps(count_fields(self._body(request)))
            try:
                answer = await self._exchange(join_url(self._root, "responses/input_tokens"), body)
                tokens = loads(answer)["input_tokens"]
            except (InvalidRequest, NotFound, UnreadableAnswer, ValueError, KeyError, TypeError):
                tokens = None
            if type(tokens) is int and tokens >= 0:
                return TokenCount(tokens)
        return estimate_token_count(request, self._vendor)

    async def _open(self, request: ModelRequest) -> OpenedStream:
        answer, body, adjustments = await self._ask(request)
        builder = self._part_builder(request, PROVIDER, has_think_tags=self._quirks.think_tags, keeps_arguments=True)
        reader = ResponsesReader(builder, answer.headers)
        is_long = "ttl" in body.fields.get("prompt_cache_options", ())
        return self._opened_stream(
            request, answer, builder, reader, adjustments, prefix=body.prefix, long_lived=is_long
        )

    async def _ask(self, request: ModelRequest) -> tuple[HttpResponse, "ResponsesRequest", tuple[Sentence, ...]]:
        """Return the head of a good answer, and the body that was sent last. Raises the server's error."""
        without, forgotten = self._refused.get(request.model, frozenset[str]()), frozenset[str]()
        dropped = False
        while True:
            body = self._body(request, without, forgotten)
            try:
                answer = await self._send(request, join_url(self._root, "responses"), body.fields)
            except InvalidRequest as error:
                if error.status not in (400, 422):
                    raise
                named = frozenset[str]() if dropped else refused_fields(error, body)
                if named:
                    without, dropped = without | named, True
                    _log.info("the server does not take %s; asking once more without", ", ".join(sorted(named)))
                elif body.reasoning and not forgotten:
                    forgotten = body.reasoning
                    _log.info("the server refuses a question with earlier reasoning; asking once more without")
                else:
                    raise
                continue
            if dropped:
                self._refused[request.model] = without
            self._unreadable |= forgotten
            return answer, body, (*body.adjustments, *([_WITHOUT_EARLIER_REASONING] if forgotten else []))

    def _body(
        self, request: ModelRequest, without: frozenset[str] = frozenset(), forgotten: frozenset[str] = frozenset()
    ) -> "ResponsesRequest":
        known = self._capabilities(request.model)
        recipient = Recipient(
            self._quirks,
            self._account(request.model),
            binds=known.binds_prefix is not False,
            unreadable=self._unreadable | forgotten,
        )
        return build_body(request, recipient, known, without)


@dataclass(frozen=True, slots=True)
class ReasoningOptions:
    """The content of `reasoning`, and whether temperature and top_p may accompany it."""

    reasoning: dict[str, str] = field(default_factory=dict[str, str])
    sampling: bool = True
    adjustments: tuple[Sentence, ...] = ()


def reasoning_options(request: ModelRequest, quirks: ServerQuirks, known: Capabilities) -> ReasoningOptions:
    """Return what to send for this request. `known` counts more than the table of names."""
    match quirks.switch:
        case "openai":
            setting = _openai_options(request, _model_facts(request.model, known), known)
        case "xai":
            effort, notes = choose_xai_effort(request, always_reasons_since=(4, 5))
            setting = ReasoningOptions(_fields(effort), adjustments=notes)
        case _:
            effort, notes = choose_effort(request, known.efforts, can_be_off=True)
            setting = ReasoningOptions(_fields(effort), known.sampling is not False, notes)
    if isinstance(request.config.reasoning, ReasoningBetweenTools):
        return replace(setting, adjustments=(*setting.adjustments, BETWEEN_TOOLS_IGNORED))
    return setting


def _model_facts(model: str, known: Capabilities) -> OpenAIModelFacts | None:
    """Return the row of this model, corrected by the catalogue or the server."""
    facts = openai_model_facts(model)
    if known.reasoning is False:
        facts = OpenAIModelFacts()
    elif known.efforts is not None:
        facts = replace(facts or OpenAIModelFacts(reasons_by_default=True), efforts=known.efforts)
    if facts is None:
        return None
    modes, by_default = known.reasoning_modes, known.reasons_by_default
    return replace(
        facts,
        can_be_off=facts.can_be_off if modes is None else "disabled" in modes,
        reasons_by_default=facts.reasons_by_default if by_default is None else by_default,
        sampling=facts.sampling and known.sampling is not False,
    )


def _openai_options(request: ModelRequest, facts: OpenAIModelFacts | None, known: Capabilities) -> ReasoningOptions:
    summary = {"summary": "auto"} if request.config.show_reasoning else {}
    if facts is None:
        effort, notes = choose_effort(request, None, can_be_off=True)
        reasons, sampling = effort != "none", known.sampling is not False
    else:
        effort, notes = choose_openai_effort(request, facts)
        reasons = facts.reasons_at(effort)
        sampling = facts.sampling and not reasons
    return ReasoningOptions(_fields(effort) | (summary if reasons else {}), sampling, notes)


def _fields(effort: str | None) -> dict[str, Any]:
    return {} if effort is None else {"effort": effort}


DROPPABLE_FIELDS = droppable_fields("responses")


@dataclass(frozen=True, slots=True)
class ResponsesRequest:
    """The body, what may be dropped from it, notes about changes, its digest, and the keys of reasoning in it."""

    fields: dict[str, Any]
    droppable: frozenset[str]
    adjustments: tuple[Sentence, ...]
    prefix: str
    reasoning: frozenset[str]


def build_body(
    request: ModelRequest, recipient: Recipient, known: Capabilities, without: frozenset[str] = frozenset()
) -> ResponsesRequest:
    """Build the body; `without` names what this server refused before. `extra_options` are merged last and win.

    Raises ImagesNotSupported and ToolCallingNotSupported if the server's listing says so, ImageRefused, and WrongUse
    for what cannot be sent at all.
    """
    check_capabilities(request, known)
    request = _with_json_instruction(request)
    quirks, extra_options = recipient.quirks, request.config.extra_options
    setting = reasoning_options(request, quirks, known)
    limit, cut = answer_limit(request, known)
    adjustments = [*setting.adjustments, *cut]
    fields: dict[str, Any] = {"model": request.model, "stream": True, "store": False}
    if instructions := instructions_for(request, recipient):
        fields["instructions"] = instructions
    if limit is not None:
        fields["max_output_tokens"] = limit
    if request.config.response_format is not None:
        fields["text"] = {"format": _format(request.config.response_format)}
    fields |= _reasoning_fields(setting, request.model, quirks)
    fields |= _sampling(request, setting, adjustments)
    fields |= _tools(request, known, quirks, adjustments)
    fields |= _openai_only_fields(request, quirks, adjustments)
    if request.config.stop_sequences:
        adjustments.append(Sentence("This API has no stop sequences, so they were left out."))
    for name in without:
        _drop_field(fields, name)
    if without:
        adjustments.append(_dropped_fields_note(without))
    # extra_options are the person's own: they win, and they are never dropped.
    fields |= extra_options
    history = encode_input(request, recipient, _header(fields))
    present = (name for name in DROPPABLE_FIELDS if _has_field(fields, name))
    droppable = frozenset(name for name in present if name.partition(".")[0] not in extra_options)
    body = {**fields, "input": extra_options.get("input", history.items)}
    return ResponsesRequest(body, droppable, tuple(adjustments), history.prefix, history.reasoning)


_REASONING_WORDS = {
    "reasoning.summary": {"summary", "summaries"},
    "reasoning.effort": {"effort", "reasoning_effort"},
}


def refused_fields(error: ProviderError, body: ResponsesRequest) -> frozenset[str]:
    """Return what the next attempt should omit: the field that the error names, else one in its message."""
    named = re.search(r'"param"\s*:\s*"([^"]+)"', error.detail)
    if named is not None:
        path = re.sub(r"\[.*", "", named[1])
        fits = [name for name in body.droppable if f"{path}.".startswith(f"{name}.")]
        return frozenset(sorted(fits, key=len)[-1:])
    words = error_words(error)
    for name, terms in _REASONING_WORDS.items():
        if words & terms and name in body.droppable:
            return frozenset({name})
    # An error about reasoning items is not about the field.
    about_items = frozenset({"reasoning"}) if body.reasoning else frozenset[str]()
    return (words & body.droppable) - about_items


def count_fields(body: ResponsesRequest) -> dict[str, Any]:
    """Return the fields that the endpoint for counting accepts (POST /responses/input_tokens)."""
    names = ("model", "input", "instructions", "reasoning", "text", "tool_choice", "tools", "truncation")
    return {name: body.fields[name] for name in names if name in body.fields}


def _header(fields: dict[str, Any]) -> list[Any]:
    """Return what the model reads before the input, and what a server counts as its prefix."""
    effort, form = object_in(fields, "reasoning").get("effort"), object_in(fields, "text").get("format")
    return [fields.get("instructions"), fields.get("tools"), effort, form]


def _with_json_instruction(request: ModelRequest) -> ModelRequest:
    """Request any object in words, too: OpenAI refuses the mode unless the input, not the instructions, says JSON."""
    json_format = request.config.response_format
    if json_format is None or json_format.json_schema is not None:
        return request
    return replace(request, messages=(Message.system(JSON_ONLY), *request.messages))


def _format(json_format: JsonFormat) -> JsonObject:
    if json_format.json_schema is None:
        return {"type": "json_object"}
    return {
        "type": "json_schema",
        "name": json_format.name,
        "schema": json_format.json_schema,
        "strict": json_format.strict,
    }


def _reasoning_fields(setting: ReasoningOptions, model: str, quirks: ServerQuirks) -> dict[str, Any]:
    fields: dict[str, Any] = {"reasoning": setting.reasoning} if setting.reasoning else {}
    facts = openai_model_facts(model)
    # A model that does not reason refuses this field.
    if quirks.family == "xai" or (quirks.family == "azure" and facts is not None and facts.efforts):
        fields["include"] = ["reasoning.encrypted_content"]
    return fields


def _sampling(request: ModelRequest, setting: ReasoningOptions, adjustments: list[Sentence]) -> dict[str, Any]:
    config = request.config
    options = {"temperature": config.temperature, "top_p": config.top_p}
    values: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if values and not setting.sampling:
        note_values = {"model": request.model, "names": ", ".join(values)}
        adjustments.append(
            Sentence("“{model}” does not take {names} while it reasons, so that was left out.", note_values)
        )
        values = {}
    if config.top_k is not None:
        adjustments.append(Sentence("This API has no top_k, so it was left out."))
    return values


def _tools(request: ModelRequest, known: Capabilities, quirks: ServerQuirks, notes: list[Sentence]) -> dict[str, Any]:
    named = {"type": "function", "name": wire_name(request.tool_choice.name or "")}
    choices = {"none": "none", "required": "required", "named": named}
    tools = [_tool(spec) for spec in request.tools]
    return tool_fields(request, known, notes, tools, choices, takes_choice=quirks.tool_choice)


def _tool(spec: ToolSpec) -> dict[str, Any]:
    # Without `strict` both OpenAI and llama.cpp assume true, and few schemas are made for that.
    schema = {name: value for name, value in spec.input_schema.items() if name != "$schema"}
    tool: dict[str, Any] = {"type": "function", "name": wire_name(spec.name), "parameters": schema, "strict": False}
    return {**tool, "description": spec.description} if spec.description else tool


def _openai_only_fields(request: ModelRequest, quirks: ServerQuirks, adjustments: list[Sentence]) -> dict[str, Any]:
    """Return fields for OpenAI alone. Caching is automatic; the key directs one conversation to the same cache."""
    if quirks.family != "openai":
        return {}
    fields: dict[str, Any] = {"stream_options": {"include_obfuscation": False}}
    caching, facts = request.config.caching, openai_model_facts(request.model)
    takes_options = facts is not None and facts.cache_options
    if not caching.enabled:
        # Without a breakpoint nothing is cached; older models have no such option.
        return {**fields, "prompt_cache_options": {"mode": "explicit"}} if takes_options else fields
    if request.conversation_id:
        fields["prompt_cache_key"] = request.conversation_id
    if caching.lifetime != "long":
        return fields
    if takes_options:
        fields["prompt_cache_options"] = {"mode": "implicit", "ttl": "12h"}
    else:
        values = {"model": request.model}
        adjustments.append(Sentence("The cache lifetime of “{model}” cannot be chosen.", values))
    return fields


def _dropped_fields_note(without: frozenset[str]) -> Sentence:
    if "store" in without:
        return Sentence("This server may store the conversation: it does not accept the request not to.")
    values = {"names": ", ".join(sorted(without))}
    return Sentence("This server does not accept {names}, so the question was sent without.", values)


def _has_field(fields: dict[str, Any], name: str) -> bool:
    outer, _, inner = name.partition(".")
    return outer in fields and (not inner or inner in object_in(fields, outer))


def _drop_field(fields: dict[str, Any], name: str) -> None:
    """Remove a field; an object that becomes empty is removed with it."""
    outer, _, inner = name.partition(".")
    other_fields = {key: value for key, value in object_in(fields, outer).items() if inner and key != inner}
    if other_fields:
        fields[outer] = other_fields
    else:
        fields.pop(outer, None)
