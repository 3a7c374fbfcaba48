"""Lists with invalid or oversized entries."""

import pytest
from mcp_types.methods import validate_server_result

from desktop_agent.mcp.limits import MAX_LISTED, MAX_TOOL_NAME_LENGTH, MAX_TOOLS, UNUSABLE_TOOLS_KEY, bound_lists

GOOD = {"name": "look", "description": "Looks.", "inputSchema": {"type": "object", "required": ["a"]}}


@pytest.mark.parametrize(
    "bad",
    [
        5,
        {"name": 5, "inputSchema": {"type": "object"}},
        {"name": " ", "inputSchema": {"type": "object"}},
        {"name": "n" * (MAX_TOOL_NAME_LENGTH + 1), "inputSchema": {"type": "object"}},
        {"name": "bad", "inputSchema": {"type": "string"}},
        {"name": "bad"},
        {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": "x"}}},
        {"name": "bad", "inputSchema": {"type": "object", "properties": []}},
        {"name": "bad", "inputSchema": {"type": "object", "required": [1]}},
        {"name": "bad", "inputSchema": {"type": "object", "$schema": 5}},
    ],
)
def test_one_bad_tool_leaves_the_others(bad):
    bounded = bound_lists({"tools": [bad, GOOD], "_meta": {UNUSABLE_TOOLS_KEY: "forged", "other": 1}})
    assert bounded["tools"] == [GOOD]
    ((name, why),) = bounded["_meta"][UNUSABLE_TOOLS_KEY]
    assert len(name) <= MAX_TOOL_NAME_LENGTH
    assert why.endswith(".")
    validate_server_result("tools/list", "2025-11-25", bounded)


@pytest.mark.parametrize(
    "odd",
    [
        {"description": 5},
        {"title": []},
        {"annotations": {"readOnlyHint": "yes!", "title": 4}},
        {"annotations": 7},
        {"icons": [{"src": "x" * 1_000_000}]},
        {"outputSchema": {"type": "string"}},
        {"execution": "often"},
    ],
)
def test_what_is_said_beside_is_left_away_where_it_is_of_no_use(odd):
    bounded = bound_lists({"tools": [{**GOOD, **odd}]})
    assert bounded["_meta"][UNUSABLE_TOOLS_KEY] == []
    assert len(str(bounded)) < 500
    validate_server_result("tools/list", "2025-11-25", bounded)


def test_hints_are_kept_as_they_are():
    hints = {
        "title": "T",
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    (tool,) = bound_lists({"tools": [{**GOOD, "annotations": hints}]})["tools"]
    assert tool["annotations"] == hints


def test_long_lists_are_cut_before_anybody_goes_through_them():
    assert len(bound_lists({"tools": [GOOD] * 100_000})["tools"]) == MAX_TOOLS + 1
    for name in ("resources", "resourceTemplates", "prompts"):
        assert len(bound_lists({name: [{}] * 100_000})[name]) == MAX_LISTED + 1
    for not_a_list in ({}, [], "x", {"tools": {}}, {"resources": 5}):
        assert bound_lists(not_a_list) == not_a_list
