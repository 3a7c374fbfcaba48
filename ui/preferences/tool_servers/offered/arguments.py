"""What a tool takes, read from the schema of its arguments: each with its kind, and what is said about it.

JSON Schema 2020-12 (https://json-schema.org); what is no part of a list of arguments is read by nobody here.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from desktop_agent.vocabulary.blocks import JsonObject

MOST_ARGUMENTS = 60
MOST_CHOICES = 12
LONGEST_NAME = 100
LONGEST_DESCRIPTION = 2_000
# Arguments inside of arguments.
_DEEPEST = 4
_LONGEST_VALUE = 80

Ways = tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument; `name` says with dots and [] what it is a part of.

    `kinds` are the words of JSON Schema, `of` those of what a list holds; empty: anything. `choices` are the only
    values that it takes, as JSON, and `left_out` so many more. `default` is JSON, too; empty: none is said.
    """

    name: str
    kinds: tuple[str, ...] = ()
    of: tuple[str, ...] = ()
    is_required: bool = False
    description: str = ""
    choices: tuple[str, ...] = ()
    left_out: int = 0
    default: str = ""


def arguments_of(schema: JsonObject) -> tuple[tuple[Argument, ...], bool]:
    """The first of them, those inside of others after them; and whether these are all."""
    found = tuple(islice(_inside(schema, schema, "", 0), MOST_ARGUMENTS + 1))
    return found[:MOST_ARGUMENTS], len(found) <= MOST_ARGUMENTS


def count_of(schema: JsonObject) -> int:
    """How many there are, without those inside of others."""
    return len(_object(schema.get("properties")))


def _inside(schema: JsonObject, root: JsonObject, before: str, depth: int) -> Iterator[Argument]:
    required = _words(schema.get("required"))
    for name, given in _object(schema.get("properties")).items():
        whole = f"{before}{_cut(name, LONGEST_NAME)}"
        ways = _ways(_resolved(given, root), root)
        held = tuple(way for each in ways for way in _ways(_resolved(each.get("items"), root), root))
        yield _argument(whole, name, ways, held, is_required=name in required)
        if depth < _DEEPEST:
            for way in ways:
                yield from _inside(way, root, f"{whole}.", depth + 1)
            for way in held:
                yield from _inside(way, root, f"{whole}[].", depth + 1)


def _argument(whole: str, name: str, ways: Ways, held: Ways, *, is_required: bool) -> Argument:
    said = ways[0]
    choices = next((found for found in map(_choices, (*ways, *held)) if found), list[Any]())
    title = _text(said.get("title"))
    told = _text(said.get("description")) or (title if _plain(title) != _plain(name) else "")
    default = said.get("default")
    return Argument(
        whole,
        _kinds(ways),
        _kinds(held),
        is_required,
        _cut(told, LONGEST_DESCRIPTION),
        tuple(_as_json(each) for each in choices[:MOST_CHOICES]),
        max(0, len(choices) - MOST_CHOICES),
        _as_json(default) if default is not None else "",
    )


def _ways(said: JsonObject, root: JsonObject) -> Ways:
    """It may be any of these: itself, and what it names as alternatives."""
    others = [*_list(said.get("anyOf")), *_list(said.get("oneOf"))][:MOST_CHOICES]
    return (said, *(_resolved(each, root) for each in others))


def _kinds(ways: Ways) -> tuple[str, ...]:
    found = (each.get("type") for each in ways)
    kinds = (kind for each in found for kind in (_words(each) if isinstance(each, list) else _words([each])))
    return tuple(dict.fromkeys(kinds))


def _choices(said: JsonObject) -> list[Any]:
    return [said["const"]] if "const" in said else _list(said.get("enum"))


def _resolved(given: Any, root: JsonObject) -> JsonObject:
    """With what a reference inside of the schema leads to; what stands beside it wins."""
    said = _object(given)
    reference = said.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return said
    found: Any = root
    for step in reference[2:].split("/"):
        found = _object(found).get(step.replace("~1", "/").replace("~0", "~"))
    return {**_object(found), **said}


def _object(value: Any) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _words(value: Any) -> tuple[str, ...]:
    return tuple(each for each in _list(value) if isinstance(each, str))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _plain(text: str) -> str:
    return text.casefold().replace("_", " ")


def _as_json(value: Any) -> str:
    return _cut(json.dumps(value, ensure_ascii=False), _LONGEST_VALUE)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
