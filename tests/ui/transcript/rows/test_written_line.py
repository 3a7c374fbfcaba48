import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QImage, QPainter

from tests.ui.drawn_order import from_left
from ui.style.theme import LIGHT
from ui.transcript.blocks.block import PaintContext
from ui.transcript.blocks.text_block import CallSummaryBlock
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.style import RenderStyle

TEXT = "א: mv ב ג > 😀 ד"


@pytest.fixture
def style(qapp):
    return RenderStyle(LIGHT, 100)


def laid(text, style):
    block = CallSummaryBlock(text)
    block.layout(600, style)
    return block


def test_it_is_drawn_in_its_order_from_the_left(style):
    block = laid("א: mv ב ג > ד", style)
    assert from_left(block._text_layout._layout) == "א:mvבג>ד"
    assert not block.is_right_to_left


def test_its_places_are_those_of_the_text(style):
    block = laid(TEXT, style)
    line = block._text_layout.line
    for position in range(utf16_length(TEXT) + 1):
        assert line.to_plain(line.from_plain(position)) == position
    assert block.plain() == block.spoken_text() == block.markdown() == TEXT
    assert block.offset_at(QPoint(599, 5)) == utf16_length(TEXT)
    first, last = block.boxes(0, 1), block.boxes(utf16_length(TEXT) - 1, utf16_length(TEXT))
    assert first[0].left() == 0
    assert first[0].right() <= last[0].left()


def test_what_is_marked_is_drawn_where_it_stands(style):
    block = laid("mv א ב", style)

    def picture(selection):
        image = QImage(600, 40, QImage.Format.Format_RGB32)
        image.fill(0xFFFFFF)
        painter = QPainter(image)
        block.paint(PaintContext(painter, style, image.rect(), selection=selection))
        painter.end()
        return image

    layout = block._text_layout._layout
    grounds = {}
    for letter in "אב":
        (run,) = layout.glyphRuns(layout.text().index(letter), 1)
        (box,) = block.boxes("mv א ב".index(letter), "mv א ב".index(letter) + 1)
        assert abs(box.center().x() - run.boundingRect().center().x()) < 2
        grounds[letter] = picture((5, 6)).pixelColor(int(run.boundingRect().center().x()), 1).name()
    assert grounds == {"א": "#ffffff", "ב": style.color("selection").name()}
