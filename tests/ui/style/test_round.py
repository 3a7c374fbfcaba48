"""What is meant to be round is round at every zoom: Qt draws square corners where two radii are more than a side."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QLabel, QRadioButton, QScrollBar, QStyle, QStyleOptionButton, QStyleOptionSlider, QWidget

from ui.style.style_sheet import apply_theme
from ui.style.theme import ThemeSource

ZOOMS = (50, 67, 75, 80, 90, 100, 110, 125, 133, 150, 175, 200, 250, 300)


@pytest.fixture(params=ZOOMS)
def page(request, qtbot, qapp):
    """What the controls stand on: a window of its own would have its ground from edge to edge."""
    font, palette, themes = qapp.font(), qapp.palette(), ThemeSource()
    themes.use(themes.theme, request.param)
    apply_theme(qapp, themes)
    made = QWidget()
    qtbot.addWidget(made)
    yield made
    qapp.setStyleSheet("")
    qapp.setFont(font)
    qapp.setPalette(palette)


def shown(page, widget):
    widget.setParent(page)
    widget.resize(widget.sizeHint().expandedTo(widget.minimumSize()))
    page.resize(widget.size())
    page.show()
    return widget


def is_round(page, area):
    """Its corners are less than the middles of its sides, which can be seen."""
    picture, ground, centre = page.grab().toImage(), page.palette().window().color(), area.center()
    middles = [QPoint(centre.x(), y) for y in (area.top(), area.bottom())]
    middles += [QPoint(x, centre.y()) for x in (area.left(), area.right())]
    corners = [area.topLeft(), area.topRight(), area.bottomLeft(), area.bottomRight()]
    assert all(picture.pixelColor(place) != ground for place in middles)
    return all(picture.pixelColor(place) != picture.pixelColor(middles[0]) for place in corners)


@pytest.mark.parametrize("checked", [False, True])
def test_a_radio_button(page, checked):
    button = shown(page, QRadioButton("Only this folder"))
    button.setChecked(checked)
    option = QStyleOptionButton()
    button.initStyleOption(option)
    area = button.style().subElementRect(QStyle.SubElement.SE_RadioButtonIndicator, option, button)
    assert area.width() == area.height()
    assert is_round(page, area)


def test_a_tag(page):
    tag = QLabel("Only reads")
    tag.setProperty("tag", "safe")
    assert is_round(page, shown(page, tag).rect())


def test_the_handle_of_a_scroll_bar(page):
    bar = QScrollBar(Qt.Orientation.Vertical)
    bar.setRange(0, 100)
    bar.setPageStep(50)
    bar.setMinimumHeight(300)
    shown(page, bar)
    option = QStyleOptionSlider()
    bar.initStyleOption(option)
    part, whole = QStyle.SubControl.SC_ScrollBarSlider, QStyle.ComplexControl.CC_ScrollBar
    assert is_round(page, bar.style().subControlRect(whole, option, part, bar).adjusted(2, 2, -2, -2))
