import pytest

from ui.approval.untrusted_text import fold_lines, map_folded_positions
from ui.style.text_display import arguments_as_json, arguments_from_json


def test_arguments_are_shown_so_that_reading_back_gives_the_same():
    arguments = {
        "command": "rm \u202e\u200b x",
        "deep": {"list": [1, 2.5, None, True], "text": "ü\n"},
        "\u2066key": "🍜",
    }
    text = arguments_as_json(arguments)
    assert "\u202e" not in text
    assert "\\u202e" in text
    assert "ü" in text
    assert arguments_from_json(text) == (arguments, "")


@pytest.mark.parametrize(
    "text", ["", "{", '{"a": 1,}', "[1]", '"text"', '{"a": NaN}', '{"a": 1, "a": 2}', "[" * 100_000]
)
def test_what_is_no_object_is_refused_with_a_reason(text):
    value, problem = arguments_from_json(text)
    assert value is None
    assert problem


def test_long_lines_are_folded_and_nothing_is_lost():
    text = "short\n" + "x" * 2500 + "\nend"
    result = fold_lines(text, 1000)
    assert result.replace("\n↪ ", "") == text
    assert max(len(line) for line in result.split("\n")) <= 1002


@pytest.mark.parametrize("text", ["abcdefghij", "abc\ndefghijk\n\nlmnopqrstu\n", "abcdefgh", ""])
def test_places_are_found_again_in_what_was_broken(text):
    folded = fold_lines(text, 4)
    positions = map_folded_positions(text, range(len(text)), 4)
    assert [folded[position] for position in positions] == list(text)
