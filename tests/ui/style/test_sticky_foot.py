"""The last row of a form that is higher than its page stays in sight."""

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QLabel, QLineEdit, QPushButton, QScrollArea, QWidget

from ui.style.boxes import vbox
from ui.style.layouts import FocusFollower, StickyFoot

FIELDS = 30


class Page:
    """A form in a scroll area, with so much of the page above and below it."""

    def __init__(self, bot, *, above=0, below=0, height=300):
        self.area, page, self.form = QScrollArea(), QWidget(), QWidget()
        self.fields = [QLineEdit() for _ in range(FIELDS)]
        self.save, self.note = QPushButton("Save"), QLabel("Two\nlines")
        self.note.hide()
        self.foot = StickyFoot(self.form, (self.save,), (self.note,))
        vbox(*self.fields, self.foot, parent=self.form, margins=12)
        column = vbox(self.form, parent=page, margins=0, end_stretch=True)
        column.insertSpacing(0, above)
        column.addSpacing(below)
        self.area.setWidget(page)
        self.area.setWidgetResizable(True)
        FocusFollower(self.area)
        bot.addWidget(self.area)
        self.area.resize(400, height)
        with bot.waitExposed(self.area):
            self.area.show()
        self.bar = self.area.verticalScrollBar()

    def top_in_view(self, widget):
        return widget.mapTo(self.area.viewport(), QPoint(0, 0)).y()

    def bottom_in_view(self, widget):
        return self.top_in_view(widget) + widget.height()


@pytest.fixture
def make_page(qtbot):
    return lambda **room: Page(qtbot, **room)


def test_it_floats_over_the_lower_edge_until_its_place_is_in_sight(make_page):
    page = make_page(below=500)
    height = page.area.viewport().height()
    assert page.foot.is_floating
    assert page.bottom_in_view(page.foot) == height
    page.bar.setValue(100)
    assert page.bottom_in_view(page.foot) == height
    page.bar.setValue(page.bar.maximum() - 300)
    assert not page.foot.is_floating
    assert page.top_in_view(page.foot) > page.bottom_in_view(page.fields[-1])


def test_floating_in_a_card_it_is_the_card_s_lower_edge(make_page):
    page = make_page(below=500)
    left = page.save.mapTo(page.form, QPoint(0, 0)).x()
    page.form.setProperty("kind", "card")
    page.bar.setValue(100)
    assert (page.foot.x(), page.foot.width()) == (0, page.form.width())
    assert page.save.mapTo(page.form, QPoint(0, 0)).x() == left
    page.bar.setValue(page.bar.maximum() - 300)
    assert not page.foot.is_floating
    assert (page.foot.x(), page.foot.width()) == (12, page.form.width() - 24)
    assert page.save.mapTo(page.form, QPoint(0, 0)).x() == left


def test_it_follows_the_size_of_its_page(make_page, qtbot):
    page = make_page()
    page.area.resize(400, 500)
    qtbot.waitUntil(lambda: page.bottom_in_view(page.foot) == page.area.viewport().height())
    page.area.resize(400, page.area.widget().height() + 50)
    qtbot.waitUntil(lambda: not page.foot.is_floating)
    for field in page.fields[5:]:
        field.hide()
    page.area.resize(400, 300)
    qtbot.waitUntil(lambda: 0 <= page.top_in_view(page.foot) - page.bottom_in_view(page.fields[4]) < 40)


def test_it_follows_what_changes_above_its_form(make_page, qtbot):
    page = make_page()
    above = page.area.widget().layout().itemAt(0).spacerItem()
    above.changeSize(0, 120)
    page.area.widget().layout().invalidate()
    qtbot.waitUntil(lambda: page.top_in_view(page.form) == 120)
    qtbot.waitUntil(lambda: page.bottom_in_view(page.foot) == page.area.viewport().height())


def test_it_leaves_the_beginning_of_its_form_to_be_seen(make_page):
    page = make_page(above=280)
    assert page.top_in_view(page.foot) >= page.bottom_in_view(page.fields[0])


def test_what_is_to_be_read_before_a_press_is_in_sight_with_the_buttons(make_page, qtbot):
    page = make_page(height=600)
    # Where another test has left a theme, the foot gets its height by that.
    qtbot.waitUntil(lambda: page.foot.height() == page.foot.sizeHint().height())
    height = page.foot.height()
    page.note.show()
    qtbot.waitUntil(lambda: page.foot.height() > height)
    qtbot.waitUntil(lambda: page.bottom_in_view(page.foot) == page.area.viewport().height())
    assert page.foot.is_floating
    assert page.bottom_in_view(page.note) <= page.top_in_view(page.save)
    page.note.hide()
    qtbot.waitUntil(lambda: page.foot.height() == height)
    qtbot.waitUntil(lambda: page.bottom_in_view(page.foot) == page.area.viewport().height())


def test_it_does_not_cover_a_low_page(make_page):
    page = make_page(height=80)
    assert not page.foot.is_floating


def test_what_gets_the_keyboard_is_not_below_it(make_page, qtbot):
    page = make_page()
    page.area.activateWindow()
    for field in page.fields:
        field.setFocus()
        qtbot.waitUntil(field.hasFocus)
        assert not page.foot.is_floating or page.bottom_in_view(field) <= page.top_in_view(page.foot)
    page.fields[0].setFocus()
    before = page.bar.value()
    page.save.setFocus()
    assert page.bar.value() == before


def test_a_field_that_is_scrolled_to_shows_its_label(make_page, qtbot):
    page = make_page()
    title = QLabel("Name")
    page.form.layout().insertWidget(10, title)
    title.setBuddy(page.fields[10])
    qtbot.waitUntil(lambda: title.isVisible() and title.y() > page.fields[9].y())
    page.fields[-1].setFocus()
    page.fields[10].setFocus()
    assert page.top_in_view(title) >= 0
    assert page.bottom_in_view(page.fields[10]) <= page.area.viewport().height()
