"""What a model is told of arguments that a person changed."""

import json

import pytest

from desktop_agent.agent.tool_calls.tool_results import with_edit_note
from desktop_agent.types.blocks import Json, Text, ToolResult

RESULT = ToolResult(tool_use_id="1", content=(Text(text="done"),))
BEGINS = "The person changed the arguments of this call before it ran."


def note_on(requested, ran, result=RESULT):
    first = with_edit_note(result, requested, ran).content[0]
    assert isinstance(first, Text)
    return first.text


def test_only_what_is_other_than_asked_is_named():
    words = note_on({"path": "a", "content": "x"}, {"path": "a", "content": "é"})
    assert words == f'{BEGINS} It ran with {{"content": "é"}}\n\ndone'


@pytest.mark.parametrize("ran", [True, 1.0])
def test_what_only_python_takes_for_equal_is_named(ran: object) -> None:
    words = note_on({"deep": [{"path": 1}], "same": 1}, {"deep": [{"path": ran}], "same": 1})
    assert words == f'{BEGINS} It ran with {{"deep": [{{"path": {json.dumps(ran)}}}]}}\n\ndone'


def test_what_was_taken_out_is_named():
    assert note_on({"path": "a", "mode": 7}, {"path": "a"}) == f'{BEGINS} It ran without "mode".\n\ndone'


def test_a_long_value_is_cut_and_says_so():
    words = note_on({"content": "x"}, {"content": "y" * 50_000})
    assert "(50,000 characters in all)" in words
    assert len(words) < 2_000


def test_a_result_that_is_no_text_keeps_all_its_parts():
    result = ToolResult(tool_use_id="1", content=(Json(value={"a": 1}),))
    noted = with_edit_note(result, {}, {"a": 1})
    assert noted.content[1:] == result.content
    assert noted.outcome is result.outcome
