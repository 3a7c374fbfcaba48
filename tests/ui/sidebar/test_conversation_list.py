from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QAction
from PySide6.QtWidgets import QLineEdit, QListView, QMenu, QPushButton, QToolButton

from desktop_agent.types.messages import Role
from desktop_agent.types.search import ConversationHits, SearchHit, SearchPlace, SearchResults
from tests.ui.pixels import colors_of
from ui.sidebar import conversation_list
from ui.sidebar.conversation_list import ConversationList
from ui.sidebar.conversation_model import ConversationModel
from ui.sidebar.footer import SidebarFooter
from ui.style.list_rows import RowRole
from ui.style.style_sheet import ThemeApplier, style_sheet
from ui.style.theme import ThemeSource

KEYPAD = Qt.KeyboardModifier.KeypadModifier
NOON = datetime(2026, 5, 20, 12, 0).astimezone()


@dataclass
class Record:
    id: str
    title: str
    updated_at: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    is_pinned: bool = False
    tags: tuple[str, ...] = ()


class Driver:
    def __init__(self, qtbot, titles=("Apples", "Pears", "Plums")):
        self.bot = qtbot
        self.pane = ConversationList(ThemeSource())
        qtbot.addWidget(self.pane)
        self.pane.resize(260, 500)
        self.pane.show()
        self.facts = []
        for name in ("conversation_chosen", "new_requested", "rename_requested", "delete_requested"):
            getattr(self.pane, name).connect(lambda *given, name=name: self.facts.append((name, *given)))
        self.pane.set_conversations([Record(str(i), title) for i, title in enumerate(titles)])

    def part(self, kind, name):
        return next(each for each in self.pane.findChildren(kind) if each.accessibleName() == name)

    @property
    def rows(self):
        return self.part(QListView, "Conversations")

    @property
    def titles(self):
        return [self.index(number).data() for number in range(self.rows.model().count)]

    def index(self, number):
        """That of a conversation, counted without the headings."""
        model = self.rows.model()
        return model.index(model.row_of(model.id_of(number)), 0)

    @property
    def marked(self):
        return [each.data() for each in self.rows.selectedIndexes()]

    def place(self, row):
        return self.rows.visualRect(self.index(row)).center()

    def click(self, row):
        self.bot.mouseClick(self.rows.viewport(), Qt.MouseButton.LeftButton, pos=self.place(row))


@pytest.fixture
def driver(qtbot):
    return Driver(qtbot)


def test_one_click_opens(driver):
    driver.click(1)
    assert driver.facts == [("conversation_chosen", "1")]


def test_assistive_technology_opens_any_row_also_the_open_one(driver):
    driver.click(1)
    driver.pane.set_current("1")
    for number in (1, 0):
        row = driver.index(number).row()
        action = QAccessible.queryAccessibleInterface(driver.rows).child(row).actionInterface()
        action.doAction(action.actionNames()[0])
        driver.bot.waitUntil(lambda number=number: driver.facts[-1] == ("conversation_chosen", str(number)))
        assert driver.rows.currentIndex() == driver.index(number)
    assert [name for name, *_ in driver.facts] == ["conversation_chosen"] * 3
    assert driver.marked == ["Pears"]


def test_enter_opens(driver):
    driver.pane.focus_list()
    driver.bot.keyClick(driver.rows, Qt.Key.Key_Down)
    driver.bot.keyClick(driver.rows, Qt.Key.Key_Return)
    assert driver.facts == [("conversation_chosen", "0")]


def test_a_new_conversation(driver):
    driver.bot.mouseClick(driver.part(QPushButton, "New conversation"), Qt.MouseButton.LeftButton)
    assert driver.facts == [("new_requested",)]


def found(pane, *titles, hits=()):
    """Answer what is asked."""
    results = SearchResults(tuple(ConversationHits(title, title, ((0, 1),), hits) for title in titles))
    pane.show_results(pane.query, results)


def hit(id_="m1", snippet="Plum jam"):
    return SearchHit(id_, Role.USER, NOON, SearchPlace.TEXT, snippet, ((0, 4),))


