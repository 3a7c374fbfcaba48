import json
from typing import Any

import pytest

from desktop_agent.providers import tool_arguments, tool_call_builder
from desktop_agent.providers.tool_call_builder import MAX_NAME_LENGTH, MAX_REPARSED_SIZE, ToolCallBuilder
from desktop_agent.providers.transport.json_codec import loads_object
from desktop_agent.types.blocks import ToolUse


def ended_calls(*pieces: object, cut: bool = False) -> list[ToolUse]:
    """Return the calls that these argument pieces of one index become."""
    builder = ToolCallBuilder("p", lambda: "made")
    builder.add_fragment(index=0, id="c", name="f")
    for piece in pieces:
        builder.add_fragment(index=0, arguments=piece)
    return [call for _, call in builder.end(cut=cut)]


@pytest.mark.parametrize(
    "pieces",
    [
        ("{}", '{"a": [1]}'),
        ("{}", '{"a"', ": [1]}"),
        ('{"a": [1]}', '{"a": [1]}'),
        ('{"a"', ": [1]}", '{"a": [1]}'),
        ('{"a"', '{"a": [1', '{"a": [1]}'),
        ("{}", '{"a"', '{"a": [1]}', '{"a": [1]}'),
        ('{"a": [1]}', "{}"),
        ({}, '{"a": [1]}'),
        ({"a": [1]}, {"a": [1]}),
        ('{"a": [1]}', {"a": [1]}),
        ('{"a"', {"a": [1]}),
    ],
)
def test_what_can_be_read_in_one_way_only_is_read(pieces: tuple[object, ...]) -> None:
    ((call),) = ended_calls(*pieces)
    assert (call.input, call.malformed) == ({"a": [1]}, None)


@pytest.mark.parametrize(
    "pieces",
    [
        ('{"a": 1}', '{"a": 2}'),
        ('{"a": 1}', '{"b": 2}'),
        ({"a": 1}, {"b": 2}),
        ('{"a": 1}', "nonsense"),
        ('{"a": ', '{"b": 1}'),
        ("[1]", "[1]"),
    ],
)
def test_ambiguous_arguments_are_a_call_that_failed(pieces: tuple[object, ...]) -> None:
    ((call),) = ended_calls(*pieces)
    assert call.malformed
    assert call.input == {}


def test_nothing_is_read_into_a_call_that_was_cut() -> None:
    assert ended_calls('{"a"', '{"a": 1', cut=True) == []


def test_a_call_handed_out_once_is_not_handed_out_again() -> None:
    builder = ToolCallBuilder("p", lambda: "made")
    handed: list[ToolUse] = []
    for index, city in enumerate(["Paris", "Paris", "Rome"]):
        builder.add_fragment(index=index, id="c", name="f", arguments={"city": city})
        handed += [call for _, call in builder.end(index=index)]
    assert [call.input for call in handed] == [{"city": "Paris"}, {"city": "Rome"}]


def test_a_name_that_comes_again_beside_whole_arguments_is_another_call() -> None:
    builder = ToolCallBuilder("p", lambda: "made")
    for path in ("a", "b"):
        builder.add_fragment(index=0, name="read_file", arguments=f'{{"path": "{path}"}}')
    assert [call.input for _, call in builder.end()] == [{"path": "a"}, {"path": "b"}]


def test_arguments_too_long_to_be_looked_at_again_and_again_go_on() -> None:
    builder = ToolCallBuilder("p", lambda: "made")
    text = '{"a": "' + "x" * MAX_REPARSED_SIZE + '"}'
    builder.add_fragment(index=0, name="write_file", arguments=text)
    builder.add_fragment(index=0, name="write_file", arguments=" ")
    ((_, call),) = builder.end()
    assert call.input == {"a": "x" * MAX_REPARSED_SIZE}


@pytest.mark.parametrize("index", [None, 0])
@pytest.mark.parametrize("pieces", [1, 3, "object"])
def test_large_calls_without_ids_are_all_handed_out(index: int | None, pieces: int | str) -> None:
    """Calls in sequence or with one index, with the name beside whole arguments or beside each piece."""
    builder = ToolCallBuilder("p", lambda: "made")
    expected = [{"text": letter * MAX_REPARSED_SIZE} for letter in "abc"] + [{"text": "short"}]
    for arguments in expected:
        text = json.dumps(arguments)
        size = len(text) if isinstance(pieces, str) else -(-len(text) // pieces)
        cut = [arguments] if pieces == "object" else [text[start : start + size] for start in range(0, len(text), size)]
        for piece in cut:
            builder.add_fragment(index=index, name="write_file", arguments=piece)
    calls = [call for _, call in builder.end()]
    assert [call.input for call in calls] == expected
    assert [call.malformed for call in calls] == [None] * len(expected)


@pytest.mark.parametrize("as_text", [True, False])
def test_a_large_call_said_again_is_one(as_text: bool) -> None:
    builder = ToolCallBuilder("p", lambda: "made")
    expected = {"text": "x" * MAX_REPARSED_SIZE}
    for _ in range(3):
        builder.add_fragment(name="write_file", arguments=json.dumps(expected) if as_text else expected)
    assert [call.input for _, call in builder.end()] == [expected]


@pytest.mark.parametrize(
    "head",
    [
        {"index": 0},
        {"index": 0, "id": "c"},
        {"index": 0, "id": "c", "name": "write_file"},
        {"index": 0, "name": "write_file"},
        {"id": "c"},
        {},
    ],
    ids=lambda head: " ".join(head) or "nothing",
)
def test_arguments_in_many_pieces_cost_no_square_of_their_length(
    head: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[int] = []

    def counting(text: str) -> Any:
        parsed.append(len(text))
        return loads_object(text)

    for module in (tool_arguments, tool_call_builder):
        monkeypatch.setattr(module, "loads_object", counting)
    builder = ToolCallBuilder("p", lambda: "made")
    builder.add_fragment(index=head.get("index"), id=head.get("id"), name="write_file")
    text = json.dumps({"text": ("a line of words\n" * 500 + "{}\n") * 4})
    for start in range(0, len(text), 4):
        builder.add_fragment(**head, arguments=text[start : start + 4])
    ((_, call),) = builder.end()
    assert call.input == json.loads(text)
    # All pieces, and the whole text for each piece after which it may be complete.
    assert sum(parsed) < 20 * len(text)


def test_names_and_ids_without_end_are_bounded() -> None:
    builder = ToolCallBuilder("p", lambda: "made")
    builder.add_fragment(index=0, id="i" * 5000, name="n" * 5000, arguments="{")
    builder.add_fragment(index=0, id="i" * 5000, arguments="}")
    ((_, call),) = builder.end()
    assert (call.id, call.name, call.input) == ("made", "n" * MAX_NAME_LENGTH + "…", {})
