"""JSON schemas of third parties, valid and hostile ones."""

import http.server
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_agent.tools.json_schema import JsonSchema
from desktop_agent.types.errors import ToolInputInvalid, WrongUse
from tests.frame.examples import examples


def of(**properties: Any) -> JsonSchema:
    return JsonSchema({"type": "object", "properties": properties})


def problem(schema: JsonSchema, arguments: dict[str, Any]) -> str:
    with pytest.raises(ToolInputInvalid) as refused:
        schema.checked(arguments)
    return str(refused.value)


SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Search",
    "type": "object",
    "properties": {
        "words": {"type": "string", "minLength": 1, "pattern": "^\\S"},
        "where": {"enum": ["web", "files"]},
        "limits": {"type": "array", "items": {"type": "integer", "minimum": 1}, "uniqueItems": True},
        "anything": True,
        "nothing": False,
        "tree": {"$ref": "#/$defs/tree"},
        "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["words"],
    "additionalProperties": False,
    "$defs": {
        "tree": {
            "type": "object",
            "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
            "additionalProperties": False,
        }
    },
}
FITTING: dict[str, Any] = {
    "words": "a",
    "where": "web",
    "limits": [1, 2],
    "anything": {"x": None},
    "tree": {"children": [{"children": []}, {}]},
    "either": None,
}


def test_what_fits_comes_back_as_a_copy_and_the_model_gets_the_schema_as_it_is() -> None:
    schema = JsonSchema(SCHEMA)
    checked = schema.checked(FITTING)
    assert checked == FITTING
    checked["limits"].append(3)
    assert FITTING["limits"] == [1, 2]
    assert schema.json_schema == SCHEMA
    schema.json_schema["properties"].clear()
    assert schema.json_schema == SCHEMA


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"words": 5}, "words: 5 is not of type 'string'"),
        ({"words": ""}, "words: "),
        ({"words": " a"}, "words: ' a' does not match"),
        ({"where": "here"}, "where: 'here' is not one of"),
        ({"limits": [1, 0]}, "limits.1: 0 is less than the minimum"),
        ({"limits": [1, "a"]}, "limits.1: 'a' is not of type"),
        ({"limits": [1, 1.0]}, "limits: two of the items are the same"),
        ({"nothing": 1}, "False schema does not allow 1"),
        ({"other": 1}, "arguments: 'other' is not an argument here"),
        ({"tree": {"children": [{"children": [{"x": 1}]}]}}, "tree.children.0.children.0: 'x' is not an argument"),
        ({"either": 5}, "either: 5 is not valid under any of the given schemas (either: 5 is not of type 'string'"),
    ],
)
def test_what_does_not_fit_is_said_with_its_place(change: dict[str, Any], why: str) -> None:
    sentence = problem(JsonSchema(SCHEMA), FITTING | change)
    assert sentence.startswith("The arguments do not fit. ")
    assert why in sentence


def test_all_problems_are_said_up_to_ten_and_each_is_short() -> None:
    schema = of(**{f"a{number}": {"type": "string"} for number in range(50)})
    sentence = problem(schema, {f"a{number}": ["x" * 10_000] for number in range(50)})
    assert sentence.count("is not of type") == 10
    assert len(sentence) < 5000
    assert "a is required" not in sentence
    assert "'b' is a required property" in problem(JsonSchema({"type": "object", "required": ["a", "b"]}), {})


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (True, "object"),
        (False, "object"),
        ([], "object"),
        ({}, "object"),
        ({"type": "string"}, "object"),
        ({"type": ["object"]}, "object"),
        ({"type": "object", "properties": []}, "properties: "),
        ({"type": "object", "properties": {"a": {"type": "text"}}}, "properties.a.type: 'text'"),
        ({"type": "object", "required": "a"}, "required: "),
        ({"type": "object", "properties": {"a": {"type": "object", "minProperties": -1}}}, "minProperties"),
        ({"type": "object", "default": {1, 2}}, "not JSON"),
        ({"type": "object", "default": float("nan")}, "not JSON"),
        ({"type": "object", "description": "x" * 300_000}, "larger than 256,000"),
        ({"type": "object", "$schema": 5}, "cannot be read"),
        ({"type": "object", "$schema": "http://["}, "cannot be read"),
        ({"type": "object", "$id": "http://[", "properties": {"a": {"$ref": "b"}}}, "cannot be"),
        ({"type": "object", "properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#"}}}, "outermost"),
    ],
)
def test_a_schema_that_is_wrong_is_refused_when_it_is_made(schema: Any, why: str) -> None:
    with pytest.raises(WrongUse, match=why):
        JsonSchema(schema)


