from datetime import datetime, timedelta

import pytest
from PySide6.QtCore import QLocale, QPersistentModelIndex, Qt

from tests.ui.sidebar.test_conversation_list import Driver, Record
from ui.sidebar.conversation_model import ConversationModel, DateGroup, date_groups

NOON = datetime(2026, 5, 20, 12, 0).astimezone()
AGES = (0, 0, 1, 2, 6, 20, 60, 61, 500)
"""Days."""


@pytest.fixture(autouse=True)
def english():
    before = QLocale()
    QLocale.setDefault(QLocale("en_GB"))
    yield
    QLocale.setDefault(before)


def aged(*days):
    return [Record(str(number), f"C{number}", NOON - timedelta(age)) for number, age in enumerate(days)]


def test_the_groups_of_dates():
    assert date_groups(aged(*AGES), NOON) == [
        DateGroup("Today", 0),
        DateGroup("Yesterday", 2),
        DateGroup("Previous 7 days", 3),
        DateGroup("Previous 30 days", 5),
        DateGroup("March 2026", 6),
        DateGroup("January 2025", 8),
    ]
    assert date_groups([], NOON) == []


def test_a_clock_that_was_wrong_loses_nothing():
    rows = aged(-400, 3, 1, 0, 90, 2)
    groups = date_groups(rows, NOON)
    assert groups[0] == DateGroup("Today", 0)
    model = ConversationModel(now=lambda: NOON)
    model.set_conversations(rows)
    assert [model.id_of(n) for n in range(model.count)] == [row.id for row in rows]
    assert [model.id_at(model.row_of(row.id)) for row in rows] == [row.id for row in rows]


def rows_of(model):
    return [model.index(row).data() for row in range(model.rowCount())]


def test_headings_are_rows_that_cannot_be_chosen():
    model = ConversationModel(now=lambda: NOON)
    model.set_conversations(aged(0, 1))
    assert rows_of(model) == ["Today", "C0", "Yesterday", "C1"]
    assert [bool(model.flags(model.index(row)) & Qt.ItemFlag.ItemIsEnabled) for row in range(4)] == [0, 1, 0, 1]
    assert not model.setData(model.index(0), "Never")
    assert model.index(2).data(Qt.ItemDataRole.AccessibleTextRole) == "Yesterday"


def test_rows_move_along_with_their_headings():
    model = ConversationModel(now=lambda: NOON)
    one, other = aged(0, 1)
    model.set_conversations([one, other])
    kept = QPersistentModelIndex(model.index(3))
    other.updated_at = NOON + timedelta(minutes=1)
    model.set_conversations([other, one])
    assert rows_of(model) == ["Today", "C1", "C0"]
    assert kept.data() == "C1"


@pytest.fixture
def driver(qtbot):
    made = Driver(qtbot)
    today = datetime.now().astimezone()
    made.pane.set_conversations([Record(str(age), f"C{age}", today - timedelta(age)) for age in (0, 1, 3, 90)])
    made.pane.focus_list()
    return made


def test_the_headings_are_those_of_the_day_in_a_window_that_stays_open(driver):
    driver.bot.keyClick(driver.rows, Qt.Key.Key_Down)
    model = driver.rows.rows
    tomorrow = datetime.now().astimezone() + timedelta(1)
    model._now = lambda: tomorrow
    driver.rows._day_timer.timeout.emit()
    assert rows_of(model)[:5] == ["Yesterday", "C0", "Previous 7 days", "C1", "C3"]
    assert driver.rows.currentIndex().data() == "C0"
    model._now = lambda: tomorrow - timedelta(1)
    driver.pane.hide()
    driver.pane.show()
    assert rows_of(model)[:4] == ["Today", "C0", "Yesterday", "C1"]


def test_the_keyboard_passes_over_headings(driver):
    seen = []
    for key in (*[Qt.Key.Key_Down] * 4, Qt.Key.Key_Home, Qt.Key.Key_Up, Qt.Key.Key_End, Qt.Key.Key_PageUp):
        driver.bot.keyClick(driver.rows, key)
        seen.append(driver.rows.currentIndex().data())
    assert seen == ["C0", "C1", "C3", "C90", "C0", "C0", "C90", "C0"]


def test_a_heading_under_the_pointer_opens_nothing(driver):
    heading = driver.rows.visualRect(driver.rows.model().index(0, 0)).center()
    driver.bot.mouseClick(driver.rows.viewport(), Qt.MouseButton.LeftButton, pos=heading)
    driver.rows.entered.emit(driver.rows.model().index(0, 0))
    driver.rows.customContextMenuRequested.emit(heading)
    assert driver.facts == []
    assert not driver.rows._button.isVisible()


def test_more_is_asked_for_only_near_the_end(driver, qtbot):
    asked = []
    driver.pane.set_conversations([Record(str(number), f"C{number}") for number in range(500)])
    driver.pane.end_neared.connect(lambda: asked.append(True))
    driver.bot.keyClick(driver.rows, Qt.Key.Key_Home)
    driver.bot.keyClick(driver.rows, Qt.Key.Key_PageDown)
    assert asked == []
    driver.bot.keyClick(driver.rows, Qt.Key.Key_End)
    assert asked
