"""Assistive technology reads a widget as it is laid out, and says what is chosen in a combo box."""

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtGui import QAccessible, QKeySequence
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QFrame,
    QHBoxLayout,
    QKeySequenceEdit,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
    QWidgetItem,
)
from shiboken6 import delete, getAllValidWrappers

from ui.style.accessibility import install_accessibility
from ui.style.controls import IconButton, set_keys_tooltip
from ui.style.layouts import TabOrder
from ui.style.theme import ThemeSource
from ui.style.widgets import ComboBox, WrappedChoice

NAME, DESCRIPTION = QAccessible.Text.Name, QAccessible.Text.Description


@pytest.fixture
def app(qapp):
    install_accessibility(QApplication.instance())
    return qapp


def children(widget):
    node = QAccessible.queryAccessibleInterface(widget)
    return [node.child(index).text(NAME) for index in range(node.childCount())]


def test_what_was_read_in_order_and_is_deleted_is_not_taken_for_what_comes_after(app, qtbot):
    """PySide would give an object made at the address of a deleted item of a layout the type of that."""
    page = QWidget()
    qtbot.addWidget(page)
    column, row = QVBoxLayout(page), QHBoxLayout()
    parts = [QPushButton(str(number)) for number in range(4)]
    row.addWidget(parts[0])
    column.addLayout(row)
    for part in parts[1:]:
        column.addWidget(part)
    TabOrder(None, page)
    page.show()
    known = [type(each) for each in getAllValidWrappers()].count(QWidgetItem)
    assert children(page) == ["0", "1", "2", "3"]
    QApplication.sendEvent(page, QEvent(QEvent.Type.LayoutRequest))
    for part in parts:
        delete(part)
    assert [type(each) for each in getAllValidWrappers()].count(QWidgetItem) == known


@pytest.mark.parametrize("kind", [QWidget, QFrame])
def test_what_is_put_in_front_later_is_read_before(app, qtbot, kind):
    page = kind()
    qtbot.addWidget(page)
    column, row = QVBoxLayout(page), QHBoxLayout()
    QPushButton("Overlay", page)
    column.addWidget(QPushButton("Fourth"))
    column.insertLayout(0, row)
    row.addWidget(QPushButton("Third"))
    row.insertWidget(0, QPushButton("Second"))
    page.show()
    assert children(page) == ["Second", "Third", "Fourth", "Overlay"]
    column.insertWidget(0, QPushButton("First"))
    qtbot.waitUntil(lambda: children(page) == ["First", "Second", "Third", "Fourth", "Overlay"])


def test_a_combo_box_says_what_is_chosen(app, qtbot):
    box = ComboBox()
    qtbot.addWidget(box)
    box.setAccessibleName("Theme")
    box.addItems(["Light", "Dark"])
    box.setCurrentIndex(1)
    node = QAccessible.queryAccessibleInterface(box)
    assert (node.text(NAME), node.text(DESCRIPTION)) == ("Theme", "Dark")
    box.setAccessibleDescription("Of the window.")
    assert node.text(DESCRIPTION) == "Dark. Of the window."


def test_a_field_for_keys_is_a_field_and_says_its_keys(app, qtbot):
    field = QKeySequenceEdit(QKeySequence("Ctrl+J"))
    qtbot.addWidget(field)
    field.setAccessibleName("Keys for a quick question")
    field.setAccessibleDescription("Press the keys here.")
    node = QAccessible.queryAccessibleInterface(field)
    assert node.role() == QAccessible.Role.EditableText
    assert (node.text(NAME), node.text(DESCRIPTION)) == ("Keys for a quick question", "Ctrl+J. Press the keys here.")


def test_a_button_says_its_name_once(app, qtbot):
    button = IconButton(ThemeSource(), "send", "Send")
    qtbot.addWidget(button)
    set_keys_tooltip(button, "Send", "Ctrl+Return")
    assert button.toolTip() == "Send (Ctrl+Enter)"
    assert QAccessible.queryAccessibleInterface(button).text(DESCRIPTION) == "Ctrl+Enter"


def test_the_words_beside_a_box_belong_to_it(app, qtbot):
    box = QCheckBox()
    choice = WrappedChoice(box, "Bread & butter")
    qtbot.addWidget(choice)
    choice.describe("Every <day>")
    node = QAccessible.queryAccessibleInterface(box)
    assert (node.text(NAME), node.text(DESCRIPTION)) == ("Bread & butter", "Every <day>")
    assert choice.words == "Bread & butter"
    words = choice.findChild(QLabel)
    assert words.buddy() is box
    assert QAccessible.queryAccessibleInterface(words).text(NAME) == "Bread & butter"
