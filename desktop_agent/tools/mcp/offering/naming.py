"""Names and identities of a server's tools."""

import hashlib
import json
import re
from typing import Any, cast

from desktop_agent.tools.answers import unique_keys
from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.text.hidden_characters import replace_hidden

MAX_NAME_LENGTH = 64
MAX_DESCRIPTION_LENGTH = 8_000
_INVALID_CHARACTER = re.compile(r"[^a-zA-Z0-9_-]")
_SUFFIX_LENGTH = 8


def tool_name(server_id: str, tool: str) -> str:
    """`server__tool` as providers take names: 64 letters, digits, “_” and “-”.

    A name that had to be changed ends with a sign made from the whole of it, so that no two become one and each is
    the same at every start.
    """
    plain = f"{server_id}__{_INVALID_CHARACTER.sub('_', tool)}"
    if plain == f"{server_id}__{tool}" and len(plain) <= MAX_NAME_LENGTH:
        return plain
    sign = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:_SUFFIX_LENGTH]
    return f"{plain[: MAX_NAME_LENGTH - _SUFFIX_LENGTH - 1]}_{sign}"


def tool_digest(description: str, schema: JsonObject, hints: JsonObject, connection: JsonObject) -> str:
    """What a tool says that it is, and of whom: another of any of these is another tool to standing rules."""
    whole = json.dumps([description, schema, hints, connection], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(whole.encode()).hexdigest()[:32]


def visible_text(text: str, most: int = MAX_DESCRIPTION_LENGTH) -> str:
    """Without what nobody can see: a description could tell a model what a person cannot read."""
    seen = replace_hidden(text[:most])
    return seen if len(text) <= most else f"{seen}…"


def visible_schema(value: Any) -> Any:
    """The same of every text in a schema, which a model reads as a whole. Raises RecursionError."""
    match value:
        case str():
            return replace_hidden(value)
        case dict():
            pairs = cast("JsonObject", value).items()
            return unique_keys((replace_hidden(name), visible_schema(inner)) for name, inner in pairs)
        case list():
            return [visible_schema(each) for each in cast("list[Any]", value)]
        case _:
            return value
