"""What the agent asks for stands whole over the composer, however narrow that is."""

import pytest
from PySide6.QtCore import QPoint, QRect
from PySide6.QtWidgets import QLabel, QPushButton

from desktop_agent.types.permissions import BUILT_IN_MODES, DEFAULT_MODE
from ui.composer.notices import ModeRequestBar


@pytest.mark.parametrize(("width", "are_beside"), [(316, False), (800, True)])
def test_the_words_have_room_and_the_buttons_are_whole(qtbot, width, are_beside):
    bar = ModeRequestBar()
    qtbot.addWidget(bar)
    bar.show_request(BUILT_IN_MODES[1], DEFAULT_MODE)
    assert bar.minimumSizeHint().width() <= 316
    bar.resize(width, 400)
    bar.show()
    words = bar.findChild(QLabel)
    buttons = bar.findChildren(QPushButton)

    def areas():
        return [QRect(button.mapTo(bar, QPoint(0, 0)), button.size()) for button in (words, *buttons)]

    qtbot.waitUntil(lambda: (areas()[0].right() < areas()[1].left()) is are_beside)
    words_area, *button_areas = areas()
    assert words_area.width() >= 200
    for button, area in zip(buttons, button_areas, strict=True):
        assert bar.rect().contains(area)
        assert area.width() >= button.sizeHint().width()
    assert are_beside or words_area.bottom() < button_areas[0].top()
