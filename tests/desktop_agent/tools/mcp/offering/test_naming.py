"""Names and identities."""

import re

import pytest

from desktop_agent.tools.mcp.offering.naming import LONGEST, digest_of, name_of, shown_schema


@pytest.mark.parametrize("tool", ["read_file", "a" * 200, "a b", "über", "", "\udc80", "x" * 61, "__"])
def test_every_name_is_one_that_providers_take(tool):
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name_of("files", tool))
    assert name_of("files", tool).startswith("files__")


def test_names_stay_apart_and_the_same():
    odd = ["a b", "a_b", "a.b", "a" * 100, "a" * 101]
    names = [name_of("files", each) for each in odd]
    assert len(set(names)) == len(odd)
    assert names == [name_of("files", each) for each in odd]
    assert name_of("files", "a_b") == "files__a_b"
    assert len(name_of("s" * 24, "t" * 100)) == LONGEST


def test_another_description_schema_hint_or_server_is_another_tool():
    hints, connection = {"read_only_hint": True}, {"command": "x"}
    plain = digest_of("Reads.", {"type": "object"}, hints, connection)
    assert plain == digest_of("Reads.", {"type": "object"}, dict(hints), dict(connection))
    others = {
        digest_of("Reads!", {"type": "object"}, hints, connection),
        digest_of("Reads.", {"type": "object", "title": "t"}, hints, connection),
        digest_of("Reads.", {"type": "object"}, {"read_only_hint": False}, connection),
        digest_of("Reads.", {"type": "object"}, hints, {"command": "y"}),
    }
    assert len(others | {plain}) == 5


def test_no_name_in_a_schema_is_lost():
    given = {"properties": {"cmd\u200b": {"type": "string"}, "cmd\u200c": {"type": "number"}}}
    assert shown_schema(given) == {"properties": {"cmd�": {"type": "string"}, "cmd�⟨1⟩": {"type": "number"}}}