def test_what_is_typed_is_asked_with_each_letter_and_the_results_take_the_place_of_the_list(driver):
    asked, ended = [], []
    driver.pane.search_requested.connect(asked.append)
    driver.pane.search_ended.connect(lambda: ended.append(True))
    field = driver.part(QLineEdit, "Search conversations")
    driver.bot.keyClicks(field, "pl")
    assert [each.text for each in asked] == ["p", "pl"]
    assert driver.rows.isVisible()
    driver.pane.show_results(asked[0], SearchResults((ConversationHits("late", "Late"),)))
    assert driver.rows.isVisible()
    found(driver.pane, "Plums")
    assert not driver.rows.isVisible()
    results = driver.part(QListView, "Search results")
    assert results.model().index(0, 0).data() == "Plums"
    driver.bot.keyClicks(field, " ")
    field.clear()
    assert ended == [True]
    assert driver.rows.isVisible()
    assert not results.isVisible()


def test_enter_opens_the_best_also_before_the_results_are_there(driver):
    hits = []
    driver.pane.hit_chosen.connect(lambda *given: hits.append(given))
    field = driver.part(QLineEdit, "Search conversations")
    driver.bot.keyClicks(field, "plum")
    driver.bot.keyClick(field, Qt.Key.Key_Return)
    assert driver.facts == []
    driver.pane.show_results(driver.pane.query, SearchResults(is_complete=False))
    driver.bot.keyClick(field, Qt.Key.Key_Return)
    found(driver.pane, "2")
    found(driver.pane, "3")
    assert driver.facts == [("conversation_chosen", "2")]
    driver.pane.show_results(driver.pane.query, SearchResults((ConversationHits("7", "Jam", (), (hit(),), 1),)))
    driver.bot.keyClick(field, Qt.Key.Key_Return)
    assert hits == [("7", hit(), "plum")]
    assert field.text() == "plum"


def test_the_button_that_clears_the_search_is_our_own_and_in_the_middle(driver):
    source = ThemeSource()
    driver.pane.setStyleSheet(style_sheet(source.theme))
    field = driver.part(QLineEdit, "Search conversations")
    driver.bot.keyClicks(field, "plum")
    clear = field.findChild(QToolButton)
    assert abs(clear.geometry().center().y() - field.rect().center().y()) <= 1
    drawn = clear.grab().toImage()
    assert source.theme.text in colors_of(drawn)
    driver.bot.mouseClick(clear, Qt.MouseButton.LeftButton)
    assert field.text() == ""
    assert not clear.isVisible()


def test_keys_lead_from_the_search_to_the_results_and_back(driver, qtbot):
    field = driver.part(QLineEdit, "Search conversations")
    driver.pane.activateWindow()
    driver.pane.focus_search()
    qtbot.waitUntil(field.hasFocus)
    driver.bot.keyClicks(field, "plu")
    found(driver.pane, "2", "3")
    driver.bot.keyClick(field, Qt.Key.Key_Down)
    results = driver.part(QListView, "Search results")
    assert results.hasFocus()
    driver.bot.keyClick(results, Qt.Key.Key_Down)
    driver.bot.keyClick(results, Qt.Key.Key_Return)
    assert driver.facts == [("conversation_chosen", "3")]
    driver.bot.keyClick(results, Qt.Key.Key_Up)
    driver.bot.keyClick(results, Qt.Key.Key_Up)
    assert field.hasFocus()
    driver.pane.focus_list()
    assert results.hasFocus()
    with qtbot.waitSignal(driver.pane.search_left):
        driver.bot.keyClick(results, Qt.Key.Key_Escape)
    assert field.text() == ""
    assert driver.titles == ["Apples", "Pears", "Plums"]
    assert driver.rows.isVisible()


def test_what_is_found_is_said_to_a_screen_reader(driver, qtbot, monkeypatch):
    said = []
    monkeypatch.setattr(conversation_list, "announce", lambda _, words: said.append(words))
    driver.pane._announcer._timer.setInterval(0)
    field = driver.part(QLineEdit, "Search conversations")
    driver.bot.keyClicks(field, "quince")
    found(driver.pane)
    found(driver.pane)
    qtbot.waitUntil(lambda: said == ["Nothing found for “quince”"])
    found(driver.pane, "1", "2")
    assert field.accessibleDescription() == "Conversations found: 2"
    driver.bot.keyClick(field, Qt.Key.Key_Escape)
    assert field.accessibleDescription() == ""


