"""What is wrong with arguments that a person writes is said in our words, with what to do."""

import pytest

from ui.style.text_display import arguments_from_json

CASES = {
    "": "Write {}",
    "  \n": "Write {}",
    "{": "A name in double quotes is missing",
    '{"a": 1, b: 2}': "A name in double quotes is missing",
    "{'a': 1}": "A name in double quotes is missing",
    '{"a" 1}': "A colon is missing",
    '{"a": 1': "A comma, or the closing bracket, is missing",
    '{"a": 1 "b": 2}': "A comma, or the closing bracket, is missing",
    '{"a": tru}': "A value is missing",
    '{"a": }': "A value is missing",
    '{"a": "x': "has no end",
    '{"a": "x\ny"}': "line break",
    '{"a": "\\q"}': "backslash",
    '{"a": "\\u12"}': "backslash",
    "{} x": "after the end",
    '{"a": NaN}': "Write a number",
    '{"a": 1, "a": 2}': "used twice",
    "[1]": "write {…}",
    "[" * 100_000: "nested too deep",
    '{"a": ' + "1" * 5000 + "}": "too many digits",
    '{"a": 1e999}': "1e999 is too large",
    "\ufeff{}": "not valid JSON",
}


@pytest.mark.parametrize(("text", "words"), CASES.items(), ids=[repr(each[:12]) for each in CASES])
def test_each_mistake_has_a_sentence_with_a_remedy(text, words):
    value, problem = arguments_from_json(text)
    assert value is None
    assert words in problem
    assert not any(theirs in problem for theirs in ("Expecting", "Invalid", "Unterminated", "Extra data", "recursion"))


def test_a_comma_too_many_is_said_to_be_one_by_every_python():
    _, problem = arguments_from_json('{\n  "a": 1,\n}')
    assert "comma" in problem
    assert problem.startswith(("Line 3, column 1: ", "Line 2, column 9: "))
