"""Text that one can only read: as high as its lines, and nobody writes in it."""

import pytest
from PySide6.QtGui import QInputMethodEvent
from PySide6.QtWidgets import QApplication

from ui.style.read_only_text import ReadOnlyText
from ui.style.text_display import LogicalOrderText


@pytest.fixture
def text(qtbot):
    made = ReadOnlyText("word " * 60, "Description")
    qtbot.addWidget(made)
    made.show()
    return made


def test_it_has_its_height_again_after_it_had_no_room_beside_its_scroll_bar(text):
    text.resize(200, 100)
    height = text.height()
    for width in range(200, 0, -1):
        text.resize(width, text.height())
    text.resize(200, text.height())
    assert text.height() == height


def logical_order_text(*, is_read_only):
    made = LogicalOrderText()
    made.setReadOnly(is_read_only)
    return made


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: ReadOnlyText("", "Description"), ""),
        (lambda: logical_order_text(is_read_only=True), ""),
        (lambda: logical_order_text(is_read_only=False), "日本"),
    ],
)
def test_an_input_method_writes_only_where_one_can_write(qtbot, make, expected):
    field = make()
    qtbot.addWidget(field)
    written = QInputMethodEvent()
    written.setCommitString("日本")
    QApplication.sendEvent(field, written)
    assert field.toPlainText() == expected
