"""A list that is narrowed by what is typed over it, and worked by keys from there."""

import pytest
from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLabel, QLineEdit, QListView, QPushButton, QToolButton, QWidget

from ui.style.list_rows import ResultModel, ResultRow, RowRole
from ui.style.pickers import SearchPopup
from ui.style.theme import ThemeSource

FRUITS = ("apple", "banana", "cherry", "date")


def fruit(name, **more):
    return ResultRow(text=name, is_choosable=True, **more)


class Desk:
    """A popup of fruits over a part of a window."""

    def __init__(self, qtbot):
        self.bot = qtbot
        self.themes = ThemeSource()
        self.window = QWidget()
        self.window.resize(300, 300)
        self.under = QLabel("Fruits", self.window)
        self.names, self.current, self.asked = FRUITS, "", []
        words = {"name": "Fruits", "refresh": "Look again", "link": "All fruits…"}
        self.popup = SearchPopup(self.themes, self.find, QSize(200, 180), self.window, **words)
        self.popup.panel.set_label("Search fruits", "Search, or type a fruit")
        self.chosen, self.left = [], []
        self.popup.chosen.connect(lambda row: self.chosen.append(row.text))
        self.popup.left.connect(self.left.append)
        qtbot.addWidget(self.window)
        self.window.show()

    def find(self, typed):
        self.asked.append(typed)
        rows = [fruit(each, is_current=each == self.current) for each in self.names if typed in each]
        return [ResultRow(text="From the garden", is_heading=True), *rows]

    def open(self):
        self.popup.show_over(self.under)
        return self

    def part(self, kind):
        return self.popup.findChild(kind)

    @property
    def marked(self):
        return self.part(QListView).currentIndex().data()

    def key(self, key):
        self.bot.keyClick(self.part(QLineEdit), key)

    def type(self, words):
        self.bot.keyClicks(self.part(QLineEdit), words)


@pytest.fixture
def desk(qtbot, qt_messages):
    # The offscreen platform says so of every popup.
    qt_messages.expect("grabbing the keyboard")
    return Desk(qtbot)


def test_its_parts_are_named(desk):
    desk.open()
    field = desk.part(QLineEdit)
    assert (field.accessibleName(), field.placeholderText()) == ("Search fruits", "Search, or type a fruit")
    assert desk.popup.accessibleName() == desk.part(QListView).accessibleName() == "Fruits"
    desk.popup.panel.set_label("Search berries")
    assert (field.accessibleName(), field.placeholderText()) == ("Search berries", "Search berries")


def test_keys_walk_what_can_be_chosen_and_stop_at_the_ends(desk):
    desk.open()
    seen = []
    for key in (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Up):
        desk.key(key)
        seen.append(desk.marked)
    assert seen == ["apple", "banana", "cherry", "date", "date", "cherry"]
    desk.key(Qt.Key.Key_Enter)
    assert (desk.chosen, desk.left) == (["cherry"], [])
    assert not desk.popup.isVisible()


def test_the_one_in_use_is_marked_until_something_is_typed(desk):
    desk.current = "cherry"
    desk.open()
    assert desk.marked == "cherry"
    desk.type("e")
    assert desk.marked == "apple"
    assert desk.asked[-1] == "e"