def test_enter_in_an_empty_search_opens_nothing(driver):
    driver.bot.keyClick(driver.part(QLineEdit, "Search conversations"), Qt.Key.Key_Return)
    assert driver.facts == []


BOTTOM = ["Waiting approvals", "Settings", "Scheduled prompts", "Trash", "Commands", "Help"]


@pytest.fixture
def foot(driver):
    driver.pressed = []
    actions = [QAction(text, driver.pane) for text in BOTTOM]
    for each, keys in zip(actions, ("Ctrl+Shift+Y", "Ctrl+,", "", "", "Ctrl+K", "F1"), strict=True):
        each.setShortcut(keys)
        each.triggered.connect(lambda *_, action=each: driver.pressed.append(action.text()))
    driver.footer = driver.pane.add_footer(actions[1], actions[0], *actions[2:])
    driver.footer.waiting.show_count(1)
    return driver


def test_the_row_at_the_bottom_leads_to_settings_what_waits_what_is_scheduled_trash_every_command_and_help(foot):
    for name in BOTTOM:
        foot.bot.mouseClick(foot.part(QToolButton, name), Qt.MouseButton.LeftButton)
    assert foot.pressed == BOTTOM
    tips = [foot.part(QToolButton, name).toolTip() for name in BOTTOM]
    assert tips == [
        "Waiting approvals (Ctrl+Shift+Y)",
        "Settings (Ctrl+,)",
        "Scheduled prompts",
        "Trash",
        "Commands (Ctrl+K)",
        "Help (F1)",
    ]
    assert foot.part(QToolButton, "Settings").text().strip() == "Settings"
    assert foot.rows.geometry().bottom() < foot.part(QToolButton, "Settings").parentWidget().geometry().top()


def test_the_tab_key_goes_through_the_row_at_the_bottom(foot):
    names, at = [], foot.rows
    for _ in BOTTOM:
        at = at.nextInFocusChain()
        while not at.focusPolicy() & Qt.FocusPolicy.TabFocus:
            at = at.nextInFocusChain()
        names.append(at.accessibleName())
    assert names == BOTTOM


def test_the_row_at_the_bottom_says_how_many_calls_wait(foot):
    button = foot.part(QToolButton, "Waiting approvals")
    foot.footer.waiting.show_count(3)
    said = (button.accessibleName(), button.accessibleDescription(), button.text(), button.isVisible())
    assert said == ("Waiting approvals", "3. Ctrl+Shift+Y", " Waiting approvals (3)", True)
    foot.footer.waiting.show_count(0)
    assert not button.isVisible()


def test_the_word_of_settings_is_as_wide_with_calls_that_wait_as_without(foot):
    button = foot.part(QToolButton, "Settings")
    foot.footer.waiting.show_count(123)
    foot.bot.waitUntil(foot.part(QToolButton, "Waiting approvals").isVisible)
    foot.footer.layout().activate()
    waiting = button.width()
    foot.footer.waiting.show_count(0)
    foot.footer.layout().activate()
    assert waiting == button.width() >= button.sizeHint().width()


def test_where_what_waits_has_no_room_for_its_words_the_number_alone_is_beside_its_icon(foot):
    button = foot.part(QToolButton, "Waiting approvals")
    foot.footer.waiting.show_count(3)
    foot.footer.setFixedWidth(140)
    foot.bot.waitUntil(lambda: button.text() == " 3")
    foot.footer.setFixedWidth(400)
    foot.bot.waitUntil(lambda: button.text() == " Waiting approvals (3)")


