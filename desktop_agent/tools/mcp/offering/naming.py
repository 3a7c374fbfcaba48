"""Names and identities of a server's tools."""

import hashlib
import json
import re
from typing import Any, cast

from desktop_agent.tools.answers import named_apart
from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.text.hidden_characters import without_hidden

LONGEST = 64
LONGEST_WORDS = 8_000
_ODD = re.compile(r"[^a-zA-Z0-9_-]")
_SIGN = 8


def name_of(server_id: str, tool: str) -> str:
    """`server__tool` as providers take names: 64 letters, digits, “_” and “-”.

    A name that had to be changed ends with a sign made from the whole of it, so that no two become one and each is
    the same at every start.
    """
    plain = f"{server_id}__{_ODD.sub('_', tool)}"
    if plain == f"{server_id}__{tool}" and len(plain) <= LONGEST:
        return plain
    sign = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:_SIGN]
    return f"{plain[: LONGEST - _SIGN - 1]}_{sign}"


def digest_of(description: str, schema: JsonObject, hints: JsonObject, connection: JsonObject) -> str:
    """What a tool says that it is, and of whom: another of any of these is another tool to standing rules."""
    whole = json.dumps([description, schema, hints, connection], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(whole.encode()).hexdigest()[:32]


def shown(text: str, most: int = LONGEST_WORDS) -> str:
    """Without what nobody can see: a description could tell a model what a person cannot read."""
    seen = without_hidden(text[:most])
    return seen if len(text) <= most else f"{seen}…"


def shown_schema(value: Any) -> Any:
    """The same of every text in a schema, which a model reads as a whole. Raises RecursionError."""
    match value:
        case str():
            return without_hidden(value)
        case dict():
            pairs = cast("JsonObject", value).items()
            return named_apart((without_hidden(name), shown_schema(inner)) for name, inner in pairs)
        case list():
            return [shown_schema(each) for each in cast("list[Any]", value)]
        case _:
            return value
