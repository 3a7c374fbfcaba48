"""A line of 400,000 characters: what is done with it costs what is seen of it, and it is whole when it is copied."""

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QImage, QPainter

from ui.style.theme import LIGHT
from ui.transcript.blocks.block import PaintContext
from ui.transcript.blocks.code import line_layout
from ui.transcript.blocks.code.code_block import CodeBlock, CodeCallbacks
from ui.transcript.blocks.code.line_breaking import MAX_PIECE_LENGTH
from ui.transcript.blocks.code.line_layout import layout_piece
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.style import RenderStyle

PLAIN = "ab cde fgh1234567890" * 20_000
MIXED = "中文字符abc,é😀" * 40_000
WIDTH, SCREEN = 760, 600


@pytest.fixture
def style(qapp):
    return RenderStyle(LIGHT, 100)


@pytest.fixture
def laid(monkeypatch):
    """Record the texts of the pieces that are laid out."""
    texts = []
    monkeypatch.setattr(
        line_layout, "layout_piece", lambda text, *rest: texts.append(text) or layout_piece(text, *rest)
    )
    return texts


class CodeHarness:
    def __init__(self, text, style, *, wraps):
        self.style = style
        self.later = []
        self.arrived = 0
        host = CodeCallbacks(lambda text: None, self.notify, wraps=wraps, run_later=self.later.append)
        self.block = CodeBlock(text, "", host)
        self.height = self.block.layout(WIDTH, style)

    def notify(self):
        self.arrived += 1

    def paint(self, top=0, selection=None):
        image = QImage(WIDTH, SCREEN, QImage.Format.Format_RGB32)
        image.fill(Qt.GlobalColor.white)
        painter = QPainter(image)
        painter.translate(0, -top)
        self.block.paint(PaintContext(painter, self.style, QRect(0, top, WIDTH, SCREEN), selection))
        painter.end()
        return image

    def wait(self):
        while self.later:
            callbacks, self.later[:] = list(self.later), []
            for callback in callbacks:
                callback()
            if not self.block.is_laid_out:
                self.height = self.block.layout(WIDTH, self.style)


def a_screen(style, *, wraps):
    """Return how many pieces a screen may show."""
    return SCREEN // style.mono_line + 2 if wraps else 3


@pytest.mark.parametrize("wraps", [False, True])
@pytest.mark.parametrize("text", [PLAIN, MIXED], ids=["plain", "mixed"])
def test_opening_scrolling_and_selecting_lay_out_what_is_seen(style, laid, text, wraps):
    harness = CodeHarness(text, style, wraps=wraps)
    assert len(laid) <= 1
    harness.paint()
    for step in range(8):
        laid.clear()
        harness.block.scroll_horizontally(30_000)
        harness.paint(top=3_000 * step if wraps else 0, selection=(0, utf16_length(text)))
        assert len(laid) <= a_screen(style, wraps=wraps)
        assert max(map(len, laid), default=0) <= MAX_PIECE_LENGTH
    assert harness.block.text == harness.block.plain() == text


