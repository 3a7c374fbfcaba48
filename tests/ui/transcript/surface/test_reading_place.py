"""Other fonts, themes and widths: the line at the upper edge stays where it is, and the selection on its words."""

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint

from desktop_agent.vocabulary.messages import Message
from tests.ui.transcript.standing import Standing
from ui.look.theme import DARK, LIGHT, Reading
from ui.transcript.rows.body.unread import UnreadBlock
from ui.transcript.surface.selection import Place

WORDS = "many words that go on over several lines of the column, as they do in an ordinary answer of some length, "


def paragraphs(count):
    return "\n\n".join(f"Paragraph {number}: {WORDS * 4}" for number in range(count))


@pytest.fixture(params=[40, 120], ids=["short", "long"])
def standing(qtbot, request):
    """The long one is read section by section."""
    made = Standing(qtbot, [Message.user("Hello"), Message.assistant(paragraphs(request.param)), Message.user("Bye")])
    made.view.scroller._ahead.start = lambda: None
    made.view.scroller.scroll_by(-3000)
    made.view.scroller.scroll_by(7)
    return made


def at_top(standing):
    """The text of the block at the upper edge, the place in it, and the y of that place."""
    surface = standing.view.surface
    place = surface.place_at(QPoint(surface.column, 0))
    row = standing.rows.row(place.row)
    return row.blocks[place.block].plain(), place.offset, y_of(standing, place)


def y_of(standing, place):
    row = standing.rows.row(place.row)
    row.settle_block(place.block)
    box = row.blocks[place.block].caret_at(place.offset)
    return standing.view.surface.row_box(place.row).top() + row.block_box(place.block).top() + box.top()


def y_of_words(standing, text, offset):
    blocks = standing.rows.row(1).blocks
    at = next(at for at, block in enumerate(blocks) if not isinstance(block, UnreadBlock) and block.plain() == text)
    return y_of(standing, Place(1, at, offset))


CHANGES = {
    "theme": lambda standing: standing.themes.use(DARK, 100),
    "larger": lambda standing: standing.themes.use(LIGHT, 170),
    "smaller": lambda standing: standing.themes.use(LIGHT, 60),
    "text size": lambda standing: standing.themes.read_as(Reading(size=15)),
    "font": lambda standing: standing.themes.read_as(Reading(font="DejaVu Serif")),
    "density": lambda standing: standing.themes.read_as(Reading(is_compact=True)),
    "line width": lambda standing: standing.themes.read_as(Reading(line_width=420)),
    "window": lambda standing: standing.view.resize(520, 600),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_line_at_the_upper_edge_stays(standing, change):
    text, offset, y = at_top(standing)
    assert text.startswith("Paragraph")
    assert offset
    change(standing)
    assert abs(y_of_words(standing, text, offset) - y) <= 1


def test_there_and_back_again_is_the_same_picture(standing):
    before = standing.view.viewport().grab().toImage()
    for zoom in (110, 120, 200, 50, 100):
        standing.themes.use(LIGHT, zoom)
    standing.themes.use(DARK, 100)
    standing.themes.use(LIGHT, 100)
    assert standing.view.viewport().grab().toImage() == before


def test_what_is_selected_stays_selected(standing):
    text = at_top(standing)[0]
    at = next(at for at, block in enumerate(standing.rows.row(1).blocks) if block.plain() == text)
    standing.view.surface.select(Place(1, at, 10), Place(1, at, 40))
    before = standing.selected()
    assert len(before) == 30
    standing.themes.use(DARK, 140)
    assert standing.selected() == before


def test_the_caret_stays_before_its_letter(standing):
    place = standing.view.surface.place_at(QPoint(standing.view.surface.column, 300))
    words = standing.rows.row(1).blocks[place.block].plain()
    standing.view.caret.put(Place(1, place.block, 7))
    standing.themes.use(DARK, 140)
    standing.view.scroller.to_end()
    standing.themes.use(LIGHT, 100)
    place = standing.view.caret.place
    assert (standing.rows.row(1).blocks[place.block].plain(), place.offset) == (words, 7)


def test_at_the_end_it_stays_at_the_end(standing):
    standing.view.scroller.to_end()
    standing.themes.use(LIGHT, 150)
    assert standing.rows.top == standing.rows.bottom


def test_only_what_is_near_the_screen_is_laid_out_anew(standing):
    standing.themes.read_as(replace(Reading(), size=14))
    blocks = standing.rows.row(1).blocks
    laid = sum(block.laid for block in blocks)
    assert 0 < laid < len(blocks) / 2
