"""What is coloured in which line."""

import pytest
from pygments.lexers import get_lexer_by_name

from desktop_agent.markdown.code_highlighting import highlight_code
from tests.ui.transcript.blocks.code.lexed_words import words_by_line
from ui.transcript.blocks.code.highlighter_protocol import HighlightRequest
from ui.transcript.blocks.code.highlighter_worker import highlight_slices, iter_words_by_line
from ui.transcript.style import SYNTAX_COLORS


def test_half_a_pair_counts_as_one():
    assert words_by_line('"\ud83d" 1', "python")[0][-1] == (4, 1, "number")
    assert words_by_line('"\U0001f600" 1', "python")[0][-1] == (5, 1, "number")


def test_no_language_is_left_out():
    assert any(words_by_line('val x = "a"', "scala"))
    assert any(words_by_line("```scala\nval x = 1\n```\n", "markdown")[1])


def test_every_kind_has_a_colour():
    kinds = {"comment", "keyword", "function", "builtin", "string", "number"}
    assert kinds <= set(SYNTAX_COLORS[False]) & set(SYNTAX_COLORS[True])


def test_an_endless_line_is_coloured_at_its_beginning():
    words = words_by_line("1," * 50_000 + "\n1", "python")
    assert (len(words[0]), words[0][-1], len(words[1])) == (4000, (7998, 1, "number"), 1)


def test_a_line_is_there_before_the_next_is_read():
    def tokens():
        yield from get_lexer_by_name("python").get_tokens("x = 1\ny")
        raise AssertionError

    assert next(iter_words_by_line(tokens())) == [(4, 1, "number")]


@pytest.mark.parametrize("text", ["", "x", "x = 1\n" * 250, ("1," * 700 + "\n") * 9])
def test_slices_are_the_whole(text):
    steps = list(highlight_slices(HighlightRequest(text, "python")))
    assert [line for step in steps for line in step.words] == words_by_line(text, "python")
    assert [step.line for step in steps] == [
        sum(len(earlier.words) for earlier in steps[:index]) for index in range(len(steps))
    ]
    assert [step.is_last for step in steps] == [False] * (len(steps) - 1) + [True]


def test_the_first_slice_is_a_screen():
    assert [len(step.words) for step in highlight_slices(HighlightRequest("x = 1\n" * 250, "python"))] == [60, 100, 91]


def test_the_last_line_of_a_diff_is_coloured_without_its_end() -> None:
    assert words_by_line("+one\n+two", "diff") == [[(0, 4, "string")], [(0, 4, "string")]]
    assert highlight_code("+one\n+two", "diff") == [("+one", "string"), ("\n", ""), ("+two", "string")]
    assert highlight_code("", "diff") == []
