"""Code in which something hides shows it, and is copied as it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QImage, QPainter

from tests.ui.pixels import colors_of
from ui.style.theme import LIGHT
from ui.transcript.blocks.code.code_lines import CodeLines
from ui.transcript.blocks.code.line_breaking import spell_out_line
from ui.transcript.markdown.inline import slice_utf16
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.style import RenderStyle

TROJAN = 'if level != "user\u202e \u2066# check\u2069 \u2066":'


@pytest.fixture
def style(qapp):
    return RenderStyle(LIGHT, 100)


def test_a_line_that_hides_nothing_is_itself():
    assert spell_out_line('x = "😀 👨\u200d👩\u200d👧 é\u00a0"\t# y') is None


def test_what_reorders_is_spelled_out():
    shown = spell_out_line(TROJAN)
    assert shown.text == 'if level != "user⟨U+202E⟩ ⟨U+2066⟩# check⟨U+2069⟩ ⟨U+2066⟩":'
    label = shown.labels[0]
    assert slice_utf16(shown.text, label.shown_start, label.shown_start + label.shown_length) == "⟨U+202E⟩"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("a\0\0\0b", "a⟨U+0000⟩⟨U+0000⟩⟨U+0000⟩b"),
        ("a\0\0\0\0b", "a⟨U+0000 × 4⟩b"),
        ("\0\0\0\0\u202e\u202e\u202e\u202e", "⟨U+0000 × 4⟩⟨U+202E × 4⟩"),
        ("a" + "\0\u202e" * 20 + "b", "a⟨U+0000 U+202E × 40⟩b"),
        ("".join(map(chr, range(0xE0041, 0xE0041 + 40))), "⟨U+E0041 U+E0042 U+E0043 … × 40⟩"),
    ],
)
def test_many_of_a_kind_and_long_runs_are_one_label(code, text):
    assert spell_out_line(code).text == text


@given(st.text("ab😀\u202e\u200b\U000e0041 ", max_size=20))
def test_places_go_there_and_back(code):
    shown = spell_out_line(code)
    if shown is None:
        return
    assert shown.to_shown(utf16_length(code)) == utf16_length(shown.text)
    offset = 0
    for char in [*code, ""]:
        stop = shown.caret_stop_at(offset)
        assert shown.from_shown(shown.to_shown(offset)) == stop
        assert stop == offset or any(label.start < offset < label.start + label.length for label in shown.labels)
        offset += utf16_length(char)


def painted(lines, style, selection=None):
    image = QImage(700, 40, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.white)
    painter = QPainter(image)
    lines.paint(painter, style, QRect(0, 0, 700, 40), selection)
    painter.end()
    return image


def test_code_shows_it_and_stays_what_it_is(style):
    lines, plain = (
        CodeLines(TROJAN, wraps=False),
        CodeLines(TROJAN.replace("\u202e", ""), wraps=False),
    )
    for code in (lines, plain):
        code.layout(700, style)
    assert painted(lines, style) != painted(plain, style)
    assert lines.text == TROJAN
    image = painted(lines, style)
    colors = {image.pixelColor(x, 4).name() for x in range(image.width())}
    assert style.color("warning_background").name() in colors


def test_places_in_such_a_line_are_those_of_the_code(style):
    lines = CodeLines(TROJAN, wraps=False)
    lines.layout(700, style)
    painted(lines, style)
    assert lines.offset_at(5000, 3) == utf16_length(TROJAN)
    x = style.mono_advance * (17 + 8 + 1)
    assert lines.offset_at(int(x), 3) == 19
    assert lines.line_span(3) == (0, utf16_length(TROJAN))


def test_a_selection_covers_what_it_selects(style):
    lines = CodeLines(TROJAN, wraps=False)
    lines.layout(700, style)
    image = painted(lines, style, (17, 18))
    marked = [x for x in range(image.width()) if image.pixelColor(x, 3) == style.color("selection")]
    assert abs(max(marked) - min(marked) + 1 - 8 * style.mono_advance) <= 2


def test_what_is_selected_is_in_the_colour_of_text(style):
    lines = CodeLines(TROJAN, wraps=False)
    lines.layout(700, style)
    image = painted(lines, style, (0, utf16_length(TROJAN)))
    inks = colors_of(image)
    assert style.color("text").name() in inks
    assert style.color("warning").name() not in inks
