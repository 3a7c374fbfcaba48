"""A label that wraps is never as wide as a word without an end."""

import pytest
from PySide6.QtWidgets import QLabel

from ui.style.controls import label

LONG = "x" * 2_000


@pytest.fixture
def wrapped(qtbot):
    def make(text):
        widget = label(text, wrap=True)
        qtbot.addWidget(widget)
        return widget

    return make


def test_a_word_that_is_wider_than_its_room_is_broken(wrapped):
    widget = wrapped(f"Read {LONG} to its end.")
    assert widget.minimumSizeHint().width() < 400
    height = widget.heightForWidth(400)
    line = widget.fontMetrics().height()
    assert height > 20 * line
    widget.resize(400, height)
    picture = widget.grab().toImage()
    columns = range(0, picture.width(), 3)
    lowest = max(y for y in range(height) if any(picture.pixelColor(x, y).lightness() < 128 for x in columns))
    assert height - 2 * line < lowest <= height


def test_other_texts_are_laid_out_as_qt_does(wrapped):
    plain = QLabel("One word after the other, on as many lines as they need.")
    plain.setWordWrap(True)
    widget = wrapped(plain.text())
    assert widget.minimumSizeHint() == plain.minimumSizeHint()
    assert [widget.heightForWidth(width) for width in (120, 200, 600)] == [
        plain.heightForWidth(width) for width in (120, 200, 600)
    ]


def test_a_word_without_an_end_does_not_ask_for_more_height_than_one_line(wrapped):
    widget = wrapped(f"Read {LONG} to its end.")
    assert widget.minimumSizeHint().height() == wrapped("Read it to its end.").minimumSizeHint().height()
