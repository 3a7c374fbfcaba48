from datetime import datetime

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QListView, QMenu, QToolButton

from desktop_agent.types.messages import Role
from desktop_agent.types.search import ConversationHits, SearchChoices, SearchPlace, SearchQuery, SearchResults
from tests.ui.sidebar.test_conversation_list import Driver
from ui.sidebar.search_filters import ChosenFilters

NOON = datetime(2026, 5, 20, 12, 0).astimezone()


@pytest.mark.parametrize(
    ("days", "since"), [(0, (2026, 5, 20)), (6, (2026, 5, 14)), (29, (2026, 4, 21)), (-1, (2026, 1, 1))]
)
def test_days_begin_at_midnight(days, since):
    query = ChosenFilters(days).apply(SearchQuery("jam"), NOON)
    assert query == SearchQuery("jam", since=datetime(*since).astimezone())


def test_all_that_is_chosen_narrows_the_search():
    chosen = ChosenFilters(model="m", workspace="/w", role=Role.USER, has_image=True, has_tool_call=True)
    assert chosen.apply(SearchQuery("jam"), NOON) == SearchQuery(
        "jam", model="m", workspace="/w", roles=frozenset({Role.USER}), has_image=True, has_tool_call=True
    )


@pytest.fixture
def driver(qtbot):
    made = Driver(qtbot)
    made.asked = []
    made.pane.search_requested.connect(made.asked.append)
    made.pane.filter_choices_wanted.connect(
        lambda: made.pane.set_filter_choices(SearchChoices(("aurora",), ("/home/ada/boat",)))
    )
    made.pane.activateWindow()
    made.pane.focus_search()
    qtbot.waitUntil(made.part(QLineEdit, "Search conversations").hasFocus)
    return made


def menu(driver):
    """Open the menu; what can be chosen in it by the way of the words."""
    filters = driver.pane._filters
    filters._menu.aboutToShow.emit()
    ways = {}
    for action in filters._menu.actions():
        below = action.menu()
        if isinstance(below, QMenu):
            ways |= {f"{action.text()} > {each.text()}": each for each in below.actions()}
        else:
            ways[action.text()] = action
    return ways


def chips(driver):
    return {each.text(): each for each in driver.pane._filters._chips.values() if not each.isHidden()}


def test_a_filter_is_chosen_from_the_menu_and_removed_by_its_chip(driver):
    ways = menu(driver)
    ways["Workspace folder > /home/ada/boat"].trigger()
    assert driver.asked[-1] == SearchQuery(workspace="/home/ada/boat")
    menu(driver)["Model > aurora"].trigger()
    menu(driver)["Has a picture"].trigger()
    menu(driver)["Said by > Said by me"].trigger()
    assert menu(driver)["Has a picture"].isChecked()
    assert list(chips(driver)) == ["aurora", "boat", "Said by me", "Has a picture"]
    assert chips(driver)["boat"].accessibleName() == "Remove the filter: boat"
    driver.bot.mouseClick(chips(driver)["boat"], Qt.MouseButton.LeftButton)
    assert driver.asked[-1] == SearchQuery(model="aurora", roles=frozenset({Role.USER}), has_image=True)


def test_only_files_written_are_searched_while_that_is_chosen(driver):
    menu(driver)["In written files"].trigger()
    assert driver.asked[-1] == SearchQuery(places=frozenset({SearchPlace.FILES}))
    driver.bot.mouseClick(chips(driver)["In written files"], Qt.MouseButton.LeftButton)
    assert chips(driver) == {}


def test_the_keyboard_removes_a_chip_and_goes_on_at_the_button(driver, qtbot):
    menu(driver)["Has a tool call"].trigger()
    chip = chips(driver)["Has a tool call"]
    chip.setFocus()
    qtbot.waitUntil(chip.hasFocus)
    driver.bot.keyClick(chip, Qt.Key.Key_Space)
    assert chips(driver) == {}
    qtbot.waitUntil(driver.part(QToolButton, "Filters").hasFocus)
    assert driver.pane._filters.isVisible()


def test_the_button_opens_the_menu_without_waiting(driver, qt_messages):
    qt_messages.expect("grabbing the keyboard")
    button = driver.part(QToolButton, "Filters")
    driver.bot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert driver.pane._filters._menu.isVisible()
    driver.pane._filters._menu.close()


def test_filters_are_there_while_the_search_is_in_use_and_esc_removes_them(driver, qtbot):
    filters = driver.pane._filters
    assert filters.isVisible()
    driver.pane.focus_list()
    qtbot.waitUntil(lambda: not filters.isVisible())
    driver.pane.focus_search()
    qtbot.waitUntil(filters.isVisible)
    menu(driver)["Date > Today"].trigger()
    driver.pane.show_results(driver.pane.query, SearchResults((ConversationHits("1", "Jam"),)))
    driver.pane.focus_list()
    assert filters.isVisible()
    results = driver.part(QListView, "Search results")
    driver.bot.keyClick(results, Qt.Key.Key_Escape)
    assert driver.pane.query is None
    assert chips(driver) == {}
    assert driver.rows.isVisible()


def test_folders_and_tags_are_offered_where_there_are_some(driver):
    assert not [way for way in menu(driver) if way.startswith(("Folder", "Tag"))]
    driver.pane.set_filter_choices(SearchChoices(tags=("later",), folders=(("f", ("Work", "Import")),)))
    menu(driver)["Folder > Work / Import"].trigger()
    menu(driver)["Tag > later"].trigger()
    assert driver.asked[-1] == SearchQuery(folder="f", tag="later")
    assert list(chips(driver)) == ["Work / Import", "later"]


def test_programs_are_offered_where_conversations_of_some_are_searched(driver):
    assert not [way for way in menu(driver) if way.startswith("Program")]
    driver.pane.set_filter_choices(SearchChoices(programs=(("codex", "Codex"),)))
    menu(driver)["Program > Codex"].trigger()
    assert driver.asked[-1] == SearchQuery(program="codex")
    assert list(chips(driver)) == ["Codex"]
    driver.pane.set_filter_choices(SearchChoices())
    assert list(chips(driver)) == ["Codex"]
