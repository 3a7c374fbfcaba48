"""In a window from the right a label stands at the right, in whatever letters it is written."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor

from ui.style.controls import label


@pytest.mark.parametrize("words", ["Language", "שפה"])
@pytest.mark.parametrize("wrap", [False, True])
def test_a_label_stands_where_the_window_begins(qtbot, qapp, words, wrap):
    qapp.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    try:
        made = label(words, wrap=wrap)
        qtbot.addWidget(made)
        made.setStyleSheet("background: #ffffff; color: #000000")
        made.resize(400, 30)
        image = made.grab().toImage()
    finally:
        qapp.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto)
    white = QColor("#ffffff")
    inked = [x for x in range(image.width()) if any(image.pixelColor(x, y) != white for y in range(image.height()))]
    assert inked
    assert min(inked) > image.width() // 2
