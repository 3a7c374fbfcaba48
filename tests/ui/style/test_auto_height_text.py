"""Texts as high as their lines, and nobody writes in one that is only to read."""

from itertools import pairwise

import pytest
from PySide6.QtGui import QInputMethodEvent
from PySide6.QtWidgets import QApplication, QLayout, QWidget

from ui.style.auto_height_text import ReadOnlyText
from ui.style.boxes import vbox
from ui.style.text_display import LogicalOrderText


@pytest.fixture
def column(qtbot):
    """A column that may be narrower than what is in it."""
    made = QWidget()
    vbox(parent=made, margins=0, end_stretch=True).setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)
    qtbot.addWidget(made)
    made.show()
    return made


def put_into(column, text):
    column.layout().insertWidget(0, text)
    text.show()
    return text


def resize(column, width, height=900):
    column.resize(width, height)
    QApplication.processEvents()


def test_it_has_its_height_again_after_it_had_no_room_beside_its_scroll_bar(column):
    text = put_into(column, ReadOnlyText("word " * 60, "Description"))
    resize(column, 200)
    height = text.height()
    for width in range(200, 0, -1):
        resize(column, width)
    resize(column, 200)
    assert text.height() == height


PARAGRAPHS = """Sum up these notes for the weekly mail:

- the import reads a file once
- invoices are kept for ten years
- who left in 2019 is deleted in March"""


@pytest.mark.parametrize("most_lines", range(8, 20))
def test_paragraphs_that_are_not_laid_out_yet_are_counted_too(column, most_lines):
    text = put_into(column, ReadOnlyText(PARAGRAPHS, "Description", most_lines))
    resize(column, 400)
    height = text.height()
    for width in [*range(400, 60, -1), 400]:
        # A column that is short of room, for a moment.
        column.resize(width, 40)
        resize(column, width)
    assert text.height() == height


def test_it_is_as_high_as_its_lines_and_scrolls_beyond(column):
    text = put_into(column, ReadOnlyText("one", "Description", 3))
    heights = []
    for lines in range(1, 6):
        text.show_text("\n".join("one" for _ in range(lines)))
        resize(column, 400)
        heights.append(text.height())
    steps = [later - earlier for earlier, later in pairwise(heights)]
    assert steps[0] == steps[1] > 0
    assert steps[2:] == [0, 0]
    assert text.verticalScrollBar().maximum() == 2


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
