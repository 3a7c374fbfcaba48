from typing import Any, Literal

import pytest
from pydantic import BaseModel

from desktop_agent.tools.decorator import is_json_schema, schema_from_shorthand
from desktop_agent.types.errors import ToolInputInvalid, WrongUse


class Place(BaseModel):
    city: str


class Other:
    class Place(BaseModel):
        street: str


def test_words_python_types_and_schemas_become_one_schema() -> None:
    fields: dict[str, object] = {
        "a": "number",
        "b": "string?",
        "c": int,
        "d": list[str],
        "e": {"type": "integer", "minimum": 3},
        "f?": Literal["x", "y"],
        "g": "any",
        "h": Place,
        "i?": list[Place],
    }
    schema = schema_from_shorthand(fields)
    assert schema.json_schema == {
        "type": "object",
        "properties": {
            "a": {"type": "number"},
            "b": {"type": "string"},
            "c": {"type": "integer"},
            "d": {"type": "array", "items": {"type": "string"}},
            "e": {"type": "integer", "minimum": 3},
            "f": {"type": "string", "enum": ["x", "y"]},
            "g": {},
            "h": {"title": "Place", "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
            "i": {"type": "array", "items": {"$ref": "#/$defs/Place"}},
        },
        "required": ["a", "c", "d", "e", "g", "h"],
        "additionalProperties": False,
        "$defs": {
            "Place": {
                "title": "Place",
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            }
        },
    }
    good: dict[str, Any] = {"a": 1.5, "c": 1, "d": ["x"], "e": 3, "g": None, "h": {"city": "Bern"}}
    assert schema.checked(good) == good
    assert schema.checked(good | {"b": "x", "f": "y", "i": [{"city": "Bern"}]})
    for bad in ({"b": None}, {"e": 2}, {"f": "z"}, {"other": 1}, {"i": [{}]}, {"d": "x"}):
        with pytest.raises(ToolInputInvalid):
            schema.checked(good | bad)
    with pytest.raises(ToolInputInvalid, match="'a' is a required"):
        schema.checked({})


def test_no_arguments_at_all() -> None:
    schema = schema_from_shorthand({})
    assert schema.checked({}) == {}
    with pytest.raises(ToolInputInvalid):
        schema.checked({"a": 1})


@pytest.mark.parametrize(
    "word", ["text", "String", "str", "int", "", "?", "string??", "number ", "list[string]", "null"]
)
def test_a_word_that_is_no_type_is_wrong_use_and_not_a_string(word: str) -> None:
    with pytest.raises(WrongUse) as refused:
        schema_from_shorthand({"a": word})
    assert "“a”" in str(refused.value)
    assert "string, number" in str(refused.value.remedy)


@pytest.mark.parametrize(
    "fields",
    [
        {"a": object()},
        {"a": lambda: 1},
        {"a": type("Own", (), {})},
        {"a": {"type": "text"}},
        {"a": {"$ref": "https://example.org"}},
        {"a": "string", "a?": "string"},
        {"?": "string"},
        {"": "string"},
        {"a": Place, "b": Other.Place, "c": list[Place], "d": list[Other.Place]},
    ],
)
def test_what_makes_no_schema_is_wrong_use(fields: dict[str, object]) -> None:
    with pytest.raises(WrongUse):
        schema_from_shorthand(fields)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "object"}, True),
        ({"type": "object", "properties": {}, "required": [], "$defs": {}, "x-own": 1, "title": "a"}, True),
        ({"type": "object", "minProperties": 1, "additionalProperties": False}, True),
        ({"type": "string"}, False),
        ({"type": "object", "name": "string"}, False),
        ({"properties": "string"}, False),
        ({}, False),
    ],
)
def test_shorthand_for_an_argument_named_type_is_no_json_schema(schema: dict[str, object], *, expected: bool) -> None:
    assert is_json_schema(schema) is expected
