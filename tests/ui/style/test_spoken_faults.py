"""The walk over the screens finds what it is for."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QApplication,
    QButtonGroup,
    QCheckBox,
    QDialog,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from tests.gallery.keyboard import keyboard_faults
from tests.gallery.spoken import faults
from ui.style.accessibility import install_accessibility


def test_it_finds_what_has_no_name_a_count_in_it_or_the_same_twice(qapp, qtbot):
    install_accessibility(QApplication.instance())
    page = QWidget(windowTitle="Page")
    qtbot.addWidget(page)
    column = QVBoxLayout(page)
    buttons = (QPushButton(), QPushButton("Waiting: 3"), QPushButton("Close"), QPushButton("Close"))
    for part in (*buttons, QCheckBox("Close")):
        column.addWidget(part)
    page.show()
    assert [fault.partition(": QPushButton")[0] for fault in faults()] == ["no name", "value in the name", "twice"]


def link():
    return QLabel("<a href='https://example.org'>Example</a>")


def button_for_the_mouse():
    button = QPushButton("Sort")
    button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    return button


def handle():
    splitter = QSplitter()
    for _ in range(2):
        splitter.addWidget(QWidget())
    return splitter


def group():
    holder = QWidget()
    column, several = QVBoxLayout(holder), QButtonGroup(holder)
    several.setExclusive(False)
    for words in ("Breakfast", "Dinner"):
        box = QCheckBox(words)
        several.addButton(box)
        column.addWidget(box)
    return holder


def text():
    made = QPlainTextEdit()
    made.setAccessibleName("Text")
    return made


class OtherWayBack(QPushButton):
    """Shift+Tab goes where it says; without a place, nowhere."""

    def __init__(self, words, back=None):
        super().__init__(words)
        self.back = back

    def focusNextPrevChild(self, forward):  # noqa: N802  Qt's name
        if forward:
            return super().focusNextPrevChild(True)
        if self.back is not None:
            self.back.setFocus()
        return True


def skipped():
    holder = QWidget()
    column = QVBoxLayout(holder)
    buttons = [QPushButton("Breakfast"), QPushButton("Lunch")]
    for part in (*buttons, OtherWayBack("Dinner", buttons[0])):
        column.addWidget(part)
    return holder


class Elsewhere(QPushButton):
    """Opens another window when Shift+Tab comes to it."""

    def __init__(self):
        super().__init__("Elsewhere")
        self.other = QDialog(self, windowTitle="Other")

    def focusInEvent(self, event):  # noqa: N802  Qt's name
        super().focusInEvent(event)
        if event.reason() == Qt.FocusReason.BacktabFocusReason:
            self.other.show()


def found_beside(part, qtbot):
    install_accessibility(QApplication.instance())
    page = QWidget()
    qtbot.addWidget(page)
    column = QVBoxLayout(page)
    for each in (QPushButton("First"), part, QPushButton("Last")):
        column.addWidget(each)
    with qtbot.waitActive(page):
        page.show()
        page.activateWindow()
    return [fault.partition(" in (")[0] for fault in keyboard_faults()]


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: QLineEdit(accessibleName="Name"), []),
        (button_for_the_mouse, ["no key reaches: QPushButton Button 'Sort'"]),
        (group, ["no key reaches: QCheckBox CheckBox 'Dinner'"]),
        (link, ["takes the mouse alone: QLabel ''"]),
        (handle, ["takes the mouse alone: QSplitterHandle ''"]),
        (text, ["keeps Tab: QPlainTextEdit 'Text'"]),
        (lambda: OtherWayBack("Dinner"), ["keeps Shift+Tab: OtherWayBack 'Dinner'"]),
        (Elsewhere, ["Tab leads to another window: QDialog 'Other'"]),
    ],
    ids=["reached", "button", "group", "link", "handle", "trap", "trap-backwards", "window"],
)
def test_it_finds_what_no_key_reaches(qapp, qtbot, make, found):
    lines = found_beside(make(), qtbot)
    assert [line for line in lines if "'First'" not in line and "'Last'" not in line] == found


def test_it_finds_where_shift_tab_goes_another_way(qapp, qtbot):
    back, _, forth = found_beside(skipped(), qtbot)[0].partition("; and not: ")
    words = [[part.partition("'")[2].rstrip("'") for part in side.split(", ")] for side in (back, forth)]
    assert [sorted(side) for side in words] == [
        ["Breakfast", "Dinner", "First", "Last"],
        ["Breakfast", "Dinner", "First", "Last", "Lunch"],
    ]
