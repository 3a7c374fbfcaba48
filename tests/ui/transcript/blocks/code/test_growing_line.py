"""A line that grows at its end: each piece of text costs what it is long, and nothing is cut otherwise than at once."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.frame.examples import examples
from ui.style.theme import LIGHT
from ui.transcript.blocks.code import line_breaking
from ui.transcript.blocks.code.code_block import CodeBlock, CodeCallbacks
from ui.transcript.blocks.code.line_breaking import MAX_PIECE_LENGTH, Advances
from ui.transcript.blocks.code.line_layout import LineLayoutOptions, UnwrappedLine, WrappedLine
from ui.transcript.style import RenderStyle, WordFormats

WIDTH = 760
SIZE = 300_000


@pytest.fixture(scope="module")
def style(qapp):
    return RenderStyle(LIGHT, 100)


class Looked:
    """Counts of the lines that were made and of the characters that were read."""

    def __init__(self, monkeypatch):
        self.made, self.characters = 0, 0
        for kind in (UnwrappedLine, WrappedLine):
            monkeypatch.setattr(kind, "__init__", self._counted(kind.__init__))
        for name in ("is_plain", "estimate_width", "max_columns"):
            monkeypatch.setattr(Advances, name, self._measured(getattr(Advances, name)))
        real = line_breaking.find_long_runs
        monkeypatch.setattr(
            line_breaking, "find_long_runs", lambda line, start=0: self.note(line[start:]) or real(line, start)
        )

    def note(self, text):
        self.characters += len(text)

    def _counted(self, real):
        def counted(line, *args):
            self.made += 1
            real(line, *args)

        return counted

    def _measured(self, real):
        return lambda advances, text: self.note(text) or real(advances, text)


@pytest.mark.parametrize("wraps", [False, True])
@pytest.mark.parametrize("words", ["abc def gh", "中文字 de é", "a\tb", "👨\u200d👩\u200d👧 "])
def test_more_text_costs_what_it_is_long(style, monkeypatch, words, wraps):
    later = []
    host = CodeCallbacks(lambda text: None, lambda: None, wraps=wraps, run_later=later.append)
    block = CodeBlock("first\n" + words * (SIZE // len(words)), "", host, is_open=True)
    block.layout(WIDTH, style)
    while later:
        later.pop()()
    block.layout(WIDTH, style)
    counts = Looked(monkeypatch)
    for _ in range(10):
        characters_before = counts.characters
        block.append(words * 4)
        block.layout(WIDTH, style)
        assert counts.characters - characters_before <= 4 * MAX_PIECE_LENGTH
    assert counts.made == 0
    assert block._lines.rows.is_complete


def test_a_line_that_grows_while_it_is_counted_is_not_begun_again(style, monkeypatch):
    monkeypatch.setattr("ui.transcript.blocks.code.row_counter._SLICE", 0)
    later = []
    host = CodeCallbacks(lambda text: None, lambda: None, wraps=True, run_later=later.append)
    block = CodeBlock("中文字" * 20_000, "", host, is_open=True)
    row_counts = []
    for _ in range(12):
        block.append("中")
        while later:
            later.pop()()
        block.layout(WIDTH, style)
        row_counts.append(len(next(iter(block._lines.rows.counting.values())).starts))
    assert row_counts == sorted(set(row_counts))


PARTS = st.sampled_from(
    [
        "x" * 30,
        "ab\t",
        "漢",
        "😀",
        "\0",
        "\u202e\0" * 20,
        "e\u0301",
        "👨\u200d",
        "👩",
        "🇩",
        "🇪",
        "\u0301",
        "plain " * 200,
    ]
)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(PARTS, min_size=2, max_size=30), st.sampled_from([1, 7, 40]), st.sampled_from([None, 250, 700]))
@example(["x" * 30] * 33 + ["plain"] + ["\0"] * 40 + ["end"], 40, None)
@example(["x" * 30] * 33 + ["\0"] * 60 + ["end" * 100], 1, 250)
@example(["😀" + "x" * 29] * 33 + ["\0"] * 60 + ["end" * 100], 1, None)
@example(["x" * 5 + "\0" * 40] + ["a"] * 60, 1, 700)
def test_grown_it_is_cut_as_a_whole_line_is(style, parts, times, width):
    wraps = width is not None
    kind = WrappedLine if wraps else UnwrappedLine
    setting = LineLayoutOptions(style, WordFormats(style), wraps=wraps, width=width or 250)
    line = parts[0]
    growing = kind(line, setting)
    for part in parts[1:]:
        added = part * times
        line += added
        growing.append(line, added)
        if wraps:
            growing.count_more(float("inf"))
        else:
            assert growing.width == pytest.approx(sum(growing._widths))
        growing.piece(len(growing.starts) - 1)
    complete = kind(line, setting)
    if wraps:
        complete.count_more(float("inf"))
    assert list(growing.starts) == list(complete.starts)
    assert growing.size == complete.size
    for number in range(len(complete.starts)):
        assert growing.span(number) == complete.span(number)
        assert growing.piece(number).layout.text() == complete.piece(number).layout.text()
        assert growing.position_of(number) == complete.position_of(number)
    assert wraps or growing.width == complete.width


def test_resizing_leaves_lines_that_do_not_wrap_as_they_are(style, monkeypatch):
    block = CodeBlock("中文字" * 100_000, "", CodeCallbacks(lambda text: None, lambda: None))
    block.layout(WIDTH, style)
    counts = Looked(monkeypatch)
    block.layout(WIDTH - 40, style)
    assert (counts.made, counts.characters) == (0, 0)
