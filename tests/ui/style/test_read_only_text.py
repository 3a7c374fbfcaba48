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


PARAGRAPHS = """Sum up these notes for the weekly mail:

- the import reads a file once
- invoices are kept for ten years
- who left in 2019 is deleted in March"""


@pytest.mark.parametrize("most_lines", range(8, 20))
def test_paragraphs_that_are_not_laid_out_yet_are_counted_too(qtbot, most_lines):
    text = ReadOnlyText(PARAGRAPHS, "Description", most_lines)
    qtbot.addWidget(text)
    text.show()
    text.resize(400, text.height())
    height = text.height()
    for width in [*range(400, 60, -1), 400]:
        # A layout that is short of room, for a moment.
        text.setMinimumHeight(0)
        text.setMaximumHeight(1000)
        text.resize(width, 260)
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