def test_the_word_of_settings_comes_back_when_a_zoom_that_left_it_no_room_is_over(qapp, qtbot):
    themes = ThemeSource()
    style = ThemeApplier(qapp, themes)
    style.apply()
    footer = SidebarFooter(themes, *(QAction(text) for text in (BOTTOM[1], BOTTOM[0], *BOTTOM[2:])))
    qtbot.addWidget(footer)
    footer.setFixedWidth(280)
    footer.show()
    button = footer.tab_stops[1]
    try:
        for zoom, text in ((100, " Settings"), (200, " "), (100, " Settings")):
            themes.use(themes.theme, zoom)
            qtbot.waitUntil(lambda text=text: button.text() == text)
            # So the icon stays at the leading edge.
            assert button.toolButtonStyle() is Qt.ToolButtonStyle.ToolButtonTextBesideIcon
    finally:
        qapp.setStyleSheet("")
        style.deleteLater()


def test_a_title_is_edited_in_place(driver):
    driver.pane.set_current("1")
    driver.pane.focus_list()
    driver.bot.keyClick(driver.rows, Qt.Key.Key_F2)
    editor = driver.rows.findChild(QLineEdit)
    assert editor.text() == "Pears"
    driver.bot.keyClicks(editor, "Quinces")
    driver.bot.keyClick(editor, Qt.Key.Key_Return)
    driver.bot.waitUntil(lambda: bool(driver.facts))
    assert driver.facts == [("rename_requested", "1", "Quinces")]


def test_delete_in_a_title_deletes_letters(driver):
    driver.pane.set_current("1")
    driver.pane.focus_list()
    driver.bot.keyClick(driver.rows, Qt.Key.Key_F2)
    editor = driver.rows.findChild(QLineEdit)
    driver.bot.keyClick(editor, Qt.Key.Key_Delete)
    driver.bot.keyClick(editor, Qt.Key.Key_Escape)
    assert driver.facts == []


def test_delete_asks_the_shell(driver):
    driver.pane.set_current("2")
    driver.pane.focus_list()
    driver.bot.keyClick(driver.rows, Qt.Key.Key_Delete)
    assert driver.facts == [("delete_requested", "2")]


def test_delete_asks_the_shell_from_the_open_menu_of_a_row_which_it_closes(driver, qt_messages):
    qt_messages.expect("grabbing the keyboard")
    driver.pane.set_current("1")
    driver.pane.focus_list()
    driver.rows.customContextMenuRequested.emit(driver.place(1))
    menu = driver.rows.findChild(QMenu)
    assert menu.isVisible()
    driver.bot.keyClick(driver.rows, Qt.Key.Key_Delete)
    assert not menu.isVisible()
    assert driver.facts == [("delete_requested", "1")]


def test_the_context_menu_opens_without_waiting(driver, qt_messages):
    qt_messages.expect("grabbing the keyboard")
    driver.rows.customContextMenuRequested.emit(driver.place(1))
    menu = driver.rows.findChild(QMenu)
    assert menu.isVisible()
    menu.actions()[-1].trigger()
    menu.close()
    assert driver.facts == [("delete_requested", "1")]


FRUIT = [Record("0", "Apples"), Record("1", "Pears"), Record("2", "Plums")]
TURNED = FRUIT[::-1]


def test_the_menu_is_for_the_conversation_it_was_opened_on_whatever_comes_meanwhile(driver, qt_messages):
    qt_messages.expect("grabbing the keyboard")
    driver.pane.set_current("0")
    driver.rows.customContextMenuRequested.emit(driver.place(1))
    menu = driver.rows.findChild(QMenu)
    driver.pane.set_conversations(TURNED)
    driver.pane.set_current("0")
    menu.actions()[-1].trigger()
    driver.pane.set_conversations([FRUIT[0], FRUIT[2]])
    menu.actions()[-1].trigger()
    menu.close()
    assert driver.facts == [("delete_requested", "1")]


@pytest.mark.parametrize("after", [FRUIT, TURNED, [*FRUIT, Record("9", "Quinces")]])
def test_the_keys_stay_on_their_row_when_the_list_is_read_anew(driver, after):
    driver.pane.set_current("2")
    driver.pane.focus_list()
    driver.bot.keyClick(driver.rows, Qt.Key.Key_Up)
    driver.pane.set_conversations(list(after))
    driver.pane.set_badge("0", "working")
    assert driver.marked == ["Plums"]
    driver.bot.keyClick(driver.rows, Qt.Key.Key_Delete)
    assert driver.facts == [("delete_requested", "1")]


