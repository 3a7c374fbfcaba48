"""The arguments of a call on one line, and when they are too many for that."""

import json

import pytest

from desktop_agent.conversation.items import CallState, ToolCallItem
from desktop_agent.types.blocks import Outcome, ToolResult
from ui.transcript.rows.call_arguments import (
    arguments_summary,
    changes_summary,
    is_large,
    language_of_file,
    todos_summary,
)

MANY = [{"a": number, "b": "漢"} for number in range(4000)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a" * 100, False),
        ({"a": [1, 2.5, None, True, "b"]}, False),
        ("a" * 30_000, True),
        ({"a" * 30_000: 1}, True),
        ([0] * 30_000, True),
        ([["a" * 100] * 10] * 30, True),
    ],
)
def test_what_is_large(value, expected):
    assert is_large(value) is expected


def test_what_is_nested_deeply_is_large():
    value = 1
    for _ in range(300):
        value = {"k": value}
    assert is_large(value)


def test_what_is_folded_is_written_as_far_as_it_is_seen(monkeypatch):
    pieces = []
    write = json.JSONEncoder.iterencode

    def counted(*args):
        for piece in write(*args):
            pieces.append(piece)
            yield piece

    monkeypatch.setattr(json.JSONEncoder, "iterencode", counted)
    assert arguments_summary({"a": MANY, "b": "c" * 10_000}).startswith('a: [{"a": 0, "b": "漢"}, {"a": 1')
    assert len(pieces) < 400


def summary_of(name, given, **known):
    return changes_summary(ToolCallItem("i", "m", "t", name, **known), given)


@pytest.mark.parametrize(
    ("name", "arguments", "summary"),
    [
        ("write_file", {"path": "a", "content": "x\ny\n"}, "a +2"),
        ("edit_file", {"path": "a", "old_text": "x\n", "new_text": "z\ny\n"}, "a +2 \N{MINUS SIGN}1"),
        ("apply_patch", {"patch": "*** Begin Patch\n*** Delete File: a\n*** End Patch"}, "a"),
    ],
)
def test_no_lines_are_counted_that_are_not_known(name, arguments, summary):
    assert summary_of(name, arguments) == summary


@pytest.mark.parametrize(
    ("outcome", "known", "summary"),
    [
        (Outcome.SUCCEEDED, {"lines": (1, 3)}, "a +1 \N{MINUS SIGN}3"),
        (Outcome.SUCCEEDED, {"lines": (0, 0), "changed_nothing": True}, "a · nothing changed"),
        (Outcome.SUCCEEDED, {}, "a +2"),
        (Outcome.FAILED, {"changed_nothing": True}, "a · nothing changed"),
        (Outcome.DENIED, {}, "a"),
        (Outcome.CANCELLED, {"lines": (2, 0)}, "a +2"),
    ],
)
def test_a_call_that_is_over_tells_what_it_changed(outcome, known, summary):
    result = ToolResult(tool_use_id="t", outcome=outcome)
    ended = {"state": CallState.ENDED, "result": result}
    assert summary_of("write_file", {"path": "a", "content": "x\ny\n"}, **ended, **known) == summary


@pytest.mark.parametrize(
    ("known", "summary"),
    [({}, "a"), ({"lines": (4, 3)}, "a +4 \N{MINUS SIGN}3"), ({"changed_nothing": True}, "a · nothing changed")],
)
def test_a_long_write_tells_what_it_changed_without_being_compared(known, summary):
    result = ToolResult(tool_use_id="t", outcome=Outcome.SUCCEEDED)
    given = {"path": "a", "content": "x\n" * 20_000}
    assert summary_of("write_file", given, state=CallState.ENDED, result=result, **known) == summary


def test_a_folded_list_says_how_far_it_is_and_what_is_being_done():
    items = [{"text": "Read", "state": "done"}, {"text": "Write the test", "state": "started"}, {"text": "Mend"}]
    assert todos_summary("update_todos", {"items": items}) == "1 of 3 done · Write the test"
    assert todos_summary("update_todos", {"items": [*items[:1], "broken", {"state": None}]}) == "1 of 2 done"
    assert todos_summary("update_todos", {"items": "none"}) == ""
    assert todos_summary("read_file", {"items": items}) == ""


@pytest.mark.parametrize(
    ("path", "language"),
    [("src/main.py", "py"), ("Makefile", "Makefile"), ("a.tar.gz", "gz"), (".bashrc", ".bashrc"), (5, ""), (None, "")],
)
def test_a_file_has_the_language_of_its_name(path, language):
    assert language_of_file({"path": path}) == language
