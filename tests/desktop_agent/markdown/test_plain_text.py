"""Markdown without its signs, for one line of a list."""

import pytest

from desktop_agent.markdown.plain_text import find_signs, kept_ranges, without_signs


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("# A title", "A title"),
        ("a **bold *and* wide** word", "a bold and wide word"),
        ("***both*** and 在**中文**里", "both and 在中文里"),
        ("- [x] done\n* next", "done\nnext"),
        ("> > deep `code_x`", "deep code_x"),
        ("see [the page](http://x.y/(a)) and ![it](a.png)", "see the page and it"),
        ("__init__ and snake_case_name", "__init__ and snake_case_name"),
        ("_two words_ and ~~gone~~", "two words and gone"),
        ("```python\nprint(1)\n```", "\nprint(1)\n"),
        ("| a |\n|---|:--:|\n| c |", "| a |\n\n| c |"),
        ("2 * 3 * 4, **kwargs and *args", "2 * 3 * 4, **kwargs and *args"),
        ("`**kw**`", "**kw**"),
        ("1. first", "1. first"),
    ],
)
def test_only_what_marks_up_is_left_out(text: str, plain: str) -> None:
    assert without_signs(text) == plain


def test_only_the_beginning_of_a_line_begins_a_line() -> None:
    text = "a - b\n- c"
    assert [text[begin:end] for begin, end in find_signs(text, 2)] == ["- "]
    assert list(find_signs(text, 2, 5)) == []
    assert list(kept_ranges(2, 9, find_signs(text, 2))) == [(2, 6), (8, 9)]


@pytest.mark.parametrize(
    "piece", ["*", "[", "`a ", "> ", "_a ", "*a", "**a ", "[a](", "- ", "~~a", " ", "|---", "[a](x", "# "]
)
def test_a_long_row_of_signs_takes_no_time_to_speak_of(piece: str) -> None:
    assert without_signs(piece * 5_000 + "x").endswith("x")
