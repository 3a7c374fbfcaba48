"""What keys, the mouse and assistive technology choose in a list."""

import pytest
from PySide6.QtCore import QPoint, QStringListModel, Qt
from PySide6.QtGui import QAccessible

from ui.style.accessibility import ChoiceList, choose_toggled_row


class Rows:
    """A list of four rows; the first is current. It notes what is chosen by assistive technology."""

    def __init__(self, qtbot):
        self.bot = qtbot
        self.chosen = []
        self.view = ChoiceList()
        qtbot.addWidget(self.view)
        self.view.setModel(QStringListModel(list("abcd"), self.view))
        choose_toggled_row(self.view, lambda index: self.chosen.append(index.row()))
        self.view.setCurrentIndex(self.view.model().index(0, 0))
        self.view.resize(200, 300)
        with qtbot.waitExposed(self.view):
            self.view.show()

    @property
    def selected(self):
        return [index.row() for index in self.view.selectedIndexes()]

    def middle(self, row):
        return self.view.visualRect(self.view.model().index(row, 0)).center()

    def toggle(self, row):
        action = QAccessible.queryAccessibleInterface(self.view).child(row).actionInterface()
        before = len(self.chosen)
        action.doAction(action.actionNames()[0])
        self.bot.waitUntil(lambda: len(self.chosen) > before)


@pytest.fixture
def rows(qtbot):
    return Rows(qtbot)


def test_assistive_technology_chooses_any_row_also_the_selected_one(rows):
    for row in (2, 2, 0):
        rows.toggle(row)
        assert rows.view.currentIndex().row() == row
        assert rows.selected == [row]
    assert rows.chosen == [2, 2, 0]


def test_a_drag_and_keys_with_modifiers_select_one_row(rows):
    viewport = rows.view.viewport()
    rows.bot.mousePress(viewport, Qt.MouseButton.LeftButton, pos=rows.middle(0))
    for row in (1, 2):
        rows.bot.mouseMove(viewport, rows.middle(row))
    rows.bot.mouseRelease(viewport, Qt.MouseButton.LeftButton, pos=rows.middle(2))
    assert len(rows.selected) == 1
    for key, modifiers in (
        (Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier),
        (Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier),
        (Qt.Key.Key_Up, Qt.KeyboardModifier.ControlModifier),
    ):
        rows.bot.keyClick(rows.view, key, modifiers)
        assert rows.selected == [rows.view.currentIndex().row()]
    for modifier in (Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier):
        rows.bot.mouseClick(viewport, Qt.MouseButton.LeftButton, modifier, rows.middle(3))
        assert rows.selected == [3]


def test_a_click_beside_the_rows_chooses_nothing(rows):
    beside = rows.middle(3) + QPoint(0, 80)
    assert not rows.view.indexAt(beside).isValid()
    rows.bot.mouseClick(rows.view.viewport(), Qt.MouseButton.LeftButton, pos=beside)
    rows.bot.wait(0)
    assert rows.selected == [0]
    rows.toggle(1)
    assert rows.chosen == [1]
