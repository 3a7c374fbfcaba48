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
def look(qapp):
    return RenderStyle(LIGHT, 100)


@pytest.fixture
def laid(monkeypatch):
    """The texts of the pieces that were laid out."""
    made = []
    monkeypatch.setattr(line_layout, "layout_piece", lambda text, *rest: made.append(text) or layout_piece(text, *rest))
    return made


class Opened:
    def __init__(self, text, look, *, wraps):
        self.look = look
        self.later = []
        self.arrived = 0
        host = CodeCallbacks(lambda text: None, self.notify, wraps=wraps, run_later=self.later.append)
        self.block = CodeBlock(text, "", host)
        self.height = self.block.layout(WIDTH, look)

    def notify(self):
        self.arrived += 1

    def paint(self, top=0, selection=None):
        image = QImage(WIDTH, SCREEN, QImage.Format.Format_RGB32)
        image.fill(Qt.GlobalColor.white)
        painter = QPainter(image)
        painter.translate(0, -top)
        self.block.paint(PaintContext(painter, self.look, QRect(0, top, WIDTH, SCREEN), selection))
        painter.end()
        return image

    def wait(self):
        while self.later:
            waiting, self.later[:] = list(self.later), []
            for each in waiting:
                each()
            if not self.block.is_laid_out:
                self.height = self.block.layout(WIDTH, self.look)


def a_screen(look, *, wraps):
    """Pieces that a screen may show."""
    return SCREEN // look.mono_line + 2 if wraps else 3


@pytest.mark.parametrize("wraps", [False, True])
@pytest.mark.parametrize("text", [PLAIN, MIXED], ids=["plain", "mixed"])
def test_opening_scrolling_and_selecting_lay_out_what_is_seen(look, laid, text, wraps):
    opened = Opened(text, look, wraps=wraps)
    assert len(laid) <= 1
    opened.paint()
    for step in range(8):
        laid.clear()
        opened.block.scroll_horizontally(30_000)
        opened.paint(top=3_000 * step if wraps else 0, selection=(0, utf16_length(text)))
        assert len(laid) <= a_screen(look, wraps=wraps)
        assert max(map(len, laid), default=0) <= MAX_PIECE_LENGTH
    assert opened.block.text == opened.block.plain() == text


