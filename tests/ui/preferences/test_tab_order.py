"""Tab goes through a page as it is read."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QPushButton, QScrollArea, QVBoxLayout, QWidget

from ui.preferences.tab_order import TabOrder


class Dialog(QWidget):
    """A list of pages, a page with a foot, and a button under all of it."""

    def __init__(self):
        super().__init__()
        self.pages, self.add, self.close_button = QLineEdit(), QPushButton("Add"), QPushButton("Close")
        page = QWidget()
        self.column = QVBoxLayout(page)
        self.column.addWidget(self.add)
        TabOrder(self.pages, page)
        layout = QVBoxLayout(self)
        for each in (self.pages, page, self.close_button):
            layout.addWidget(each)

    def stops(self, bot):
        """Where Tab stops, from the list of pages around to it."""
        self.pages.setFocus()
        found = []
        for _ in range(10):
            bot.keyClick(self.focusWidget(), Qt.Key.Key_Tab)
            if self.focusWidget() is self.pages:
                return found
            found.append(self.focusWidget().text())
        return found


@pytest.fixture
def dialog(qtbot):
    made = Dialog()
    qtbot.addWidget(made)
    made.show()
    qtbot.waitExposed(made)
    return made


def card(*words):
    made = QWidget()
    layout = QVBoxLayout(made)
    for each in words:
        layout.addWidget(QPushButton(each))
    return made


def test_cards_that_come_later_stand_where_they_are_seen(dialog, qtbot):
    dialog.column.insertWidget(0, card("Second", "Third"))
    dialog.column.insertWidget(0, card("First"))

    qtbot.waitUntil(lambda: dialog.stops(qtbot) == ["First", "Second", "Third", "Add", "Close"])


def test_what_comes_into_a_card_stands_in_it(dialog, qtbot):
    first = card("First")
    dialog.column.insertWidget(0, first)
    dialog.column.insertWidget(1, card("Third"))
    scroll = QScrollArea()
    scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    scroll.setWidget(card("Second"))
    first.layout().addWidget(scroll)
    scroll.show()

    qtbot.waitUntil(lambda: dialog.stops(qtbot) == ["First", "Second", "Third", "Add", "Close"])
