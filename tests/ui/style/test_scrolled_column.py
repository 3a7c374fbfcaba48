"""A column is as high as its parts, at every width, up to a bound; then it scrolls, and never sideways."""

import pytest
from PySide6.QtWidgets import QLineEdit, QVBoxLayout, QWidget

from ui.style.controls import label
from ui.style.layouts import ScrollColumn

WORDS = "Which of these files may be changed, and which are to stay as they are? " * 3


class Page(QWidget):
    def __init__(self, most):
        super().__init__()
        self.most = most
        self.column = ScrollColumn(8, most=lambda: self.most)
        layout = QVBoxLayout(self)
        layout.addWidget(self.column)
        layout.addStretch(1)
        self.resize(600, 900)
        self.show()

    def add(self, words=WORDS):
        made = label(words, wrap=True)
        self.column.column.addWidget(made)
        return made

    def is_fitted(self, *parts):
        """Each part has all of its lines."""
        heights = [each.heightForWidth(each.width()) for each in parts]
        is_whole = [each.height() for each in parts] == heights
        return is_whole and self.column.height() == sum(heights) + 8 * (len(parts) - 1)


@pytest.fixture
def page(qtbot):
    made = Page(2000)
    qtbot.addWidget(made)
    return made


def test_it_follows_its_width_and_its_parts(qtbot, page):
    first = page.add()
    qtbot.waitUntil(lambda: page.is_fitted(first))
    wide = page.column.height()
    page.resize(250, 900)
    qtbot.waitUntil(lambda: page.is_fitted(first) and page.column.height() > wide)
    page.resize(600, 900)
    qtbot.waitUntil(lambda: page.is_fitted(first) and page.column.height() == wide)
    page.resize(250, 900)
    second = page.add()
    qtbot.waitUntil(lambda: page.is_fitted(first, second))
    first.setText("No")
    qtbot.waitUntil(lambda: page.is_fitted(first, second))
    second.hide()
    qtbot.waitUntil(lambda: page.is_fitted(first))


def test_parts_that_do_not_wrap_are_counted_too(qtbot, page):
    lines = QLineEdit(), QLineEdit()
    for each in lines:
        page.column.column.addWidget(each)
    qtbot.waitUntil(lambda: page.column.height() == sum(each.sizeHint().height() for each in lines) + 8)


def test_beyond_the_bound_it_scrolls(qtbot, page):
    page.most = 100
    for _ in range(9):
        page.add()
    qtbot.waitUntil(lambda: page.column.height() == 100 and page.column.verticalScrollBar().maximum() > 100)


def test_no_word_pushes_the_ends_of_lines_out_of_sight(qtbot, page):
    page.add("https://" + "x" * 400)
    second = page.add()
    qtbot.waitUntil(lambda: page.column.widget().width() == page.column.viewport().width() == second.width())


def unbounded_column(qtbot, words):
    """A column that is as high as its page, with one text in it."""
    column, page, part = ScrollColumn(8, trailing=6), QWidget(), label(words, wrap=True)
    qtbot.addWidget(page)
    layout = QVBoxLayout(page)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.addWidget(column)
    column.column.addWidget(part)
    return column, page, part


def test_without_a_bound_it_has_the_height_that_it_is_given(qtbot):
    column, page, part = unbounded_column(qtbot, WORDS * 3)
    page.resize(300, 400)
    page.show()
    # Without a bar all lines end where everything ends.
    qtbot.waitUntil(lambda: column.height() == 400 and part.width() == column.viewport().width() == 300)
    page.resize(300, 100)
    qtbot.waitUntil(lambda: column.height() == 100 and column.verticalScrollBar().isVisible())
    assert part.width() == column.viewport().width() - 6
    page.resize(300, 400)
    qtbot.waitUntil(lambda: part.width() == 300)


def test_no_bar_stays_where_there_is_room_without_it(qtbot):
    column, page, part = unbounded_column(qtbot, WORDS)
    page.resize(300, 20)
    page.show()
    qtbot.waitUntil(column.verticalScrollBar().isVisible)
    # Beside the bar the words have one line more, and need the bar.
    beside = part.width()
    width = next(
        wide for wide in range(300, 600) if part.heightForWidth(wide) < part.heightForWidth(beside + wide - 300)
    )
    page.resize(width, part.heightForWidth(width))
    qtbot.waitUntil(lambda: part.width() == column.viewport().width() == width)
    assert not column.verticalScrollBar().isVisible()


def test_parts_are_beside_a_bar_that_comes_while_it_is_shown(qtbot):
    column = ScrollColumn(8, trailing=12)
    qtbot.addWidget(column)
    words = label(WORDS, wrap=True)
    column.column.addWidget(words)
    column.resize(250, 60)
    column.show()
    qtbot.waitUntil(lambda: column.verticalScrollBar().isVisible())
    assert words.width() <= column.viewport().width() - 12
    assert words.height() >= words.heightForWidth(words.width())
