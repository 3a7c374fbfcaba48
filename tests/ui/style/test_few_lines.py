"""Words that Enter gives."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QVBoxLayout, QWidget

from ui.style.widgets import SmallTextEdit


class Page(QWidget):
    def __init__(self):
        super().__init__()
        self.escaped = 0
        self.lines, self.next = SmallTextEdit("Another wording", 2), QLineEdit()
        layout = QVBoxLayout(self)
        layout.addWidget(self.lines)
        layout.addWidget(self.next)

    def keyPressEvent(self, event):  # noqa: N802 - Qt's name
        self.escaped += event.key() == Qt.Key.Key_Escape


@pytest.fixture
def page(qtbot):
    made = Page()
    qtbot.addWidget(made)
    made.show()
    made.lines.setFocus()
    return made


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_enter_gives_them_and_shift_enter_makes_a_line(qtbot, page, key):
    given = []
    page.lines.given.connect(lambda: given.append(page.lines.toPlainText()))
    qtbot.keyClicks(page.lines, "one")
    qtbot.keyClick(page.lines, key, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(page.lines, "two")
    assert given == []
    qtbot.keyClick(page.lines, key)
    assert given == ["one\ntwo"]


def test_tab_and_escape_are_for_what_it_stands_in(qtbot, page):
    qtbot.keyClick(page.lines, Qt.Key.Key_Escape)
    assert page.escaped == 1
    qtbot.keyClick(page.lines, Qt.Key.Key_Tab)
    qtbot.waitUntil(page.next.hasFocus)
    assert page.lines.toPlainText() == ""


@pytest.mark.parametrize("style", ["", "QPlainTextEdit { padding: 9px; border: 3px solid; font-size: 31px; }"])
def test_as_many_lines_are_seen_as_there_should_be(qtbot, page, style):
    page.setStyleSheet(style)
    assert page.lines.accessibleName() == "Another wording"
    page.lines.setPlainText("\n" * 1)
    qtbot.waitUntil(lambda: page.lines.verticalScrollBar().maximum() == 0)
    page.lines.setPlainText("\n" * 4)
    qtbot.waitUntil(lambda: page.lines.verticalScrollBar().maximum() > 0)
