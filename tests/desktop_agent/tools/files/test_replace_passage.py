"""Replacement of a passage of a text, whatever its line ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_agent.tools.files.text_files import TextFormat, decode_with_newlines, normalize_newlines, replace_passage
from desktop_agent.types.errors import ToolFailed

PLAIN = TextFormat(newline="\n")


def after(text: str, old: str, new: str, *, everywhere: bool = False) -> str:
    format_ = decode_with_newlines(text.encode())[1]
    return replace_passage("a", text, format_, old, new, replace_all=everywhere).after


def test_a_windows_line_end_is_never_taken_for_two() -> None:
    with pytest.raises(ToolFailed, match="is not in"):
        after("a\r\nb", "a\n\nb", "c")
    assert after("a\r\n\r\nb", "a\n\nb", "c") == "c"


def test_a_text_that_repeats_itself_is_no_trap() -> None:
    # By a regular expression this would compare 10,000,000,000 characters.
    assert replace_passage("a", "\n" * 200_000 + "x", PLAIN, "\n" * 50_000 + "x", "y").lines == (150_001,)
    with pytest.raises(ToolFailed, match="is not in"):
        replace_passage("a", "a\n" * 200_000, PLAIN, "a\n" * 50_000 + "b", "")


def test_new_line_ends_are_those_of_the_file() -> None:
    assert after("a\r\nb\r\n", "b", "b\nc") == "a\r\nb\r\nc\r\n"
    assert after("a", "a", "b\nc") == "b\nc"
    assert after("a\rb\r\nc", "c", "d\ne") == "a\rb\r\nd\re"
    assert after("a\rb\r\nc", "a", "d\ne") == "d\re\rb\r\nc"


@given(st.text("ab\r\n", max_size=12), st.text("ab\n", min_size=1, max_size=4), st.text("xy\n", max_size=3))
def test_it_is_what_replacing_in_plain_text_gives(text: str, old: str, new: str) -> None:
    plain = normalize_newlines(text)
    if old not in plain:
        with pytest.raises(ToolFailed):
            after(text, old, new, everywhere=True)
        return
    if old == new:
        return
    assert normalize_newlines(after(text, old, new, everywhere=True)) == plain.replace(old, new)


def remedy_for(text: str, old: str) -> str:
    with pytest.raises(ToolFailed) as caught:
        replace_passage("a", text, PLAIN, old, "new")
    return str(caught.value.remedy)


def test_what_stands_there_instead_is_told() -> None:
    assert "At line 2 it stands with other spaces" in remedy_for("def f():\n\treturn  1\n", "    return 1")
    assert remedy_for("one\nresult = compute(a)\n", "result = computed(a)").startswith(
        "The nearest is line 2: result = compute(a)"
    )
    assert remedy_for("one\ntwo\n", "something else entirely") == "Read the file again and copy the text from it."
    assert remedy_for("", "x") == "Read the file again and copy the text from it."


def test_many_places_are_counted_and_some_named() -> None:
    replacement = replace_passage("a", "x\n" * 14, PLAIN, "x", "y", replace_all=True)
    assert replacement.description == "replaced 14 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 4 more"
