"""Markers and bars: at the side where the text begins, in the middle of its first line."""

from itertools import pairwise

import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QImage, QPainter

from ui.style.theme import LIGHT
from ui.transcript.blocks.math.math_block import InlineFormulas
from ui.transcript.blocks.text_block import MarkdownTextBlock, indent_width, is_right_to_left_block, paint_containers
from ui.transcript.blocks.text_layout import InlineObject
from ui.transcript.markdown.stream import parse_leaves
from ui.transcript.style import RenderStyle

WIDE, LEFT = 300, 60


@pytest.fixture
def style(qapp):
    return RenderStyle(LIGHT, 100)


def paint_markers(style, text, index=0):
    """Return a block of the text, and the columns and rows of a picture in which something is painted beside it."""
    leaves, references = parse_leaves(text)
    block = MarkdownTextBlock(leaves[index], references)
    block.containers = leaves[index].containers
    height = block.layout(WIDE, style)
    image = QImage(WIDE + 2 * LEFT, height, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.white)
    painter = QPainter(image)
    painter.translate(LEFT, 0)
    paint_containers(painter, style, block, None, QRect(LEFT, 0, WIDE, height))
    painter.end()
    ink = [
        (x - LEFT, y)
        for x in range(image.width())
        for y in range(image.height())
        if image.pixelColor(x, y).lightness() < 250
    ]
    return block, [x for x, _ in ink], [y for _, y in ink]


@pytest.mark.parametrize("text", ["- item", "1. item", "- [x] item", "> quote", "- a\n\n  b\n- [ ] c"])
def test_what_belongs_to_text_from_left_to_right_stands_at_its_left(style, text):
    block, columns, _ = paint_markers(style, text)
    assert not is_right_to_left_block(block)
    assert columns
    assert max(columns) < 0


@pytest.mark.parametrize("text", ["- שלום", "1. שלום", "- [x] مرحبا", "> שלום"])
def test_what_belongs_to_text_from_right_to_left_stands_at_its_right(style, text):
    block, columns, _ = paint_markers(style, text)
    assert is_right_to_left_block(block)
    assert columns
    assert min(columns) >= WIDE
    assert max(columns) <= WIDE + indent_width(block.containers, style)


def test_a_marker_stands_beside_the_letters_of_a_line_with_a_high_formula(style, monkeypatch):
    _, _, plain = paint_markers(style, "- item")
    monkeypatch.setattr(InlineFormulas, "objects", lambda *_: {0: InlineObject(20, 60, 5)})
    _, _, moved = paint_markers(style, "- $x$ item")
    assert min(moved) - min(plain) > 30


def test_a_footnote_has_its_label_for_a_marker(style):
    block, columns, _ = paint_markers(style, "[^a-rather-long-label]: note\n\nx[^a-rather-long-label]")
    assert block.containers[0].kind == "footnote"
    assert min(columns) > -LEFT
    assert max(columns) < 0


def test_lines_in_several_scripts_are_equally_high(style):
    text = "English words 漢字 かな 한국어 😀 👨\u200d👩\u200d👧 שלום " * 8
    leaves, _ = parse_leaves(text)
    block = MarkdownTextBlock(leaves[0], {})
    block.layout(WIDE, style)
    tops = [*block._text_layout.tops, block._text_layout.height]
    steps = {after - before for before, after in pairwise(tops)}
    assert max(steps) - min(steps) <= 2


def test_code_with_a_hidden_character_in_it_stands_on_one_ground(style):
    leaves, _ = parse_leaves("`a\u200bb` and `c`")
    block = MarkdownTextBlock(leaves[0], {})
    block.layout(WIDE, style)
    assert len(block._text_layout._make_chips()) == 2
