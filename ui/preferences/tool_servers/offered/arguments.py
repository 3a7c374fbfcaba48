"""What a tool takes, read from the schema of its arguments: each with its kind, and what is said about it.

JSON Schema 2020-12 (https://json-schema.org); what is no part of a list of arguments is read by nobody here.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from desktop_agent.vocabulary.blocks import JsonObject

MAX_ARGUMENTS = 60
MAX_CHOICES = 12
MAX_ARGUMENT_NAME_LENGTH = 100
MAX_DESCRIPTION_LENGTH = 2_000
# Arguments inside of arguments.
_MAX_DEPTH = 4
_MAX_VALUE_LENGTH = 80

SchemaAlternatives = tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True)
class ToolArgument:
    """One argument; `name` says with dots and [] what it is a part of.

    `kinds` are the words of JSON Schema, `of` those of what a list holds; empty: anything. `choices` are the only
    values that it takes, as JSON, and `omitted_parts_note` so many more. `default` is JSON, too; empty: none is said.
    """

    name: str
    kinds: tuple[str, ...] = ()
    item_kinds: tuple[str, ...] = ()
    is_required: bool = False
    description: str = ""
    choices: tuple[str, ...] = ()
    omitted_choices: int = 0
    default: str = ""


def parse_tool_arguments(schema: JsonObject) -> tuple[tuple[ToolArgument, ...], bool]:
    """The first of them, those inside of others after them; and whether these are all."""
    found = tuple(islice(_walk(schema, schema, "", 0), MAX_ARGUMENTS + 1))
    return found[:MAX_ARGUMENTS], len(found) <= MAX_ARGUMENTS


def count_arguments(schema: JsonObject) -> int:
    """How many there are, without those inside of others."""
    return len(_as_object(schema.get("properties")))


def _walk(schema: JsonObject, root: JsonObject, before: str, depth: int) -> Iterator[ToolArgument]:
    required = _as_strings(schema.get("required"))
    for name, given in _as_object(schema.get("properties")).items():
        whole = f"{before}{_truncate(name, MAX_ARGUMENT_NAME_LENGTH)}"
        ways = _alternatives(_resolve_ref(given, root), root)
        held = tuple(way for each in ways for way in _alternatives(_resolve_ref(each.get("items"), root), root))
        yield _argument(whole, name, ways, held, is_required=name in required)
        if depth < _MAX_DEPTH:
            for way in ways:
                yield from _walk(way, root, f"{whole}.", depth + 1)
            for way in held:
                yield from _walk(way, root, f"{whole}[].", depth + 1)


def _argument(
    whole: str, name: str, ways: SchemaAlternatives, held: SchemaAlternatives, *, is_required: bool
) -> ToolArgument:
    said = ways[0]
    choices = next((found for found in map(_enum_values, (*ways, *held)) if found), list[Any]())
    title = _as_string(said.get("title"))
    told = _as_string(said.get("description")) or (title if _normalize(title) != _normalize(name) else "")
    default = said.get("default")
    return ToolArgument(
        whole,
        _schema_types(ways),
        _schema_types(held),
        is_required,
        _truncate(told, MAX_DESCRIPTION_LENGTH),
        tuple(_as_json(each) for each in choices[:MAX_CHOICES]),
        max(0, len(choices) - MAX_CHOICES),
        _as_json(default) if default is not None else "",
    )


def _alternatives(said: JsonObject, root: JsonObject) -> SchemaAlternatives:
    """It may be any of these: itself, and what it names as alternatives."""
    others = [*_as_list(said.get("anyOf")), *_as_list(said.get("oneOf"))][:MAX_CHOICES]
    return (said, *(_resolve_ref(each, root) for each in others))


def _schema_types(ways: SchemaAlternatives) -> tuple[str, ...]:
    found = (each.get("type") for each in ways)
    kinds = (kind for each in found for kind in (_as_strings(each) if isinstance(each, list) else _as_strings([each])))
    return tuple(dict.fromkeys(kinds))


def _enum_values(said: JsonObject) -> list[Any]:
    return [said["const"]] if "const" in said else _as_list(said.get("enum"))


def _resolve_ref(given: Any, root: JsonObject) -> JsonObject:
    """With what a reference inside of the schema leads to; what stands beside it wins."""
    said = _as_object(given)
    reference = said.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return said
    found: Any = root
    for step in reference[2:].split("/"):
        found = _as_object(found).get(step.replace("~1", "/").replace("~0", "~"))
    return {**_as_object(found), **said}


def _as_object(value: Any) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def _as_list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _as_strings(value: Any) -> tuple[str, ...]:
    return tuple(each for each in _as_list(value) if isinstance(each, str))


def _as_string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _normalize(text: str) -> str:
    return text.casefold().replace("_", " ")


def _as_json(value: Any) -> str:
    return _truncate(json.dumps(value, ensure_ascii=False), _MAX_VALUE_LENGTH)


def _truncate(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
