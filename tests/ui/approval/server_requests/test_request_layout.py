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
    """Makes a driver whose texts are so large, and whose window is so."""

    def make(zoom, room):
        themes, window = ThemeSource(LIGHT, zoom), QWidget()
        apply_theme(qapp, themes)
        window.resize(*room)
        qtbot.addWidget(window)
        window.show()
        return Driver(qtbot, window=window, themes=themes)

    yield make
    qapp.setStyleSheet("")


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize(("zoom", "room"), [(100, (1180, 800)), (200, (1180, 800)), (200, (600, 700))])
def test_there_is_room_for_what_is_asked_at_every_size_of_text(roomy, asked, zoom, room):
    driver = roomy(zoom, room)
    shown = driver.show(asked)
    line = driver.dialog.fontMetrics().height()
    assert driver.dialog.width() <= max(room[0], driver.dialog.minimumSizeHint().width())
    assert shown.view.height() >= 6 * line
    hint = shown.bar._hint
    assert hint.width() >= 12 * line
    assert shown.bar.height() < 7 * line


def test_no_word_of_a_form_is_cut_in_a_narrow_dialog(roomy):
    fields = {
        "quiet": {"type": "boolean", "title": "In the quiet part of the train"},
        "meals": {"type": "array", "items": {"enum": ["Breakfast in the dining car", "Dinner"]}},
        "token": {"type": "string", "title": "Your API token", "description": "From the page of your account."},
    }
    driver = roomy(229, (480, 600))
    shown = driver.show(form(schema={"properties": fields}))
    assert driver.dialog.width() == 480
    for each in [*shown.view.findChildren(QLabel), *shown.view.findChildren(QCheckBox)]:
        assert each.width() >= each.minimumSizeHint().width()
        if isinstance(each, QLabel) and each.isVisible():
            assert each.height() >= each.heightForWidth(each.width())


def test_the_list_stands_above_what_is_asked_where_there_is_no_room_beside(roomy):
    driver = roomy(229, (480, 600))
    shown = driver.show(form("1"), form("2"))
    assert driver.dialog.width() == 480
    rows = driver.dialog.findChild(QListWidget)
    assert (
        rows.mapTo(driver.dialog, rows.rect().bottomLeft()).y() < shown.mapTo(driver.dialog, shown.rect().topLeft()).y()
    )


def test_a_step_to_take_is_as_wide_as_its_words(roomy):
    driver = roomy(100, (1180, 800))
    driver.show(ASKED["page"])
    assert driver.button("Open the page").width() < driver.dialog.width() / 2
