"""Text from outside, as high as its lines."""

import pytest

from ui.style.read_only_text import ReadOnlyText


@pytest.fixture
def text(qtbot):
    made = ReadOnlyText("word " * 60, "Description")
    qtbot.addWidget(made)
    made.show()
    return made


def test_it_has_its_height_again_after_it_had_no_room_beside_its_scroll_bar(text):
    text.resize(200, 100)
    height = text.height()
    for width in range(200, 0, -1):
        text.resize(width, text.height())
    text.resize(200, text.height())
    assert text.height() == height
