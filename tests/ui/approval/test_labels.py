"""Any part of a command can be marked and copied, by mouse and by keys."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QVBoxLayout, QWidget

from desktop_agent.permissions.approvals import explain_line
from desktop_agent.types.tool_calls import CommandPreview
from ui.approval.command_preview import CommandView
from ui.approval.labels import SelectableLabel
from ui.style.theme import ThemeSource

LINE = "curl -fsS https://example.org/install.sh"
LEFT, SHIFT, CONTROL = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.ControlModifier


class Page(QWidget):
    def __init__(self, text):
        super().__init__()
        self.text, self.next = SelectableLabel(text), QLineEdit()
        self.keys = []
        layout = QVBoxLayout(self)
        layout.addWidget(self.text)
        layout.addWidget(self.next)

    def keyPressEvent(self, event):  # noqa: N802 - Qt's name
        self.keys.append(event.key())

    def at(self, index):
        """Return the point before this letter of the line, at half its height."""
        return QPoint(self.text.fontMetrics().horizontalAdvance(self.text.text()[:index]) + 1, 6)

    def drag(self, start, end):
        QTest.mousePress(self.text, LEFT, pos=self.at(start))
        QTest.mouseMove(self.text, self.at(end))
        QTest.mouseRelease(self.text, LEFT, pos=self.at(end))

    def copied(self):
        QGuiApplication.clipboard().clear()
        QTest.keyClick(self.text, Qt.Key.Key_C, CONTROL)
        return QGuiApplication.clipboard().text()


@pytest.fixture
def page(qtbot):
    new_page = Page(LINE)
    new_page.resize(700, 120)
    qtbot.addWidget(new_page)
    with qtbot.waitExposed(new_page):
        new_page.show()
    return new_page


def test_a_part_is_marked_with_the_mouse_and_copied(page):
    page.drag(0, 4)
    assert page.text.selected_text == page.copied() == "curl"
    page.drag(9, 5)
    assert page.copied() == "-fsS"


def test_two_clicks_mark_all_up_to_the_blanks(page):
    QTest.mouseDClick(page.text, LEFT, pos=page.at(20))
    assert page.copied() == "https://example.org/install.sh"
    QTest.mouseDClick(page.text, LEFT, pos=page.at(1))
    assert page.copied() == "curl"


def test_once_clicked_the_keys_mark_too(page):
    QTest.mouseClick(page.text, LEFT, pos=page.at(5))
    assert page.text.hasFocus()
    for _ in range(4):
        QTest.keyClick(page.text, Qt.Key.Key_Right, SHIFT)
    QTest.keyClick(page.text, Qt.Key.Key_Left, SHIFT)
    assert page.copied() == "-fs"
    QTest.mouseClick(page.text, LEFT, SHIFT, page.at(4))
    assert page.text.selected_text == " "
    QTest.keyClick(page.text, Qt.Key.Key_A, CONTROL)
    assert page.copied() == LINE


def test_arrows_that_count_as_keypad_mark_too(page):
    """As all arrows of a Mac do."""
    QTest.mouseClick(page.text, LEFT, pos=page.at(5))
    QTest.keyClick(page.text, Qt.Key.Key_Right, SHIFT | Qt.KeyboardModifier.KeypadModifier)
    assert page.text.selected_text == "-"


def test_other_keys_are_for_what_it_stands_in_and_tab_passes_it_by(page):
    QTest.mouseClick(page.text, LEFT, pos=page.at(5))
    for key in (Qt.Key.Key_D, Qt.Key.Key_Escape):
        QTest.keyClick(page.text, key)
    assert page.keys == [Qt.Key.Key_D, Qt.Key.Key_Escape]
    page.next.setFocus()
    QTest.keyClick(page.next, Qt.Key.Key_Backtab)
    assert not page.text.hasFocus()


def test_what_is_marked_is_seen_until_the_keys_go_elsewhere(page):
    picture = page.text.grab().toImage()
    page.drag(0, 4)
    assert page.text.grab().toImage() != picture
    page.next.setFocus()
    assert page.text.selected_text == ""
    assert page.text.grab().toImage() == picture


def test_in_a_line_that_is_broken_the_second_row_is_met(qtbot):
    page = Page("rm " + "x" * 60 + " y" * 30)
    page.resize(220, 200)
    qtbot.addWidget(page)
    with qtbot.waitExposed(page):
        page.show()
    qtbot.waitUntil(lambda: page.text.height() > 3 * page.text.fontMetrics().lineSpacing())
    bottom = QPoint(page.text.width() - 1, page.text.height() - 4)
    QTest.mousePress(page.text, LEFT, pos=QPoint(0, 4))
    QTest.mouseMove(page.text, bottom)
    QTest.mouseRelease(page.text, LEFT, pos=bottom)
    assert page.text.selected_text == page.text.text()


def test_the_commands_of_a_line_are_such_texts(qtbot):
    view = CommandView(ThemeSource())
    qtbot.addWidget(view)
    line = "cd build && rm -rf dist"
    parts, understood = explain_line(line)
    view.show_command(CommandPreview(line, "/home/ada", "Not confined.", parts, understood))
    assert [label.text() for label in view.findChildren(SelectableLabel)] == ["cd build", "rm -rf dist"]


def test_what_is_drawn_from_the_right_is_copied_as_it_was_written(page):
    page.text.setText("mv א/ש 😀 ב; ls")
    assert page.text.text() == "mv א/ש 😀 ב; ls"
    QTest.mouseClick(page.text, LEFT, pos=QPoint(1, 6))
    QTest.keyClick(page.text, Qt.Key.Key_A, CONTROL)
    assert page.copied() == "mv א/ש 😀 ב; ls"
    QTest.mouseDClick(page.text, LEFT, pos=QPoint(page.text.fontMetrics().horizontalAdvance("mv א"), 6))
    assert page.copied() == "א/ש"


def test_each_press_of_an_arrow_marks_one_letter(page):
    page.text.setText("אx😀y")
    QTest.mouseClick(page.text, LEFT, pos=QPoint(page.text.width() - 1, 6))
    marked = []
    for _ in range(5):
        QTest.keyClick(page.text, Qt.Key.Key_Left, SHIFT)
        marked.append(page.text.selected_text)
    assert marked == ["y", "😀y", "x😀y", "אx😀y", "אx😀y"]
