"""The dialog for what servers ask at every size of text: it grows with it, and its parts have room."""

import pytest
from PySide6.QtWidgets import QCheckBox, QLabel, QListWidget, QWidget

from tests.ui.approval.server_requests.test_request_dialog import REVIEW, Driver, form, page
from ui.bridge.mcp.requests import PendingSampling
from ui.style.style_sheet import apply_theme
from ui.style.theme import LIGHT, ThemeSource

ASKED = {"form": form(), "page": page("https://accounts.example.org/"), "request": PendingSampling("1", REVIEW)}


@pytest.fixture
def roomy(qtbot, qapp):
    """Return a function that builds a driver with this zoom and window size."""

    def make(zoom, room):
        themes, window = ThemeSource(LIGHT, zoom), QWidget()
        apply_theme(qapp, themes)
        window.resize(*room)
        qtbot.addWidget(window)
        window.show()
        return Driver(qtbot, window=window, themes=themes)

    yield make
    qapp.setStyleSheet("")


@pytest.mark.parametrize("question", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize(("zoom", "room"), [(100, (1180, 800)), (200, (1180, 800)), (200, (600, 700))])
def test_there_is_room_for_what_is_asked_at_every_size_of_text(roomy, question, zoom, room):
    driver = roomy(zoom, room)
    request_page = driver.show(question)
    line = driver.dialog.fontMetrics().height()
    assert driver.dialog.width() <= max(room[0], driver.dialog.minimumSizeHint().width())
    assert request_page.view.height() >= 6 * line
    hint = request_page.bar._hint
    assert hint.width() >= 12 * line
    assert request_page.bar.height() < 7 * line


def test_no_word_of_a_form_is_cut_in_a_narrow_dialog(roomy):
    fields = {
        "quiet": {"type": "boolean", "title": "In the quiet part of the train"},
        "meals": {"type": "array", "items": {"enum": ["Breakfast in the dining car", "Dinner"]}},
        "token": {"type": "string", "title": "Your API token", "description": "From the page of your account."},
    }
    driver = roomy(229, (480, 600))
    request_page = driver.show(form(schema={"properties": fields}))
    assert driver.dialog.width() == 480
    for widget in [*request_page.view.findChildren(QLabel), *request_page.view.findChildren(QCheckBox)]:
        assert widget.width() >= widget.minimumSizeHint().width()
        if isinstance(widget, QLabel) and widget.isVisible():
            assert widget.height() >= widget.heightForWidth(widget.width())


def test_the_list_stands_above_what_is_asked_where_there_is_no_room_beside(roomy):
    driver = roomy(229, (480, 600))
    request_page = driver.show(form("1"), form("2"))
    assert driver.dialog.width() == 480
    rows = driver.dialog.findChild(QListWidget)
    assert (
        rows.mapTo(driver.dialog, rows.rect().bottomLeft()).y()
        < request_page.mapTo(driver.dialog, request_page.rect().topLeft()).y()
    )


def test_a_step_to_take_is_as_wide_as_its_words(roomy):
    driver = roomy(100, (1180, 800))
    driver.show(ASKED["page"])
    assert driver.button("Open the page").width() < driver.dialog.width() / 2
