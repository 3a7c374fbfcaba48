"""The output of a program while it still writes: it stays where somebody moved it."""

import pytest

from ui.style.theme import LIGHT
from ui.transcript.blocks.code.code_block import CodeCallbacks
from ui.transcript.blocks.code.terminal_output import OutputBlock
from ui.transcript.style import RenderStyle

WIDTH = 400


@pytest.fixture
def output(qapp):
    style = RenderStyle(LIGHT, 100)
    block = OutputBlock("x" * 500 + "\nold", [], CodeCallbacks(lambda text: None, lambda: None), "output")
    block.layout(WIDTH, style)
    assert block.scroll_horizontally(500)
    return block, style


def left_edge(block, offset=0):
    return block.caret_rect_at(offset).left()


@pytest.mark.parametrize("text", ["x" * 500 + "\nnew", "y" * 300, "x" * 500 + "\nold\nand more"])
def test_other_output_is_moved_sideways_as_far(output, text):
    block, style = output
    left_edge_before = left_edge(block)
    block.set_output(text, [])
    block.layout(WIDTH, style)
    assert block.text == text
    assert left_edge(block) == left_edge_before


def test_shorter_output_is_moved_no_further_than_it_reaches(output):
    block, style = output
    block.set_output("x" * 60, [])
    block.layout(WIDTH, style)
    assert left_edge(block, 60) < WIDTH
    assert left_edge(block, 60) > WIDTH - style.px(60)
