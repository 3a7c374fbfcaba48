"""Arguments in a few words: {"city": "string", "days": "integer?", "tags": list[str]}."""

import inspect
import re
from collections.abc import Mapping
from typing import Any, cast

from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter

from desktop_agent.tools.schemas.json_schema import JsonSchema
from desktop_agent.tools.schemas.wording import UntitledSchema
from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.errors import Sentence, WrongUse

TYPE_NAMES = ("string", "number", "integer", "boolean", "array", "object", "any")
_KEYWORDS = re.compile(r"\$.+|x-.+|additionalProperties|.*[pP]roperties|allOf|anyOf|oneOf|not|if|then|else|required")
_ANNOTATIONS = {
    "type",
    "title",
    "description",
    "default",
    "examples",
    "definitions",
    "propertyNames",
    "dependentRequired",
}


def schema_from_shorthand(fields: Mapping[str, object]) -> JsonSchema:
    """A schema from names and types; no other names are accepted.

    A type is a word of JSON Schema, a type of Python, or a JSON Schema of its own. A question mark behind a word, or
    behind a name, makes the argument one that may be left out. Raises WrongUse for a word that is no type.
    """
    properties: JsonObject = {}
    required: list[str] = []
    definitions: JsonObject = {}
    for key, kind in fields.items():
        name, is_optional = key.removesuffix("?"), key.endswith("?")
        if isinstance(kind, str) and kind.endswith("?"):
            kind, is_optional = kind.removesuffix("?"), True  # noqa: PLW2901 - the same type, without its mark
        if not name or name in properties:
            raise WrongUse(Sentence("“{name}” is no name for one argument.", {"name": key}))
        properties[name] = _field_schema(name, kind, definitions)
        if not is_optional:
            required.append(name)
    schema: JsonObject = {"type": "object", "properties": properties, "additionalProperties": False}
    schema |= {"required": required} if required else {}
    return JsonSchema(schema | ({"$defs": definitions} if definitions else {}))


def is_json_schema(given: Mapping[str, object]) -> bool:
    """Whether this is a JSON Schema of type object, and not shorthand for an argument that is named “type”."""
    return given.get("type") == "object" and all(name in _ANNOTATIONS or _KEYWORDS.fullmatch(name) for name in given)


def _field_schema(name: str, kind: object, definitions: JsonObject) -> JsonObject:
    if isinstance(kind, str):
        if kind not in TYPE_NAMES:
            values = {"name": name, "word": kind, "words": ", ".join(TYPE_NAMES)}
            raise WrongUse(
                Sentence("The type of the argument “{name}” is “{word}”, which is no type.", values),
                Sentence("Use one of these: {words}.", values),
            )
        return {} if kind == "any" else {"type": kind}
    if isinstance(kind, Mapping):
        return dict(cast("Mapping[str, Any]", kind))
    return _python_type_schema(name, kind, definitions)


def _python_type_schema(name: str, kind: Any, definitions: JsonObject) -> JsonObject:
    wrong = WrongUse(Sentence("The type of the argument “{name}” cannot be said as JSON.", {"name": name}))
    # pydantic would take a function for the type of its arguments.
    if inspect.isroutine(kind):
        raise wrong
    try:
        schema = TypeAdapter[Any](kind).json_schema(schema_generator=UntitledSchema)
    except (PydanticSchemaGenerationError, PydanticUserError):
        raise wrong from None
    for each, definition in cast("JsonObject", schema.pop("$defs", {})).items():
        if definitions.setdefault(each, definition) != definition:
            raise WrongUse(Sentence("Two types of the arguments are both named “{name}”.", {"name": each}))
    return schema
