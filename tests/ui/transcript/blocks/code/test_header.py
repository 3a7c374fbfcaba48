"""The header of a code block: its title has the room of buttons that are not shown."""

import pytest
from PySide6.QtCore import QRect
from PySide6.QtGui import QImage, QPainter

from ui.style.theme import LIGHT
from ui.transcript.blocks.block import PaintContext
from ui.transcript.blocks.buttons import Button, ButtonBar
from ui.transcript.style import RenderStyle


@pytest.fixture
def style(qapp):
    return RenderStyle(LIGHT, 100)


def room_of_the_title(style, monkeypatch, *, is_quiet):
    bar, boxes = ButtonBar(), []
    bar.place_buttons([Button("Speichern unter…", lambda: None)], 200, style)
    draw = RenderStyle.draw_text

    def note(style, painter, box, text, *rest, **options):
        if text == "Ergebnis":
            boxes.append(box)
        draw(style, painter, box, text, *rest, **options)

    monkeypatch.setattr(RenderStyle, "draw_text", note)
    image = QImage(200, 40, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    bar.paint(PaintContext(painter, style, QRect(0, 0, 200, 40), is_quiet=is_quiet), 12, "Ergebnis")
    painter.end()
    (box,) = boxes
    return box, bar.controls[0].box


def test_the_title_has_the_room_of_buttons_that_are_not_shown(style, monkeypatch):
    quiet, _ = room_of_the_title(style, monkeypatch, is_quiet=True)
    assert quiet.right() > 180


def test_the_title_ends_before_the_buttons(style, monkeypatch):
    title, button = room_of_the_title(style, monkeypatch, is_quiet=False)
    assert title.right() < button.left()
