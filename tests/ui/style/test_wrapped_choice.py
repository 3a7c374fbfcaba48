"""Words beside a button stand where the button's own words would."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QCheckBox, QLabel, QRadioButton, QVBoxLayout, QWidget

from ui.style.style_sheet import apply_theme
from ui.style.theme import ThemeSource
from ui.style.widgets import WrappedChoice

WORDS = "||||"


@pytest.fixture(params=[100, 150, 200])
def page(request, qtbot, qapp):
    font, palette, themes = qapp.font(), qapp.palette(), ThemeSource()
    themes.use(themes.theme, request.param)
    apply_theme(qapp, themes)
    made = QWidget()
    QVBoxLayout(made)
    made.resize(400, 800)
    qtbot.addWidget(made)
    yield made
    qapp.setStyleSheet("")
    qapp.setFont(font)
    qapp.setPalette(palette)


def strokes(widget):
    """Where the letters stand, of words that are strokes."""
    picture = widget.grab().toImage()
    middle = picture.height() // 2
    dark = [
        any(picture.pixelColor(x, y).lightness() < 150 for y in range(middle - 3, middle + 3))
        for x in range(picture.width())
    ]
    return [x for x in range(1, len(dark)) if dark[x] and not dark[x - 1]][-4:]


@pytest.mark.parametrize("kind", [QCheckBox, QRadioButton])
def test_as_far_from_the_button_as_its_own(qtbot, page, kind):
    own, beside = kind(WORDS), WrappedChoice(kind(), WORDS)
    for each in (own, beside):
        page.layout().addWidget(each, 0, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
    page.show()
    own.clearFocus()
    qtbot.waitUntil(lambda: beside.width() > 0)
    assert strokes(beside) == strokes(own)


def test_the_first_line_stands_beside_the_middle_of_the_button(qtbot, page):
    choice = WrappedChoice(QCheckBox(), "One line and another line " * 9)
    page.layout().addWidget(choice)
    page.layout().addStretch(1)
    page.show()
    words, box = choice.findChild(QLabel), choice.findChild(QCheckBox)
    several = 2 * words.fontMetrics().lineSpacing()
    qtbot.waitUntil(lambda: several < words.height() == words.heightForWidth(words.width()))
    first = words.mapTo(choice, QPoint(0, words.contentsRect().top())).y() + words.fontMetrics().height() / 2
    assert abs(first - box.geometry().center().y()) <= 2
