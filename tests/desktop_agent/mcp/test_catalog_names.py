"""Names and digests of the tools that servers offer."""

import re

import pytest

from desktop_agent.mcp.catalog import MAX_NAME_LENGTH, tool_digest, tool_name, visible_schema


@pytest.mark.parametrize("tool", ["read_file", "a" * 200, "a b", "über", "", "\udc80", "x" * 61, "__"])
def test_every_name_is_one_that_providers_take(tool):
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool_name("files", tool))
    assert tool_name("files", tool).startswith("files__")


def test_names_stay_apart_and_the_same():
    odd = ["a b", "a_b", "a.b", "a" * 100, "a" * 101]
    names = [tool_name("files", name) for name in odd]
    assert len(set(names)) == len(odd)
    assert names == [tool_name("files", name) for name in odd]
    assert tool_name("files", "a_b") == "files__a_b"
    assert len(tool_name("s" * 24, "t" * 100)) == MAX_NAME_LENGTH


def test_another_description_schema_hint_or_server_is_another_tool():
    hints, connection = {"read_only_hint": True}, {"command": "x"}
    plain = tool_digest("Reads.", {"type": "object"}, hints, connection)
    assert plain == tool_digest("Reads.", {"type": "object"}, dict(hints), dict(connection))
    digests = {
        tool_digest("Reads!", {"type": "object"}, hints, connection),
        tool_digest("Reads.", {"type": "object", "title": "t"}, hints, connection),
        tool_digest("Reads.", {"type": "object"}, {"read_only_hint": False}, connection),
        tool_digest("Reads.", {"type": "object"}, hints, {"command": "y"}),
    }
    assert len(digests | {plain}) == 5


def test_no_name_in_a_schema_is_lost():
    schema = {"properties": {"cmd\u200b": {"type": "string"}, "cmd\u200c": {"type": "number"}}}
    assert visible_schema(schema) == {"properties": {"cmd�": {"type": "string"}, "cmd�⟨1⟩": {"type": "number"}}}