def test_where_the_row_of_the_keys_is_gone_its_neighbour_has_them(driver):
    driver.pane.set_current("0")
    driver.pane.focus_list()
    driver.bot.keyClick(driver.rows, Qt.Key.Key_Down)
    driver.pane.set_conversations([FRUIT[0], FRUIT[2]])
    assert driver.rows.currentIndex().data() == "Plums"
    driver.pane.set_conversations([FRUIT[0]])
    assert driver.rows.currentIndex().data() == "Apples"
    driver.pane.set_conversations([])
    assert not driver.rows.currentIndex().isValid()


@pytest.mark.parametrize("after", [FRUIT, TURNED])
def test_a_title_that_is_being_typed_stays_when_the_list_is_read_anew(driver, after):
    driver.pane.set_current("1")
    driver.pane.focus_list()
    driver.bot.keyClick(driver.rows, Qt.Key.Key_F2)
    editor = driver.part(QLineEdit, "Title")
    driver.bot.keyClicks(editor, "Quin")
    driver.pane.set_conversations(list(after))
    driver.pane.set_badge("1", "working")
    driver.bot.keyClicks(editor, "ces")
    driver.bot.keyClick(editor, Qt.Key.Key_Return)
    driver.bot.waitUntil(lambda: bool(driver.facts))
    assert driver.facts == [("rename_requested", "1", "Quinces")]


def test_a_title_that_is_being_typed_stays_in_a_list_of_one(driver):
    driver.pane.set_conversations([Record("0", "Pears")])
    driver.pane.set_current("0")
    driver.pane.focus_list()
    driver.bot.keyClick(driver.rows, Qt.Key.Key_F2)
    editor = driver.rows.findChild(QLineEdit)
    driver.bot.keyClicks(editor, "Quin")
    driver.pane.set_badge("0", "working")
    driver.pane.set_conversations([Record("0", "Pears")])
    assert editor.text() == "Quin"


def test_the_button_on_the_row_under_the_pointer_opens_the_menu(driver, qt_messages):
    qt_messages.expect("grabbing the keyboard")
    button = driver.part(QToolButton, "Menu: Conversation")
    assert not button.isVisible()
    driver.rows.entered.emit(driver.index(1))
    assert driver.rows.visualRect(driver.index(1)).contains(button.geometry())
    driver.bot.mouseClick(button, Qt.MouseButton.LeftButton)
    menu = driver.rows.findChild(QMenu)
    assert menu.isVisible()
    driver.rows.viewportEntered.emit()
    assert button.isVisible()  # it says which row the menu is for
    menu.actions()[-1].trigger()
    menu.close()
    driver.bot.waitUntil(lambda: not button.isVisible())
    assert driver.facts == [("delete_requested", "1")]


