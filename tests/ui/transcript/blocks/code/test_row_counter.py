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
def look(qapp):
    return RenderStyle(LIGHT, 100)


@pytest.fixture
def cuts(monkeypatch):
    """The lines that were counted row by row."""
    made = []
    monkeypatch.setattr(line_layout, "LineWrapper", lambda line, *rest: made.append(line) or LineWrapper(line, *rest))
    return made


@pytest.fixture
def no_time(monkeypatch):
    monkeypatch.setattr(row_counter, "_SLICE", 0)


class Opened:
    def __init__(self, text, look):
        self.look, self.run_later, self.told = look, [], 0
        self.block = CodeBlock(
            text, "", CodeCallbacks(lambda text: None, self.notify, wraps=True, run_later=self.run_later.append)
        )
        self.height = self.block.layout(WIDTH, look)

    def notify(self):
        self.told += 1

    def one_slice(self):
        waiting, self.run_later[:] = list(self.run_later), []
        for each in waiting:
            each()
        if not self.block.is_laid_out:
            self.height = self.block.layout(WIDTH, self.look)

    def wait(self):
        while self.run_later:
            self.one_slice()

    def paint(self, top):
        image = QImage(WIDTH, 300, QImage.Format.Format_RGB32)
        painter = QPainter(image)
        painter.translate(0, -top)
        self.block.paint(PaintContext(painter, self.look, QRect(0, top, WIDTH, 300), None))
        painter.end()


def rows_of(lines, look, width):
    counted = []
    for line in lines:
        cuts = LineWrapper(line, width, advances_of(look))
        cuts.count_more(float("inf"))
        counted.append(len(cuts.starts))
    return counted


def inner(look):
    return WIDTH - 2 * look.px(14)


@pytest.mark.parametrize("lines", [PLAIN, TABS, [*PLAIN, *TABS, "é"]], ids=["plain", "tabs", "all"])
def test_plain_lines_and_tabs_need_no_counting_at_all(look, cuts, no_time, lines):
    opened = Opened("\n".join(lines), look)
    opened.block.append("\n\tand one more")
    opened.block.layout(WIDTH - 20, look)
    opened.height = opened.block.layout(WIDTH, look)
    assert cuts == []
    assert opened.block._lines.rows.is_complete
    rows = sum(rows_of([*lines, "\tand one more"], look, inner(look)))
    assert opened.block._lines.height == rows * look.mono_line


def test_other_lines_that_stand_on_one_row_are_measured_once(look, cuts, no_time):
    opened = Opened("\n".join(MIXED), look)
    assert len(opened.run_later) == 1
    opened.wait()
    opened.block.layout(WIDTH - 20, look)
    assert cuts == []
    assert not opened.run_later


def test_a_layout_counts_for_one_moment_however_many_lines_there_are(look, cuts, no_time):
    lines = [*WIDE, *("é" * (150 + number % 9) for number in range(MANY))]
    opened = Opened("\n".join(lines), look)
    assert len(cuts) <= 1
    opened.block.layout(WIDTH - 20, look)
    opened.height = opened.block.layout(WIDTH, look)
    assert len(cuts) <= 3
    opened.one_slice()
    assert len(cuts) <= 4
    assert not opened.told
    opened.wait()
    assert opened.told == 1
    assert opened.block._lines.height == sum(rows_of(lines, look, inner(look))) * look.mono_line


def test_at_another_width_the_guess_is_good(look, no_time):
    opened = Opened("\n".join(WIDE), look)
    opened.wait()
    opened.block.layout(WIDTH // 2, look)
    rows = rows_of(WIDE, look, WIDTH // 2 - 2 * look.px(14))
    assert opened.block._lines.height == pytest.approx(sum(rows) * look.mono_line, rel=0.1)


def test_what_is_seen_and_was_guessed_wrong_is_put_right_before_the_rest(look, no_time):
    opened = Opened("\n".join([*WIDE[:100], *["中é" * 20, "\0" * 30] * 50, *WIDE]), look)
    opened.paint(opened.block._lines.top(105))
    assert not opened.told
    opened.one_slice()
    assert opened.told == 1
    assert not opened.block._lines.rows.is_complete
    (label,) = rows_of(["\0" * 30], look, inner(look))
    tops = opened.block._lines.rows.top
    assert tops(108) - tops(107) in {label, rows_of(["中é" * 20], look, inner(look))[0]}


def test_growing_while_others_are_still_counted(look, cuts, no_time):
    opened = Opened("\n".join(WIDE[:50]), look)
    for piece in ("中文", "\n中", "\n\t\tx" * 3, "漢字" * 80, "漢字", "\nend"):
        opened.block.append(piece)
        opened.one_slice()
    opened.wait()
    lines = opened.block.text.split("\n")
    assert opened.block._lines.height == sum(rows_of(lines, look, inner(look))) * look.mono_line


def test_what_is_counted_while_more_comes_has_its_height_at_once(look, monkeypatch):
    monkeypatch.setattr(row_counter, "_SLICE", 0)
    lines = [*WIDE[:10], *(["é" * 150] * 10)]
    opened = Opened("\n".join(lines), look)
    monkeypatch.setattr(row_counter, "_SLICE", 60)
    opened.block.append("\n" + WIDE[0])
    opened.block.layout(WIDTH, look)
    assert opened.block._lines.rows.is_complete
    assert opened.block._lines.height == sum(rows_of([*lines, WIDE[0]], look, inner(look))) * look.mono_line


LINE = st.one_of(
    st.text("ab \t(", max_size=70),
    st.text("ab\té漢😀\u202e\0", max_size=60),
    st.sampled_from(["x" * 2500, "中" * 1200, "\t" * 50 + "end", "\0" * 40 + "a", "a\u0301" * 40, ""]),
)


@settings(max_examples=examples(120), deadline=None)
@given(st.lists(LINE, min_size=1, max_size=8), st.lists(LINE, max_size=4), st.integers(60, 400), st.integers(1, 1300))
@example(["\t" * 50 + "end"], [], 100, 1)
@example(["a中中" * 50], [], 100, 1300)
def test_every_line_has_the_rows_that_it_is_drawn_on(look, lines, more, width, wider):
    code = CodeLines("\n".join(lines), wraps=True)
    code.layout(width + 30, look)
    code.layout(width, look)
    for piece in more:
        code.append(piece)
        code.layout(width, look)
        code.append("\n")
        code.layout(width, look)
    for wide in (width, width + wider):
        code.layout(wide, look)
        while not code.rows.count_more():
            pass
        code.layout(wide, look)
        tops = [code.rows.top(index) for index in range(len(code) + 1)]
        rows = rows_of(code.text.split("\n"), look, wide)
        assert [after - before for before, after in pairwise(tops)] == rows