@pytest.mark.parametrize("pattern", ["(", "(?=a)", r"(a)\1", "(a{1000}){1000}", "[[:x:]", "x" * 5000], ids=range(6))
@pytest.mark.parametrize("keyword", ["pattern", "patternProperties"])
def test_a_pattern_that_cannot_be_matched_in_bounded_time_is_refused(pattern: str, keyword: str) -> None:
    rule = {"pattern": pattern} if keyword == "pattern" else {"patternProperties": {pattern: True}}
    with pytest.raises(WrongUse, match="pattern"):
        of(a={"type": ["string", "object"], **rule})


@pytest.mark.parametrize(
    "draft",
    [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
        "https://example.org/unknown",
    ],
)
def test_every_draft_is_known_and_bounded(draft: str) -> None:
    rules = {"type": "object", "definitions": {"word": {"type": "string", "pattern": "^(a+)+$"}}}
    schema = JsonSchema({"$schema": draft, **rules, "properties": {"a": {"$ref": "#/definitions/word"}}})
    assert schema.checked({"a": "aa"}) == {"a": "aa"}
    assert "does not match" in problem(schema, {"a": "a" * 50_000 + "b"})


def test_old_drafts_keep_their_meaning() -> None:
    draft = "http://json-schema.org/draft-04/schema#"
    rules = {"type": "object", "properties": {"a": {"minimum": 1, "exclusiveMinimum": True}}}
    assert "a: 1 is less than or equal" in problem(JsonSchema({"$schema": draft, **rules}), {"a": 1})


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """A real server that would answer, and the paths it was asked for."""
    paths: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"type": "string"}')

        def log_message(self, *_arguments: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}", paths
        listening.shutdown()
        thread.join()


def test_nothing_is_ever_fetched(server: tuple[str, list[str]]) -> None:
    address, paths = server
    hostile: list[dict[str, Any]] = [
        {"properties": {"a": {"$ref": f"{address}/a"}}},
        {"$id": f"{address}/base/", "properties": {"a": {"$ref": "b"}}},
        {"properties": {"a": {"$id": f"{address}/base/", "properties": {"b": {"$ref": "c#/d"}}}}},
        {"$ref": f"{address}/root"},
        {"properties": {"a": {"$dynamicRef": f"{address}/d#x"}}},
        {"$schema": f"{address}/schema", "properties": {"a": {"$ref": f"{address}/schema"}}},
        {"properties": {"a": {"$ref": "#/hidden/b"}}, "hidden": {"b": {"$ref": f"{address}/hidden"}}},
        {"allOf": [{"if": {"$ref": f"{address}/if"}}]},
        {"$defs": {"never used": {"$ref": f"{address}/unused"}}},
        {"properties": {"a": {"$ref": "file:///etc/passwd"}}},
        {"properties": {"a": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}},
        {"properties": {"a": {"$ref": "#/$defs/nothing"}}},
        {"properties": {"a": {"$ref": "#nowhere"}}},
    ]
    for schema in hostile:
        with pytest.raises(WrongUse, match=r"points out of it|cannot be read"):
            JsonSchema({"type": "object", **schema})
    # What only looks like a reference is none.
    innocent = {"default": {"$ref": f"{address}/default"}, "properties": {"$ref": {"const": {"$ref": address}}}}
    assert JsonSchema({"type": "object", **innocent}).checked({"$ref": {"$ref": address}})
    assert paths == []


def test_references_within_by_name_and_by_own_id_are_followed() -> None:
    schema = JsonSchema(
        {
            "type": "object",
            "properties": {"a": {"$ref": "#word"}, "b": {"$ref": "urn:tree"}},
            "$defs": {
                "word": {"$anchor": "word", "type": "string"},
                "tree": {"$id": "urn:tree", "type": "object", "additionalProperties": {"$ref": "#"}},
            },
        }
    )
    assert schema.checked({"a": "x", "b": {"c": {"d": {}}}})
    assert "b.c.d: 5 is not of type 'object'" in problem(schema, {"b": {"c": {"d": 5}}})


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


