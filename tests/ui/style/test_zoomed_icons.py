"""Icons beside text grow with it."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QLabel, QMenu

from desktop_agent.types.errors import Sentence
from ui.composer.attachment_chips import AttachmentChip
from ui.composer.control_bar import SendStopButton
from ui.shell.banners import Banner, BannerFrame
from ui.style.server_fields import Status, StatusLine
from ui.style.style_sheet import style_sheet
from ui.style.theme import LIGHT, ThemeSource


def shown_state(themes):
    line = StatusLine(themes)
    line.show_state(Status.OK, "It answers.")
    return line


def chip_of_a_picture(themes):
    chip = AttachmentChip(themes, "picture", "harbour.png")
    chip.show_picture(QImage(200, 100, QImage.Format.Format_RGB32))
    return chip


MADE = {
    "chip": lambda themes: AttachmentChip(themes, "picture", "harbour.png"),
    "picture": chip_of_a_picture,
    "banner": lambda themes: BannerFrame(themes, Banner("key", Sentence("It is full."))),
    "state": shown_state,
    "stop": SendStopButton,
}


def icon_width(widget):
    if isinstance(widget, SendStopButton):
        return widget._stop.iconSize().width()
    return max(label.pixmap().width() for label in widget.findChildren(QLabel))


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_an_icon_is_twice_as_large_at_twice_the_zoom(qtbot, make):
    themes = ThemeSource()
    widget = make(themes)
    qtbot.addWidget(widget)
    before = icon_width(widget)
    themes.use(themes.theme, 200)
    assert icon_width(widget) == 2 * before > 0


def arrow_columns(qtbot, zoom):
    """Return the columns of pixels that the arrow of a submenu is in, and the width of the menu."""
    menu = QMenu()
    qtbot.addWidget(menu)
    menu.setStyleSheet(style_sheet(LIGHT, zoom))
    menu.addMenu("").menuAction().setText(" ")
    menu.resize(menu.sizeHint())
    picture = menu.grab().toImage()
    white = QColor(LIGHT.window).rgb()
    # Without the edges and the round corners.
    inside = range(3, picture.width() - 3), range(16, picture.height() - 16)
    return [x for x in inside[0] if any(picture.pixel(x, y) != white for y in inside[1])], picture.width()


@pytest.mark.parametrize("direction", Qt.LayoutDirection.__members__)
def test_the_arrow_of_a_submenu_grows_and_is_where_the_submenu_opens(qapp, qtbot, direction):
    before = qapp.layoutDirection()
    qapp.setLayoutDirection(Qt.LayoutDirection[direction])
    try:
        small, _ = arrow_columns(qtbot, 100)
        large, width = arrow_columns(qtbot, 200)
    finally:
        qapp.setLayoutDirection(before)
    assert len(large) > 1.5 * len(small) > 0
    assert (large[-1] < width / 2) if direction == "RightToLeft" else (large[0] > width / 2)
