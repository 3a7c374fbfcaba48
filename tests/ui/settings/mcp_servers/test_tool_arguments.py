"""What is read of a schema: kinds, choices, what is inside of what, and where it ends."""

from ui.settings.mcp_servers.server_text import describe_kinds
from ui.settings.mcp_servers.tool_arguments import (
    MAX_ARGUMENTS,
    MAX_CHOICES,
    MAX_DESCRIPTION_LENGTH,
    ToolArgument,
    parse_tool_arguments,
)


def read(properties, **options):
    return parse_tool_arguments({"type": "object", "properties": properties, **options})[0]


def test_name_kind_need_and_words():
    arguments = read(
        {
            "query": {"type": "string", "description": "What to look for."},
            "most": {"type": "integer", "default": 50, "title": "Most"},
            "state": {"enum": ["open", "closed"], "title": "Which state", "default": None},
            "odd": True,
        },
        required=["query", 3],
    )
    assert arguments == (
        ToolArgument("query", ("string",), is_required=True, description="What to look for."),
        ToolArgument("most", ("integer",), default="50"),
        ToolArgument("state", description="Which state", choices=('"open"', '"closed"')),
        ToolArgument("odd"),
    )


def test_what_is_inside_of_others_stands_behind_them():
    place = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    arguments = read(
        {
            "place": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}], "description": "Where."},
            "stops": {"type": "array", "items": {"$ref": "#/$defs/Place"}},
            "labels": {"anyOf": [{"type": "array", "items": {"enum": ["a", "b"], "type": "string"}}, {"type": "null"}]},
        },
        **{"$defs": {"Place": place}},
    )
    assert arguments == (
        ToolArgument("place", ("object", "null"), description="Where."),
        ToolArgument("place.city", ("string",), is_required=True),
        ToolArgument("stops", ("array",), ("object",)),
        ToolArgument("stops[].city", ("string",), is_required=True),
        ToolArgument("labels", ("array", "null"), ("string",), choices=('"a"', '"b"')),
    )


def test_a_schema_that_goes_round_ends():
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    arguments = read({"first": {"$ref": "#/$defs/Node"}}, **{"$defs": {"Node": node}})
    assert [argument.name for argument in arguments] == ["first", *("first" + ".next" * depth for depth in range(1, 5))]


def test_references_to_nowhere_leave_it_open():
    references = {"a": "#/$defs/None", "b": "https://example.org/other", "c": 3, "d": "#/properties/e/x"}
    arguments = read({name: {"$ref": target} for name, target in references.items()} | {"e": []})
    assert [argument.kinds for argument in arguments] == [()] * 5


def test_it_is_bounded():
    schema = {"enum": [f"{'x' * 200}{number}" for number in range(MAX_CHOICES + 3)], "description": "y" * 9_000}
    arguments, is_all = parse_tool_arguments(
        {"properties": {f"p{number}": schema for number in range(MAX_ARGUMENTS + 5)}}
    )
    assert (len(arguments), is_all) == (MAX_ARGUMENTS, False)
    assert (len(arguments[0].choices), arguments[0].omitted_choices) == (MAX_CHOICES, 3)
    assert len(arguments[0].choices[0]) < 100
    assert len(arguments[0].description) == MAX_DESCRIPTION_LENGTH + 1
    assert parse_tool_arguments({"properties": {f"p{number}": schema for number in range(MAX_ARGUMENTS)}})[1] is True
    assert parse_tool_arguments({"properties": "none"}) == ((), True)


def test_kinds_in_words():
    assert describe_kinds(("array", "null"), ("string", "integer")) == "list (text or whole number) or nothing"
    assert describe_kinds(("array",)) == "list"
    assert describe_kinds(("surprise",)) == "anything"
