"""Icons beside text grow with it."""

import pytest
from PySide6.QtWidgets import QLabel

from desktop_agent.types.errors import Sentence
from ui.composer.control_bar import SendStopButton
from ui.shell.banners import Banner, BannerFrame
from ui.style.server_fields import Status, StatusLine
from ui.style.theme import ThemeSource


def shown_state(themes):
    line = StatusLine(themes)
    line.show_state(Status.OK, "It answers.")
    return line


MADE = {
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