@pytest.mark.parametrize("wraps", [False, True])
@pytest.mark.parametrize("text", [PLAIN, MIXED], ids=["plain", "mixed"])
def test_a_far_place_is_found_without_what_lies_before_it(look, laid, text, wraps):
    opened = Opened(text, look, wraps=wraps)
    end = utf16_length(text)
    for offset in (0, 1100, end // 2, end - 11):
        laid.clear()
        opened.block.layout(WIDTH, look)
        caret = opened.block.caret_rect_at(offset)
        assert opened.block.offset_at(caret.center().toPoint()) == offset
        assert opened.block.boxes(offset, offset + 1)[0].left() == caret.left()
        assert len(laid) <= 3
    laid.clear()
    assert opened.block.boxes(0, end)
    assert len(laid) <= 3


def test_pieces_stand_beside_each_other_without_a_seam(look):
    opened = Opened(PLAIN, look, wraps=False)
    left = opened.block.caret_rect_at(0).left()
    for offset in (MAX_PIECE_LENGTH - 1, MAX_PIECE_LENGTH, MAX_PIECE_LENGTH + 1, 200_000, 400_000):
        assert abs(opened.block.caret_rect_at(offset).left() - left - offset * look.mono_advance) < 1
    box = opened.block.boxes(MAX_PIECE_LENGTH - 3, MAX_PIECE_LENGTH + 3)
    assert len(box) == 1
    assert abs(box[0].width() - 6 * look.mono_advance) < 0.1


def test_one_can_scroll_to_the_end(look):
    for text in (PLAIN, "中" * 30_000, "\0" * 1_000_000):
        opened = Opened(text, look, wraps=False)
        for _ in range(4):
            opened.block.scroll_horizontally(1 << 30)
            opened.paint()
        assert (
            WIDTH - look.px(120) < opened.block.caret_rect_at(utf16_length(text)).right() < WIDTH or len(text) > 500_000
        )
        assert not opened.block.scroll_horizontally(1 << 30)


def test_what_is_seen_stands_still_when_what_lies_left_of_it_becomes_exact(look):
    family = "👨\u200d👩\u200d👧"
    opened = Opened(family * 20_000, look, wraps=False)
    position = utf16_length(family) * 10_100
    opened.block.scroll_horizontally(round(opened.block.caret_rect_at(position).left()) - 20)
    before = opened.block.caret_rect_at(position).left()
    opened.paint()
    assert abs(opened.block.caret_rect_at(position).left() - before) <= 1
    for _ in range(30):
        before = opened.block.caret_rect_at(position).left()
        opened.block.scroll_horizontally(-100)
        opened.paint()
        assert abs(opened.block.caret_rect_at(position).left() - before - 100) <= 1


def test_rows_of_a_long_line_are_counted_in_slices(look, monkeypatch):
    monkeypatch.setattr("ui.transcript.blocks.code.row_counter._SLICE", 0)
    opened = Opened(MIXED, look, wraps=True)
    line = opened.block._lines._laid_out[0]
    assert len(line.starts) < 100
    opened.wait()
    assert line.is_complete
    assert opened.height == look.px(34) + len(line.starts) * look.mono_line + look.px(12)
    assert opened.arrived == 1


def test_a_place_that_is_further_down_than_was_guessed_makes_it_be_laid_out_again(look, monkeypatch):
    monkeypatch.setattr("ui.transcript.blocks.code.row_counter._SLICE", 0)
    text = "a" * 20_000 + "中" * 100_000
    opened = Opened("é" + text, look, wraps=True)
    guessed = opened.height
    assert opened.block.caret_rect_at(100_000).bottom() > guessed
    assert not opened.block.is_laid_out
    assert opened.block.layout(WIDTH, look) > guessed
    opened.wait()
    assert opened.block.caret_rect_at(120_001).bottom() < opened.height


def test_rows_that_are_still_counted_keep_their_colours(look, monkeypatch):
    monkeypatch.setattr("ui.transcript.blocks.code.row_counter._SLICE", 0)
    opened = Opened(MIXED, look, wraps=True)
    plain = opened.paint()
    opened.block._lines.highlight(0, [[(0, utf16_length(MIXED), "string")]])
    assert opened.paint() != plain
    opened.wait()
    assert opened.block._lines._laid_out[0].is_complete


@pytest.mark.parametrize("wraps", [False, True])
def test_a_piece_has_the_colours_of_its_part(look, wraps):
    opened = Opened("x" * 5000, look, wraps=wraps)
    opened.block._lines.highlight(0, [[(0, 10, "keyword"), (2990, 1020, "string"), (4500, 5, "number")]])
    line = next(opened.block._lines._visible_lines(QRect(0, 0, 10, 10)))[1]
    coloured = [
        line.span(number)[0] + at
        for number in range(len(line.starts))
        for each in line.piece(number).layout.formats()
        for at in range(each.start, each.start + each.length)
    ]
    assert coloured == [*range(10), *range(2990, 4010), *range(4500, 4505)]


@pytest.mark.parametrize("wraps", [False, True])
def test_of_20_000_lines_only_those_near_the_screen_are_laid_out(look, wraps, laid):
    lines = (f"    value_{number} = compute({number})" + " # and more" * (number % 9) for number in range(20_000))
    block = CodeBlock("\n".join(lines), "python", CodeCallbacks(lambda text: None, lambda: None, wraps=wraps))
    block.layout(500, look)
    block.append("\nand one more")
    block.layout(500, look)
    assert laid == []


def test_what_is_seen_is_told(look):
    text = "\n".join([PLAIN[:5000], "short", "", MIXED[:5000]])
    opened = Opened(text, look, wraps=False)
    opened.block.scroll_horizontally(1000)
    for first, end in opened.block.visible_ranges(QRect(0, 0, WIDTH, SCREEN)):
        assert end - first <= WIDTH / look.mono_advance + 8
    opened = Opened(PLAIN, look, wraps=True)
    (seen,) = opened.block.visible_ranges(QRect(0, 3000, WIDTH, SCREEN))
    first = opened.block.offset_at(QPoint(0, 3000))
    assert seen[0] <= first < seen[1] <= first + 94 * (SCREEN // look.mono_line + 2)


@pytest.mark.parametrize("wraps", [False, True])
@pytest.mark.parametrize("text", ["\0" * 1_000_000, "\0\u202e" * 500_000], ids=["same", "in turns"])
def test_a_million_hidden_characters_are_one_label(look, laid, text, wraps):
    opened = Opened(f"safe{text}end", look, wraps=wraps)
    opened.paint()
    line = opened.block._lines._laid_out[0]
    shown = "".join((piece.shown.text if piece.shown else "") for piece in line._pieces.values())
    assert "U+0000" in shown
    assert ("U+202E" in shown) == ("\u202e" in text)
    assert len(shown) < 60
    assert opened.block.text == f"safe{text}end"
    assert opened.block.caret_stop_at(500) == 1_000_004
    assert opened.block.caret_stop_at(4) == 4


@pytest.mark.parametrize("wraps", [False, True])
def test_hidden_characters_between_letters_are_spelled_out_where_they_are_seen(look, laid, wraps):
    opened = Opened("a\0" * 500_000, look, wraps=wraps)
    opened.paint()
    assert len(laid) <= a_screen(look, wraps=wraps)
    assert sum(map(len, laid)) <= 3 * MAX_PIECE_LENGTH
