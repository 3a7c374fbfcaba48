"""JSON on demand: as `response_format` where the family takes it, told in words where it does not."""

from dataclasses import dataclass, field
from typing import Any

from desktop_agent.providers.dialects.servers import ServerQuirks
from desktop_agent.providers.transport.json_text import dumps
from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.requests import Capabilities, JsonFormat, ModelRequest

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
