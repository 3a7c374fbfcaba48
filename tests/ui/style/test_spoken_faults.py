"""The walk over the screens finds what it is for."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QApplication,
    QButtonGroup,
    QCheckBox,
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
    page = QWidget()
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


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: QLineEdit(accessibleName="Name"), []),
        (button_for_the_mouse, ["no key reaches: QPushButton Button 'Sort'"]),
        (group, ["no key reaches: QCheckBox CheckBox 'Dinner'"]),
        (link, ["takes the mouse alone: QLabel ''"]),
        (handle, ["takes the mouse alone: QSplitterHandle ''"]),
        (text, ["keeps Tab: QPlainTextEdit 'Text'"]),
    ],
    ids=["reached", "button", "group", "link", "handle", "trap"],
)
def test_it_finds_what_no_key_reaches(qapp, qtbot, make, found):
    install_accessibility(QApplication.instance())
    page = QWidget()
    qtbot.addWidget(page)
    column = QVBoxLayout(page)
    for part in (QPushButton("First"), make(), QPushButton("Last")):
        column.addWidget(part)
    with qtbot.waitActive(page):
        page.show()
        page.activateWindow()
    lines = [fault.partition(" in (")[0] for fault in keyboard_faults()]
    assert [line for line in lines if "'First'" not in line and "'Last'" not in line] == found