@pytest.mark.parametrize("wraps", [False, True])
@pytest.mark.parametrize("text", [PLAIN, MIXED], ids=["plain", "mixed"])
def test_a_far_place_is_found_without_what_lies_before_it(style, laid, text, wraps):
    harness = CodeHarness(text, style, wraps=wraps)
    end = utf16_length(text)
    for offset in (0, 1100, end // 2, end - 11):
        laid.clear()
        harness.block.layout(WIDTH, style)
        caret = harness.block.caret_rect_at(offset)
        assert harness.block.offset_at(caret.center().toPoint()) == offset
        assert harness.block.boxes(offset, offset + 1)[0].left() == caret.left()
        assert len(laid) <= 3
    laid.clear()
    assert harness.block.boxes(0, end)
    assert len(laid) <= 3


def test_pieces_stand_beside_each_other_without_a_seam(style):
    harness = CodeHarness(PLAIN, style, wraps=False)
    left = harness.block.caret_rect_at(0).left()
    for offset in (MAX_PIECE_LENGTH - 1, MAX_PIECE_LENGTH, MAX_PIECE_LENGTH + 1, 200_000, 400_000):
        assert abs(harness.block.caret_rect_at(offset).left() - left - offset * style.mono_advance) < 1
    box = harness.block.boxes(MAX_PIECE_LENGTH - 3, MAX_PIECE_LENGTH + 3)
    assert len(box) == 1
    assert abs(box[0].width() - 6 * style.mono_advance) < 0.1


def test_one_can_scroll_to_the_end(style):
    for text in (PLAIN, "中" * 30_000):
        harness = CodeHarness(text, style, wraps=False)
        for _ in range(4):
            harness.block.scroll_horizontally(1 << 30)
            harness.paint()
        assert WIDTH - style.px(30) < harness.block.caret_rect_at(utf16_length(text)).right() < WIDTH
        assert not harness.block.scroll_horizontally(1 << 30)


def test_a_line_that_turns_out_to_be_short_does_not_scroll(style):
    text = "\0" * 1_000_000
    harness = CodeHarness(text, style, wraps=False)
    before = harness.block.caret_rect_at(utf16_length(text)).right()
    harness.block.scroll_horizontally(1 << 30)
    for _ in range(3):
        harness.paint()
    assert harness.block.caret_rect_at(utf16_length(text)).right() == before < WIDTH
    assert not harness.block.scroll_horizontally(1 << 30)


def test_what_is_seen_stands_still_when_what_lies_left_of_it_becomes_exact(style):
    family = "👨\u200d👩\u200d👧"
    harness = CodeHarness(family * 20_000, style, wraps=False)
    position = utf16_length(family) * 10_100
    harness.block.scroll_horizontally(round(harness.block.caret_rect_at(position).left()) - 20)
    left = harness.block.caret_rect_at(position).left()
    harness.paint()
    assert abs(harness.block.caret_rect_at(position).left() - left) <= 1
    for _ in range(30):
        left = harness.block.caret_rect_at(position).left()
        harness.block.scroll_horizontally(-100)
        harness.paint()
        assert abs(harness.block.caret_rect_at(position).left() - left - 100) <= 1


def test_rows_of_a_long_line_are_counted_in_slices(style, monkeypatch):
    monkeypatch.setattr("ui.transcript.blocks.code.row_counter._SLICE", 0)
    harness = CodeHarness(MIXED, style, wraps=True)
    line = harness.block._lines._laid_out[0]
    assert len(line.starts) < 100
    harness.wait()
    assert line.is_complete
    assert harness.height == style.px(34) + len(line.starts) * style.mono_line + style.px(12)
    assert harness.arrived == 1


def test_a_place_that_is_further_down_than_was_guessed_makes_it_be_laid_out_again(style, monkeypatch):
    monkeypatch.setattr("ui.transcript.blocks.code.row_counter._SLICE", 0)
    text = "a" * 20_000 + "中" * 100_000
    harness = CodeHarness("é" + text, style, wraps=True)
    guessed_height = harness.height
    assert harness.block.caret_rect_at(100_000).bottom() > guessed_height
    assert not harness.block.is_laid_out
    assert harness.block.layout(WIDTH, style) > guessed_height
    harness.wait()
    assert harness.block.caret_rect_at(120_001).bottom() < harness.height


def test_rows_that_are_still_counted_keep_their_colours(style, monkeypatch):
    monkeypatch.setattr("ui.transcript.blocks.code.row_counter._SLICE", 0)
    harness = CodeHarness(MIXED, style, wraps=True)
    plain = harness.paint()
    harness.block._lines.highlight(0, [[(0, utf16_length(MIXED), "string")]])
    assert harness.paint() != plain
    harness.wait()
    assert harness.block._lines._laid_out[0].is_complete


@pytest.mark.parametrize("wraps", [False, True])
def test_a_piece_has_the_colours_of_its_part(style, wraps):
    harness = CodeHarness("x" * 5000, style, wraps=wraps)
    harness.block._lines.highlight(0, [[(0, 10, "keyword"), (2990, 1020, "string"), (4500, 5, "number")]])
    line = next(harness.block._lines._visible_lines(QRect(0, 0, 10, 10)))[1]
    coloured = [
        line.span(number)[0] + offset
        for number in range(len(line.starts))
        for format_range in line.piece(number).layout.formats()
        for offset in range(format_range.start, format_range.start + format_range.length)
    ]
    assert coloured == [*range(10), *range(2990, 4010), *range(4500, 4505)]


@pytest.mark.parametrize("wraps", [False, True])
def test_of_20_000_lines_only_those_near_the_screen_are_laid_out(style, wraps, laid):
    lines = (f"    value_{number} = compute({number})" + " # and more" * (number % 9) for number in range(20_000))
    block = CodeBlock("\n".join(lines), "python", CodeCallbacks(lambda text: None, lambda: None, wraps=wraps))
    block.layout(500, style)
    block.append("\nand one more")
    block.layout(500, style)
    assert laid == []


def test_what_is_seen_is_told(style):
    text = "\n".join([PLAIN[:5000], "short", "", MIXED[:5000]])
    harness = CodeHarness(text, style, wraps=False)
    harness.block.scroll_horizontally(1000)
    for first, end in harness.block.visible_ranges(QRect(0, 0, WIDTH, SCREEN)):
        assert end - first <= WIDTH / style.mono_advance + 8
    harness = CodeHarness(PLAIN, style, wraps=True)
    (visible,) = harness.block.visible_ranges(QRect(0, 3000, WIDTH, SCREEN))
    first = harness.block.offset_at(QPoint(0, 3000))
    assert visible[0] <= first < visible[1] <= first + 94 * (SCREEN // style.mono_line + 2)


@pytest.mark.parametrize("wraps", [False, True])
@pytest.mark.parametrize("text", ["\0" * 1_000_000, "\0\u202e" * 500_000], ids=["same", "in turns"])
def test_a_million_hidden_characters_are_one_label(style, laid, text, wraps):
    harness = CodeHarness(f"safe{text}end", style, wraps=wraps)
    harness.paint()
    line = harness.block._lines._laid_out[0]
    shown = "".join((piece.shown.text if piece.shown else "") for piece in line._pieces.values())
    assert "U+0000" in shown
    assert ("U+202E" in shown) == ("\u202e" in text)
    assert len(shown) < 60
    assert harness.block.text == f"safe{text}end"
    assert harness.block.caret_stop_at(500) == 1_000_004
    assert harness.block.caret_stop_at(4) == 4


@pytest.mark.parametrize("wraps", [False, True])
def test_hidden_characters_between_letters_are_spelled_out_where_they_are_seen(style, laid, wraps):
    harness = CodeHarness("a\0" * 500_000, style, wraps=wraps)
    harness.paint()
    assert len(laid) <= a_screen(style, wraps=wraps)
    assert sum(map(len, laid)) <= 3 * MAX_PIECE_LENGTH