def test_a_click_on_a_heading_chooses_nothing(desk):
    desk.open()
    rows = desk.part(QListView)
    for number in (0, 2):
        place = rows.visualRect(rows.model().index(number, 0)).center()
        desk.bot.mouseClick(rows.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert desk.chosen == ["banana"]


def test_where_nothing_is_found_enter_does_nothing(desk):
    desk.open().type("kiwi")
    desk.key(Qt.Key.Key_Return)
    assert (desk.chosen, desk.popup.isVisible()) == ([], True)


def test_it_is_said_when_nothing_was_chosen(desk):
    desk.open().type("ban")
    desk.popup.hide()
    assert (desk.left, desk.chosen) == (["ban"], [])
    desk.open()
    assert desk.popup.panel.field.text() == ""
    desk.key(Qt.Key.Key_Return)
    assert (desk.left, desk.chosen) == (["ban"], ["apple"])
    desk.open().popup.hide()
    assert desk.left == ["ban", ""]


def test_the_mark_stays_when_something_else_is_found(desk):
    desk.open()
    desk.key(Qt.Key.Key_Down)
    desk.names = ("apricot", *FRUITS)
    desk.popup.fill()
    assert desk.marked == "banana"
    desk.names = ("cherry",)
    desk.popup.fill()
    assert desk.marked == "cherry"


def test_the_one_in_use_is_marked_when_it_comes_unless_another_was_gone_to(desk):
    desk.names, desk.current = FRUITS[:2], "cherry"
    desk.open()
    assert desk.marked == "apple"
    desk.names = FRUITS
    desk.popup.fill()
    assert desk.marked == "cherry"
    desk.popup.hide()
    desk.names = FRUITS[:2]
    desk.open()
    desk.key(Qt.Key.Key_Down)
    desk.names = FRUITS
    desk.popup.fill()
    assert desk.marked == "banana"


def test_out_of_sight_nothing_is_looked_for(desk):
    desk.popup.fill()
    assert desk.asked == []
    desk.open()
    assert desk.asked == [""]


def test_it_can_be_asked_anew_and_left_for_a_page(desk):
    desk.open()
    with desk.bot.waitSignal(desk.popup.refresh_requested):
        desk.bot.mouseClick(desk.part(QToolButton), Qt.MouseButton.LeftButton)
    assert desk.popup.isVisible()
    with desk.bot.waitSignal(desk.popup.link_followed):
        desk.bot.mouseClick(desk.part(QPushButton), Qt.MouseButton.LeftButton)
    assert (desk.popup.isVisible(), desk.left) == (False, [""])


@pytest.mark.parametrize(("top", "zoom"), [(10, 100), (300, 100), (500, 100), (300, 300), (500, 300)])
def test_it_stands_over_or_under_where_there_is_more_room(desk, top, zoom):
    desk.themes.use(desk.themes.theme, zoom)
    desk.window.move(40, top)
    screen = desk.under.screen().availableGeometry()
    desk.open()
    under = desk.under.mapToGlobal(QPoint(0, 0)).y()
    shown = desk.popup.geometry()
    # The offscreen platform moves a popup by a frame that it does not have.
    assert screen.adjusted(0, 0, 2, 2).contains(shown)
    above = under - screen.top()
    is_above = above >= min(180 * zoom / 100 + 4, screen.height() - above)
    assert (shown.bottom() < under) if is_above else (shown.top() > under)
    assert shown.height() <= 180 * zoom // 100


@pytest.mark.parametrize("top", [10, 500])
def test_it_is_as_high_as_its_rows_and_no_lower_while_it_is_open(desk, top):
    desk.popup = SearchPopup(desk.themes, desk.find, QSize(200, 450), desk.window, name="Fruits", refresh="", link="")
    desk.window.move(40, top)
    desk.names = FRUITS[:2]
    desk.open()
    rows, bar = desk.part(QListView), desk.part(QListView).verticalScrollBar()

    def free():
        last = rows.visualRect(rows.model().index(rows.model().rowCount() - 1, 0))
        return rows.viewport().height() - last.bottom()

    edge = QRect.bottom if top > 200 else QRect.top
    kept = edge(desk.popup.geometry())
    assert (bar.maximum(), free() < 10, free() >= 0) == (0, True, True)
    low = desk.popup.height()
    desk.type("a")
    assert desk.popup.height() == low
    desk.part(QLineEdit).clear()
    desk.names = FRUITS
    desk.popup.fill()
    assert desk.popup.height() > low
    assert (bar.maximum(), free() < 10, edge(desk.popup.geometry())) == (0, True, kept)
    desk.names = FRUITS * 10
    desk.popup.fill()
    assert (desk.popup.height() <= 450, bar.maximum() > 0, edge(desk.popup.geometry())) == (True, True, kept)
    desk.popup.hide()
    desk.names = FRUITS[:2]
    desk.open()
    assert desk.popup.height() == low


def test_what_a_row_says_and_looks_like():
    rows = ResultModel()
    full = fruit("fig", under="sweet", detail="✓", icon="document", badge="problem", is_faded=True)
    rows.show_rows([ResultRow(text="Fruits", is_heading=True), full, fruit("kiwi", tip="green", spoken="kiwi, green")])
    heading, fig, kiwi = (rows.index(at) for at in range(3))
    roles = [RowRole.SUBTITLE, RowRole.DETAIL, RowRole.ICON, RowRole.BADGE, RowRole.FADED, RowRole.HEADING]
    assert [fig.data(role) for role in roles] == ["sweet", "✓", "document", "problem", True, False]
    spoken, tip = Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole
    assert (fig.data(spoken), kiwi.data(spoken)) == ("fig, sweet", "kiwi, green")
    assert "fig\nsweet" in fig.data(tip).replace("<br>", "\n").replace("<br/>", "\n")
    assert "green" in kiwi.data(tip)
    assert (heading.data(RowRole.HEADING), heading.flags()) == (True, Qt.ItemFlag.NoItemFlags)
    assert rows.next_choosable(-1, 1) == 1
    assert rows.next_choosable(2, 1) == -1
    assert rows.place_of(full) == 1
    assert rows.place_of(None) == rows.place_of(fruit("lime")) == -1
