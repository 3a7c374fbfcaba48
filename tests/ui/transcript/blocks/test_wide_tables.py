"""A table of very many columns: what stands beside the screen is neither read nor laid out."""

import pytest
from PySide6.QtCore import QRectF

from ui.style.theme import LIGHT
from ui.transcript.blocks.block import WHOLE_TEXT
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.markdown.elements import Leaf
from ui.transcript.style import RenderStyle

COLUMNS, ROWS, WIDTH = 300, 5, 700


@pytest.fixture
def style(qapp):
    return RenderStyle(LIGHT, 100)


@pytest.fixture
def block(style):
    cells = tuple(
        tuple(f"**a{row}** [l](https://x.example/{column})" for column in range(COLUMNS)) for row in range(ROWS)
    )
    table = TableBlock(Leaf("table", cells=cells, aligns=("",) * COLUMNS), {})
    table.layout(WIDTH, style)
    return table


def laid_out(block):
    return set(block._layouts._layouts)


def test_a_few_of_its_columns_tell_how_wide_and_how_high_it_is(block):
    assert 0 < len(laid_out(block)) <= 20 * ROWS
    assert len(block.cells._lines) <= 20 * ROWS


def test_of_fewer_columns_all_are_looked_at(style):
    cells = (tuple(f"**a** {column}" for column in range(40)),)
    block = TableBlock(Leaf("table", cells=cells, aligns=("",) * 40), {})
    block.layout(WIDTH, style)
    assert len(laid_out(block)) == 40


def test_what_a_selection_covers_lays_out_nothing_beside_the_screen(block):
    boxes = block.boxes(*WHOLE_TEXT)
    assert len(boxes) == COLUMNS * ROWS
    visible = block.column_at(WIDTH) + 1
    assert {column for _, column in laid_out(block)} <= set(range(max(visible, 20)))
    offset = block.cells.offset_of(2, 200)
    [box] = block.boxes(offset, offset + 1)
    left, right = block.columns.lefts[200:202]
    assert box == QRectF(left, block.tops[2], right - left, block.tops[3] - block.tops[2])


def test_moved_sideways_it_covers_its_words(block):
    far = block.cells.offset_of(2, 200)
    block.scroll_horizontally(block.columns.lefts[200] - 50)
    [box] = block.boxes(far, far + 1)
    assert (2, 200) in laid_out(block)
    assert box.left() == 60
    assert box.width() < 20


def test_in_another_look_it_is_measured_anew(block):
    widths = [*block.columns._natural]
    larger = RenderStyle(LIGHT, 200)
    block.forget()
    block.layout(WIDTH, larger)
    assert all(new_width > 1.7 * old_width for new_width, old_width in zip(block.columns._natural, widths, strict=True))
    fresh = TableBlock(block.leaf, {})
    assert fresh.layout(WIDTH, larger) == block.layout(WIDTH, larger)
    assert fresh.columns._natural == block.columns._natural


def test_pieces_of_a_table_are_measured_anew_together(style):
    first = TableBlock(Leaf("table", cells=(("a", "b"),), aligns=("", "")), {})
    second = TableBlock(Leaf("table", cells=(("long words", "b"),), aligns=("", ""), separator="\n"), {}, first.columns)
    for table in (first, second):
        table.layout(WIDTH, style)
    smaller = RenderStyle(LIGHT, 50)
    first.layout(WIDTH, smaller)
    assert not second.is_laid_out
    second.layout(WIDTH, smaller)
    first.layout(WIDTH, smaller)
    fresh = TableBlock(first.leaf, {})
    joined = TableBlock(second.leaf, {}, fresh.columns)
    for table in (fresh, joined, fresh):
        table.layout(WIDTH, smaller)
    assert first.widths == second.widths == fresh.widths


def test_code_in_a_cell_stands_on_one_line_where_there_is_room(style):
    rows = (("Write this", "and see"), ("`tell me a little tiny title`", "a title"))
    late = tuple((f"`till it fills {number:02} little lilies`", "") for number in range(30))
    block = TableBlock(Leaf("table", cells=rows + late, aligns=("", "")), {})
    height = block.layout(WIDTH, style)
    assert height <= len(rows + late) * (style.line + style.px(12)) + 2
