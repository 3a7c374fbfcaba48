"""What is coloured in which line."""

from ui.transcript.blocks.code.syntax import coloring_lexer, words_by_line


def test_half_a_pair_counts_as_one():
    assert words_by_line('"\ud83d" 1', "python")[0][-1] == (4, 1, "number")
    assert words_by_line('"\U0001f600" 1', "python")[0][-1] == (5, 1, "number")


def test_who_might_never_come_to_an_end_is_not_asked():
    endless = '"' + "\\" * 2000
    assert coloring_lexer("scala") is coloring_lexer("ssp") is None
    assert not any(words_by_line(endless, "scala"))
    assert words_by_line(f"~~~scala\n{endless}\n~~~\n```scala\n{endless}\n```\n", "markdown")
