"""Rows of many wrapped lines: most are known by arithmetic, the others are counted for one moment in all."""

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QRect
from PySide6.QtGui import QImage, QPainter

from tests.frame.examples import examples
from ui.style.theme import LIGHT
from ui.transcript.blocks.block import PaintContext
from ui.transcript.blocks.code import line_layout, row_counter
from ui.transcript.blocks.code.code_block import CodeBlock, CodeCallbacks
from ui.transcript.blocks.code.code_lines import CodeLines
from ui.transcript.blocks.code.line_breaking import LineWrapper, advances_of
from ui.transcript.style import RenderStyle

WIDTH = 760
MANY = 2_000
PLAIN = [f"    if x == {number}: return foo(bar)" + " # and more" * (number % 9) for number in range(MANY)]
TABS = [f"\t\tif x == {number} {{ return foo(bar) }}\t// so" for number in range(MANY)]
WIDE = ["中文字符" * (30 + number % 7) for number in range(MANY)]
MIXED = [f"\tname = «中文» # {number} é" for number in range(MANY)]


@pytest.fixture(scope="module")
def style(qapp):
    return RenderStyle(LIGHT, 100)


@pytest.fixture
def cuts(monkeypatch):
    """Record the lines that are counted row by row."""
    lines = []
    monkeypatch.setattr(line_layout, "LineWrapper", lambda line, *rest: lines.append(line) or LineWrapper(line, *rest))
    return lines


@pytest.fixture
def no_time(monkeypatch):
    monkeypatch.setattr(row_counter, "_SLICE", 0)


class CodeHarness:
    def __init__(self, text, style):
        self.style, self.run_later, self.told = style, [], 0
        self.block = CodeBlock(
            text, "", CodeCallbacks(lambda text: None, self.notify, wraps=True, run_later=self.run_later.append)
        )
        self.height = self.block.layout(WIDTH, style)

    def notify(self):
        self.told += 1

    def one_slice(self):
        callbacks, self.run_later[:] = list(self.run_later), []
        for callback in callbacks:
            callback()
        if not self.block.is_laid_out:
            self.height = self.block.layout(WIDTH, self.style)

    def wait(self):
        while self.run_later:
            self.one_slice()

    def paint(self, top):
        image = QImage(WIDTH, 300, QImage.Format.Format_RGB32)
        painter = QPainter(image)
        painter.translate(0, -top)
        self.block.paint(PaintContext(painter, self.style, QRect(0, top, WIDTH, 300), None))
        painter.end()


def rows_of(lines, style, width):
    row_counts = []
    for line in lines:
        cuts = LineWrapper(line, width, advances_of(style))
        cuts.count_more(float("inf"))
        row_counts.append(len(cuts.starts))
    return row_counts


def inner(style):
    return WIDTH - 2 * style.px(14)


@pytest.mark.parametrize("lines", [PLAIN, TABS, [*PLAIN, *TABS, "é"]], ids=["plain", "tabs", "all"])
def test_plain_lines_and_tabs_need_no_counting_at_all(style, cuts, no_time, lines):
    harness = CodeHarness("\n".join(lines), style)
    harness.block.append("\n\tand one more")
    harness.block.layout(WIDTH - 20, style)
    harness.height = harness.block.layout(WIDTH, style)
    assert cuts == []
    assert harness.block._lines.rows.is_complete
    rows = sum(rows_of([*lines, "\tand one more"], style, inner(style)))
    assert harness.block._lines.height == rows * style.mono_line


def test_other_lines_that_stand_on_one_row_are_measured_once(style, cuts, no_time):
    harness = CodeHarness("\n".join(MIXED), style)
    assert len(harness.run_later) == 1
    harness.wait()
    harness.block.layout(WIDTH - 20, style)
    assert cuts == []
    assert not harness.run_later


