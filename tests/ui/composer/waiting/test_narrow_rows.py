"""Where a message that waits has little room, its words go over its buttons and are not cut to nothing."""

import pytest
from PySide6.QtWidgets import QVBoxLayout, QWidget

from ui.bridge.conduct.conduct import WaitingMessage
from ui.composer.waiting.waiting_messages import WaitingMessages
from ui.look.style import apply_look
from ui.look.theme import ThemeSource

WORDS = "Then look at the tests of the parser, and say which of them cannot fail."


@pytest.mark.parametrize(("zoom", "width"), [(100, 900), (100, 360), (150, 480), (200, 480)])
def test_the_words_are_seen(qtbot, qapp, zoom, width):
    font, palette, themes = qapp.font(), qapp.palette(), ThemeSource()
    themes.use(themes.theme, zoom)
    apply_look(qapp, themes)
    page = QWidget()
    qtbot.addWidget(page)
    column = QVBoxLayout(page)
    waiting = WaitingMessages(themes)
    column.addWidget(waiting)
    column.addStretch(1)
    page.resize(1200, 500)
    page.show()
    try:
        waiting.show_messages([WaitingMessage(id="1", text=WORDS, when="soon", pictures=0)], working=True)
        page.resize(width, 500)
        (row,) = waiting.rows
        inside = waiting._scroll.viewport()

        def fits():
            return row.height() == row.heightForWidth(row.width()) <= inside.height() and row.width() == inside.width()

        qtbot.waitUntil(lambda: page.width() < 1200 and fits())
        assert len(row._text.text()) >= 12
    finally:
        qapp.setStyleSheet("")
        qapp.setFont(font)
        qapp.setPalette(palette)