@pytest.mark.parametrize("direction", [Qt.LayoutDirection.LeftToRight, Qt.LayoutDirection.RightToLeft])
def test_the_button_leaves_the_badge_in_sight(driver, direction):
    driver.pane.setLayoutDirection(direction)
    driver.pane.set_badge("1", "attention")
    row = driver.rows.visualRect(driver.index(1))
    driver.rows.entered.emit(driver.index(1))
    place = driver.part(QToolButton, "Menu: Conversation").geometry()
    drawn = driver.rows.viewport().grab(row).toImage()
    warning = ThemeSource().theme.warning
    badge = [x for x in range(drawn.width()) if drawn.pixelColor(x, drawn.height() // 2).name() == warning]
    inked = (badge[0] + row.left(), badge[-1] + row.left())
    assert not place.left() <= inked[0] <= place.right()
    assert not place.left() <= inked[1] <= place.right()


def test_the_button_is_on_the_row_of_the_keys_and_goes_while_its_title_is_edited(driver, qtbot):
    button = driver.part(QToolButton, "Menu: Conversation")
    driver.pane.set_current("1")
    driver.pane.activateWindow()
    driver.pane.focus_list()
    qtbot.waitUntil(driver.rows.hasFocus)
    assert driver.rows.visualRect(driver.index(1)).contains(button.geometry())
    driver.bot.keyClick(driver.rows, Qt.Key.Key_Down)
    assert driver.rows.visualRect(driver.index(2)).contains(button.geometry())
    driver.bot.keyClick(driver.rows, Qt.Key.Key_F2)
    assert not button.isVisible()
    driver.bot.keyClick(driver.part(QLineEdit, "Title"), Qt.Key.Key_Escape)
    assert button.isVisible()
    driver.pane.focus_search()
    assert not button.isVisible()


def test_a_long_title_ends_before_the_button(qtbot):
    driver = Driver(qtbot, titles=("W" * 80, "b"))
    button = driver.part(QToolButton, "Menu: Conversation")
    driver.rows.entered.emit(driver.index(0))
    place = button.geometry()
    button.hide()
    drawn = driver.rows.viewport().grab(place.adjusted(0, 4, 0, -4)).toImage()
    ground = drawn.pixelColor(drawn.width() - 1, 0)
    # What is under the button is the ground of the row alone.
    assert all(drawn.pixelColor(x, y) == ground for x in range(drawn.width()) for y in range(drawn.height()))


def test_the_current_one_stays_marked_when_the_order_changes(driver):
    driver.pane.set_current("2")
    driver.pane.set_conversations([Record("2", "Plums"), Record("0", "Apples")])
    assert driver.rows.currentIndex() == driver.index(0)
    assert driver.marked == ["Plums"]
    assert driver.facts == []
    driver.pane.set_current(None)
    assert driver.marked == []
    assert not driver.rows.currentIndex().isValid()


def test_arrows_that_count_as_keypad_mark_with_shift(driver):
    """As all arrows of a Mac do."""
    driver.rows.setCurrentIndex(driver.index(0))
    driver.bot.keyClick(driver.rows, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier | KEYPAD)
    assert driver.marked == ["Apples", "Pears"]


def test_neighbours_and_rows(driver):
    driver.pane.set_current("2")
    driver.pane.step(1)
    driver.pane.step(-1)
    driver.pane.choose_row(0)
    driver.pane.choose_row(7)
    assert [fact[1] for fact in driver.facts] == ["0", "1", "0"]


@pytest.mark.parametrize(
    ("badge", "words"), [("working", "working"), ("attention", "waits for you"), ("unread", "unread")]
)
def test_badges_are_shown_each_in_its_shape_and_spoken(driver, badge, words):
    index = driver.index(0)
    plain = driver.rows.grab().toImage()
    driver.pane.set_badge("0", badge)
    assert index.data(RowRole.BADGE) == badge
    assert index.data(Qt.ItemDataRole.AccessibleTextRole).endswith(f", {words}")
    assert driver.rows.grab().toImage() != plain
    driver.pane.mark_read("0")
    assert index.data(RowRole.BADGE) == ("" if badge == "unread" else badge)
    driver.pane.set_badge("0", "")
    assert driver.rows.grab().toImage() == plain


def test_an_untitled_conversation_has_words(qtbot):
    assert Driver(qtbot, titles=("",)).titles == ["New conversation"]


def test_a_hundred_thousand_rows_ask_only_for_what_is_seen(qtbot):
    asked = []

    class Counted(Record):
        def __getattribute__(self, name):
            if name == "updated_at":
                asked.append(1)
            return super().__getattribute__(name)

    driver = Driver(qtbot)
    driver.pane.set_conversations([Counted(str(i), f"Conversation {i}") for i in range(100_000)])
    driver.pane.set_current("99999")
    driver.rows.grab()
    assert 0 < len(asked) < 500
    assert driver.rows.currentIndex().data() == "Conversation 99999"


def test_nothing_jumps_when_only_titles_change(qtbot):
    model = ConversationModel(now=lambda: NOON)
    model.set_conversations([Record("1", "a"), Record("2", "b")])
    with qtbot.assertNotEmitted(model.modelReset), qtbot.waitSignal(model.dataChanged):
        model.set_conversations([Record("1", "a"), Record("2", "new")])
    assert model.index(2, 0).data() == "new"
