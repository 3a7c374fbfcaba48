"""Output as a terminal shows it, whatever the pieces it comes in."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ui.transcript.blocks.code.terminal_output import (
    MAX_LINE_LENGTH,
    MAX_LINES,
    Terminal,
    strip_commands,
    terminal_text,
)
from ui.transcript.style import TERMINAL_COLORS


def screen(*pieces, count=100):
    terminal = Terminal()
    for piece in pieces:
        terminal.feed(piece)
    return terminal.last_lines(count)


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("a\nb\n", "a\nb"),
        ("a\r\nb\r\n", "a\nb"),
        (" 5%\r50%\r100%\ndone", "100%\ndone"),
        ("abc\rX", "Xbc"),
        ("abc\b\bX", "aXc"),
        ("x" * 300 + "\ty", "x" * 300 + "y"),
        ("x" * 300 + "\x1b[5Cy", "x" * 300 + "y"),
        ("a\tb", "a       b"),
        ("ab\x1b[2Dx\x1b[3Cy", "xb  y"),
        ("abc\x1b[2G\x1b[Kd", "ad"),
        ("abc\r\x1b[2Kd", "d"),
        ("abc\x1b[1Kd", "   d"),
        ("one\ntwo\x1b[1A\rONE\x1b[1B\rTWO", "ONE\nTWO"),
        ("\x1b]0;a title\x07x\x1b]8;;http://x.org\x1b\\link\x1b]8;;\x1b\\", "xlink"),
        ("\x1b(Bx\x1b=y\x1b[?25lz", "xyz"),
        ("a\x07b\x00c", "abc"),
        ("漢字 😀", "漢字 😀"),
    ],
)
def test_commands(output, text):
    assert screen(output)[0] == text


def test_colours():
    text, words = screen(
        "\x1b[1;31merr\x1b[0m ok \x1b[32mgo\x1b[39m \x1b[38;5;33mb\x1b[38;2;255;0;0mr\x1b[m \x1b[90mq\x1b[44mw"
    )
    assert text == "err ok go br qw"
    assert words == [[(0, 3, "bold red"), (7, 2, "green"), (10, 1, "blue"), (11, 1, "red"), (13, 2, "grey")]]
    assert screen("\x1b[31m😀a\n\x1b[38;5;244mx")[1] == [[(0, 3, "red")], [(0, 1, "grey")]]
    assert {kind.split()[-1] for line in words for _, _, kind in line} <= set(TERMINAL_COLORS[True])


def test_bold_goes_together_with_colours():
    assert screen("\x1b[1mb\x1b[32mg\x1b[39mb\x1b[22mn \x1b[1;31mr\x1b[22mp\x1b[0;1mb\x1b[mn")[1] == [
        [(0, 1, "bold"), (1, 1, "bold green"), (2, 1, "bold"), (5, 1, "bold red"), (6, 1, "red"), (7, 1, "bold")]
    ]


_WORDS = ["a", "word ", "[", "5", ";", "31m", "漢"]
_SIGNS = ["\n", "\r", "\b", "\t", "\x07", "\x9c", "\x1b", "\x1b[", "\x1b\\", "\x1b(B"]
_COMMANDS = ["\x1b[31m", "\x1b[0m", "\x1b[2K", "\x1b[1A", "\x1b]0;t"]
_PIECES = st.sampled_from([*_WORDS, *_SIGNS, *_COMMANDS])


@given(st.lists(_PIECES, max_size=40), st.data())
def test_pieces_do_not_matter(parts, data):
    whole = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    pieces = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert screen(*pieces) == screen(whole)
    text, words = screen(whole)
    assert "\x1b" not in text
    assert len(words) == len(text.split("\n")) or not text


def test_what_commands_nothing_stays_as_it_is():
    assert terminal_text("a\tb\r\nc") == ("a\tb\r\nc", [])
    assert terminal_text("a\rb") == ("b", [[]])
    assert terminal_text("ab\bc") == ("ac", [[]])
    assert strip_commands("\x1b[31ma\rb\x1b[0m") == "ab"


@pytest.mark.parametrize("output", ["a\n\nb\n", "a\n\nb\n\n\n", "a\n\nb\r\n  \r\n\t", "a\n\nb"])
def test_blank_lines_at_the_end_are_not_shown_of_the_last_ones(output):
    terminal = Terminal()
    terminal.feed(output)
    assert terminal.last_lines(4)[0] == "a\n\nb"
    assert terminal.last_lines(2)[0] == "\nb"


def test_only_the_last_lines_are_kept():
    terminal = Terminal()
    terminal.feed("".join(f"{number}\n" for number in range(MAX_LINES + 50)))
    text, _ = terminal.last_lines(2)
    assert text == f"{MAX_LINES + 48}\n{MAX_LINES + 49}"
    assert len(terminal) < MAX_LINES


@pytest.mark.parametrize(
    "flood", ["\x1b]", "\x1b[1;", "\x1b", "\x1b[99999C\n", "\x1b[99999Ax\n", "\x1bP\x1b", "\x1b[0"]
)
def test_a_flood_costs_no_square_of_its_length(flood):
    text, _ = screen(flood * 60_000, count=1)
    assert "\n" not in text


def test_a_long_line_of_many_colours_costs_no_square_of_its_length():
    output = "\x1b[31m#\x1b[32m#" * 48_000
    terminal = Terminal()
    terminal.feed(output)
    for _ in range(10):
        terminal.last_lines(12)
    text, (words,) = terminal_text(output)
    assert text == "#" * 96_000
    assert words[:2] == [(0, 1, "red"), (1, 1, "green")]
    assert words[-1] == (95_999, 1, "green")


def test_a_long_line_is_cut_while_it_is_written_and_that_is_said():
    text, (words,) = screen("\x1b[31m" + "😀" * (MAX_LINE_LENGTH + 5))
    assert text.startswith("😀" * MAX_LINE_LENGTH + "… ")
    assert "😀" not in text[MAX_LINE_LENGTH:]
    assert "too long and was cut" in text
    assert words == [(0, 2 * MAX_LINE_LENGTH, "red")]
    assert screen("x" * MAX_LINE_LENGTH)[0] == "x" * MAX_LINE_LENGTH


def kept_of(terminal):
    return max(len(line.text) + len(line.ink) for line in terminal._lines)


def test_of_a_line_without_end_only_what_is_shown_is_kept():
    terminal = Terminal()
    for _ in range(50):
        terminal.feed("x1" * 8000)
        terminal.feed("\x1b[31my\x1b[0m")
    assert kept_of(terminal) <= 2 * (MAX_LINE_LENGTH + 1)
    terminal.feed("\rback\n\x1b[1Bnext")
    text, _ = terminal.last_lines(2)
    assert text.startswith("backx1x1")
    assert text.endswith("too long and was cut)\nnext")


@example(["x" * 1500] * 3 + ["\x1b[1K", "x" * 1500])
@given(st.lists(st.sampled_from(["x" * 1500, "y" * 1500, "\r", "\b", "\x1b[K", "\x1b[1K", "\x1b[2K", "\n", "\x1b[1A"])))
def test_what_is_not_kept_would_not_be_seen(pieces):
    bounded, whole = Terminal(), Terminal(1 << 30)
    for terminal in (bounded, whole):
        terminal.feed("".join(pieces))
    assert bounded.last_lines(20) == whole.last_lines(20)


def test_a_whole_output_keeps_its_long_lines():
    assert terminal_text("\x1b[31m" + "x" * 30_000) == ("x" * 30_000, [[(0, 30_000, "red")]])


def fed(monkeypatch):
    lengths = []
    feed = Terminal.feed
    monkeypatch.setattr(Terminal, "feed", lambda self, text: lengths.append(len(text)) or feed(self, text))
    return lengths


def test_of_a_flood_of_lines_those_that_are_kept_are_read(monkeypatch):
    flood = "".join(f"\x1b[32m{number}\n" for number in range(6 * MAX_LINES))
    whole = Terminal()
    whole.feed(flood)
    lengths = fed(monkeypatch)
    assert terminal_text(flood) == whole.all_lines()
    assert sum(lengths) < len(flood) / 4


def test_a_colour_that_began_a_little_above_what_is_kept_goes_on():
    flood = "\n" * MAX_LINES + "\x1b[32m" + "x\n" * (MAX_LINES + 100)
    assert terminal_text(flood)[1][0] == [(0, 1, "green")]


def test_lines_that_are_written_over_are_all_read(monkeypatch):
    flood = "first\n" + "1\n\x1b[1A" * (MAX_LINES + 5000)
    lengths = fed(monkeypatch)
    assert terminal_text(flood)[0] == "first\n1"
    assert lengths == [len(flood)]
