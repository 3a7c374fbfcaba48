"""Where lines are cut: bounded pieces, nothing lost, nothing torn that is drawn as one."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PySide6.QtGui import QTextLayout, QTextOption

from tests.frame.examples import examples
from ui.style.theme import LIGHT
from ui.transcript.blocks.code.line_breaking import (
    MAX_PIECE_LENGTH,
    Advances,
    LineWrapper,
    advances_of,
    find_piece_starts,
)
from ui.transcript.blocks.code.line_layout import LineLayoutOptions, WrappedLine
from ui.transcript.style import RenderStyle, WordFormats

FAMILY, FLAG, ACCENT = "👨\u200d👩\u200d👧", "🇩🇪", "e\u0301"


@pytest.fixture(scope="module")
def style(qapp):
    return RenderStyle(LIGHT, 100)


def parts_of(line, starts):
    return [line[start:end] for start, end in zip(starts, [*starts[1:], len(line)], strict=True)]


@pytest.mark.parametrize("whole", [FAMILY, FLAG, ACCENT, "x"])
@pytest.mark.parametrize("shift", range(6))
def test_pieces_are_bounded_and_tear_nothing(whole, shift):
    line = "a" * shift + whole * (4 * MAX_PIECE_LENGTH)
    parts = parts_of(line, find_piece_starts(line))
    assert "".join(parts) == line
    assert max(map(len, parts)) <= MAX_PIECE_LENGTH
    assert {part.replace(whole, "") for part in parts} <= {"", "a" * shift}


def test_a_run_of_hidden_characters_is_never_cut():
    line = "a" * 990 + "\0\u202e" * 5000 + "b" * 3000
    parts = parts_of(line, find_piece_starts(line))
    assert "".join(parts) == line
    assert sum("\0" in part for part in parts) == 1
    assert max(len(part.replace("\0", "").replace("\u202e", "")) for part in parts) <= MAX_PIECE_LENGTH


CODE = st.one_of(
    st.text("ab   .(-", max_size=90),
    st.text("ab \t.(é漢😀\u202e-", max_size=60),
    st.lists(st.sampled_from([FAMILY, FLAG, ACCENT, "漢", "a", "\0"]), max_size=40).map("".join),
)


@settings(max_examples=examples(80), deadline=None)
@given(CODE, st.integers(100, 300))
@example("a\t" * 30, 150)
@example("ab\t" + "x" * 90, 150)
def test_rows_hold_the_line_and_are_not_wider_than_they_may_be(style, line, width):
    wrapped = WrappedLine(line, LineLayoutOptions(style, WordFormats(style), wraps=True, width=width))
    wrapped.count_more(float("inf"))
    parts = parts_of(line, wrapped.starts)
    assert "".join(parts) == line
    assert len(parts) == wrapped.rows
    for number, part in enumerate(parts):
        assert wrapped.piece(number).width <= width + 0.1 or len(part) == 1 or part in {FAMILY, FLAG, ACCENT}


@settings(max_examples=examples(40), deadline=None)
@given(st.text("ab \tcdef漢é😀\0", min_size=1, max_size=30).map(lambda text: text * 60), st.integers(0, 2000))
def test_rows_are_the_same_however_far_they_are_counted_at_a_time(style, line, first):
    advances = advances_of(style)
    whole, steps = LineWrapper(line, 200, advances), LineWrapper(line, 200, advances)
    whole.count_more(float("inf"))
    steps.wrap_until(first)
    steps.wrap_rows(5)
    assert steps.starts == whole.starts[: len(steps.starts)]
    while not steps.is_complete:
        steps.count_more(0)
    assert steps.starts == whole.starts
    assert steps.count == len(whole.starts)


def test_plain_rows_are_as_long_as_a_layout_breaks_them(style):
    line, width, option = "x" * 1000, 333, QTextOption()
    option.setWrapMode(QTextOption.WrapMode.WrapAnywhere)
    layout = QTextLayout(line, style.mono)
    layout.setTextOption(option)
    layout.beginLayout()
    row = layout.createLine()
    row.setLineWidth(width)
    layout.endLayout()
    assert LineWrapper(line, width, advances_of(style)).starts[1] == row.textLength()


def test_a_font_with_chinese_characters_is_loaded_only_when_the_code_has_one(style):
    advances = Advances(style.mono, is_even=style.mono_is_even)
    advances.columns(["plain = code(1)", "\ttab and é"])
    advances.estimate_width("plain = code(1) and é")
    assert "_wide" not in vars(advances)
    assert advances["漢"] == advances["한"] == advances._wide