def test_a_layout_counts_for_one_moment_however_many_lines_there_are(style, cuts, no_time):
    lines = [*WIDE, *("é" * (150 + number % 9) for number in range(MANY))]
    harness = CodeHarness("\n".join(lines), style)
    assert len(cuts) <= 1
    harness.block.layout(WIDTH - 20, style)
    harness.height = harness.block.layout(WIDTH, style)
    assert len(cuts) <= 3
    harness.one_slice()
    assert len(cuts) <= 4
    assert not harness.told
    harness.wait()
    assert harness.told == 1
    assert harness.block._lines.height == sum(rows_of(lines, style, inner(style))) * style.mono_line


def test_at_another_width_the_guess_is_good(style, no_time):
    harness = CodeHarness("\n".join(WIDE), style)
    harness.wait()
    harness.block.layout(WIDTH // 2, style)
    rows = rows_of(WIDE, style, WIDTH // 2 - 2 * style.px(14))
    assert harness.block._lines.height == pytest.approx(sum(rows) * style.mono_line, rel=0.1)


def test_what_is_seen_and_was_guessed_wrong_is_put_right_before_the_rest(style, no_time):
    harness = CodeHarness("\n".join([*WIDE[:100], *["中é" * 20, "\0" * 30] * 50, *WIDE]), style)
    harness.paint(harness.block._lines.top(105))
    assert not harness.told
    harness.one_slice()
    assert harness.told == 1
    assert not harness.block._lines.rows.is_complete
    (label,) = rows_of(["\0" * 30], style, inner(style))
    tops = harness.block._lines.rows.top
    assert tops(108) - tops(107) in {label, rows_of(["中é" * 20], style, inner(style))[0]}


def test_growing_while_others_are_still_counted(style, cuts, no_time):
    harness = CodeHarness("\n".join(WIDE[:50]), style)
    for piece in ("中文", "\n中", "\n\t\tx" * 3, "漢字" * 80, "漢字", "\nend"):
        harness.block.append(piece)
        harness.one_slice()
    harness.wait()
    lines = harness.block.text.split("\n")
    assert harness.block._lines.height == sum(rows_of(lines, style, inner(style))) * style.mono_line


def test_what_is_counted_while_more_comes_has_its_height_at_once(style, monkeypatch):
    monkeypatch.setattr(row_counter, "_SLICE", 0)
    lines = [*WIDE[:10], *(["é" * 150] * 10)]
    harness = CodeHarness("\n".join(lines), style)
    monkeypatch.setattr(row_counter, "_SLICE", 60)
    harness.block.append("\n" + WIDE[0])
    harness.block.layout(WIDTH, style)
    assert harness.block._lines.rows.is_complete
    assert harness.block._lines.height == sum(rows_of([*lines, WIDE[0]], style, inner(style))) * style.mono_line


LINE = st.one_of(
    st.text("ab \t(", max_size=70),
    st.text("ab\té漢😀\u202e\0", max_size=60),
    st.sampled_from(["x" * 2500, "中" * 1200, "\t" * 50 + "end", "\0" * 40 + "a", "a\u0301" * 40, ""]),
)


@settings(max_examples=examples(120), deadline=None)
@given(st.lists(LINE, min_size=1, max_size=8), st.lists(LINE, max_size=4), st.integers(60, 400), st.integers(1, 1300))
@example(["\t" * 50 + "end"], [], 100, 1)
@example(["a中中" * 50], [], 100, 1300)
def test_every_line_has_the_rows_that_it_is_drawn_on(style, lines, more, width, wider):
    code = CodeLines("\n".join(lines), wraps=True)
    code.layout(width + 30, style)
    code.layout(width, style)
    for piece in more:
        code.append(piece)
        code.layout(width, style)
        code.append("\n")
        code.layout(width, style)
    for new_width in (width, width + wider):
        code.layout(new_width, style)
        while not code.rows.count_more():
            pass
        code.layout(new_width, style)
        tops = [code.rows.top(index) for index in range(len(code) + 1)]
        rows = rows_of(code.text.split("\n"), style, new_width)
        assert [next_top - top for top, next_top in pairwise(tops)] == rows