BOTH = [{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/x"}]
DOUBLING = {str(n): {"allOf": [{"$ref": f"#/$defs/{n - 1}"}] * 2} for n in range(1, 41)} | {"0": True}
BACK = {"patternProperties": {"^(a+)+$": False}, "additionalProperties": {"patternProperties": {"b": {}}}}
ROW = {"properties": {"b": {"type": "string"}}, "required": ["b"]}
CIRCLE = {"x": {"$ref": "#/$defs/y"}, "y": {"$ref": "#/$defs/x"}}
BRANCHING = {"properties": {"a": {"anyOf": BOTH}}, "required": ["b"]}
LONG = "[a-z]{1,900}[b-z]{1,900}[a-y]{1,900}!"
SLOW, DEEP, ODD = "takes too long", "nested too deep", "cannot be checked"
# The schema of `a`, its definitions, the value of `a`, and the error.
HOSTILE: dict[str, tuple[Any, dict[str, Any], Any, str]] = {
    "a circle of references": (BOTH[0], CIRCLE, 1, DEEP),
    "two to the forty": ({"$ref": "#/$defs/40"}, DOUBLING, 1, SLOW),
    "branches at every level": (BOTH[0], {"x": BRANCHING}, nested(60), SLOW),
    "one pattern with everything": ({"items": {"pattern": LONG}}, {}, ["abcdefgh" * 5000] * 5, SLOW),
    "every name with a pattern": (BACK, {}, {f"{'a' * 50}{n}": {"b" * 50: 1} for n in range(60_000)}, SLOW),
    "all of it in every message": ({"anyOf": [{"items": {"not": {}}}]}, {}, ["x" * 100_000] * 1000, SLOW),
    "a number too large for a quotient": ({"multipleOf": 0.5}, {}, 10**400, ODD),
    "many objects": ({"items": ROW}, {}, [{"b": "x"}] * 90_000, SLOW),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_would_take_for_ever_ends_with_a_sentence(kind: str) -> None:
    rules, definitions, value, why = HOSTILE[kind]
    schema = JsonSchema({"type": "object", "properties": {"a": rules}, "$defs": definitions})
    sentence = problem(schema, {"a": value})
    assert why in sentence
    assert len(sentence) < 200


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ({"$ref": "#"}, "goes round in a circle"),
        ({"allOf": [{"$ref": "#/allOf/0"}]}, "goes round in a circle"),
        ({"patternProperties": {"(a+)+$": {}}, "unevaluatedProperties": False}, "unevaluatedProperties"),
        ({"$defs": DOUBLING, "$ref": "#/$defs/40"}, "takes too long"),
    ],
)
def test_what_no_arguments_could_be_checked_against_is_refused_at_once(rules: dict[str, Any], why: str) -> None:
    with pytest.raises(WrongUse, match=why):
        JsonSchema({"type": "object", **rules})


def test_a_schema_nested_too_deep_is_refused() -> None:
    deep: Any = {}
    for _ in range(400):
        deep = {"properties": {"a": deep}}
    with pytest.raises(WrongUse):
        JsonSchema({"type": "object", **deep})


def test_large_arguments_that_are_honest_pass() -> None:
    schema = of(
        text={"type": "string", "pattern": "\\S"},
        days={"type": "array", "items": {"type": "string", "pattern": "^\\d{4}-\\d{2}-\\d{2}$"}, "uniqueItems": True},
        rows={"type": "array", "items": {"type": "object", "additionalProperties": {"type": "number"}}},
    )
    days = [f"{year}-01-{day:02}" for year in range(1000, 1100) for day in range(1, 29)]
    rows = [{"a": 1, "b": 2.5} for _ in range(2000)]
    arguments = {"text": "x" * 2_000_000, "days": days, "rows": rows}
    assert schema.checked(arguments) == arguments
    assert "days: two of the items are the same" in problem(schema, {"days": [*days, days[0]]})


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


KEYWORDS = (
    *("properties", "items", "anyOf", "not", "$ref", "$id", "enum", "pattern", "patternProperties", "type", "if"),
    *("required", "additionalProperties", "minimum", "multipleOf", "uniqueItems", "$schema", "$dynamicRef"),
)
LIKELY: list[Any] = ["#", "#/properties", "object", {"a": {"$ref": "#"}}, [{}, {"$ref": "#/anyOf/0"}]]


@given(
    st.dictionaries(st.sampled_from(KEYWORDS), ANY_JSON | st.sampled_from(LIKELY), max_size=5),
    st.dictionaries(st.sampled_from(["a", "b"]), ANY_JSON, max_size=2),
)
@settings(max_examples=examples(200), deadline=None)
def test_any_schema_and_any_arguments_end_in_a_copy_or_a_sentence(rules: dict[str, Any], arguments: Any) -> None:
    try:
        schema = JsonSchema({**rules, "type": "object"})
    except WrongUse:
        return
    try:
        checked = schema.checked(arguments)
    except ToolInputInvalid:
        return
    assert checked == arguments
