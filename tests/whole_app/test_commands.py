"""The menu bar and the page of keyboard shortcuts: once by keys, and once by the accessible tree."""

from collections.abc import Iterator

import pytest

from tests.fakes.window_process import Screen, opened, wait_until
from tests.whole_app.steps import command, command_by_keys, step_to

DEMO, NEW = "Try the demo", "New conversation"


@pytest.fixture(scope="module")
def screen(real_display: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Screen]:
    data = tmp_path_factory.mktemp("commands") / "data"
    with opened(real_display, data, "--demo") as (_, screen):
        screen.wait_for("Message")
        # The menu that is built last.
        screen.wait_for("Menu bar")
        yield screen


@pytest.mark.exhaustive(
    "tests/ui/shell/commands/test_menu_bar.py::test_f10_shows_it_for_a_moment_and_the_keyboard_stays_where_it_was"
)
def test_the_menu_bar_by_keys(screen: Screen) -> None:
    screen.focus("Message")
    screen.wait_focus("Message")
    screen.keys("F10")
    screen.wait_for("File", "popup menu")
    for menu in ("Edit", "View", "Conversation", "Message", "Help"):
        screen.keys("Right")
        screen.wait_for(menu, "popup menu")
    step_to(screen, "Down", "About Desktop Agent")
    screen.keys("Return")
    screen.close_dialog("Help")
    screen.focus("Message")
    screen.wait_focus("Message")
    screen.keys("alt")
    screen.wait_for("File", "popup menu")
    screen.keys("Escape")
    screen.wait_gone("File", "popup menu")
    screen.wait_focus("Message")


def open_menus(screen: Screen) -> None:
    screen.press("Commands")
    screen.wait_for("Commands", "list")
    screen.write("Commands", "Open the menu bar")
    screen.press("Open the menu bar, F10")


@pytest.mark.exhaustive(
    "tests/ui/shell/commands/test_menu_bar.py::test_what_does_not_apply_is_disabled_only_while_its_menu_is_open"
)
def test_the_menu_bar_by_the_tree(screen: Screen) -> None:
    open_menus(screen)
    screen.wait_for("File", "popup menu")
    check = screen.find("Check saved conversations", "menu item")
    assert check is not None
    assert "enabled" in check["states"]
    screen.press("Connect a model")
    screen.wait_gone("File", "popup menu")
    screen.wait_for("Connect a model", "label")
    open_menus(screen)
    screen.wait_for("File", "popup menu")
    screen.press(DEMO)
    screen.wait_for("Message")


def to_page_by_keys(screen: Screen) -> None:
    screen.keys("ctrl+comma")
    screen.wait_focus("Sections")
    screen.keys("Home")
    step_to(screen, "Down", "Keyboard shortcuts")
    screen.keys("Tab")
    screen.wait_focus("Search shortcuts")
    screen.keys("ctrl+a")


def leave_page(screen: Screen) -> None:
    screen.close_dialog("Settings")
    screen.focus("Message")
    screen.wait_focus("Message")


@pytest.mark.exhaustive(
    "tests/ui/settings/test_shortcuts_form.py::test_keys_of_another_action_are_taken_over_only_when_the_person_says_so",
    "tests/ui/shell/commands/test_shortcuts.py::test_new_keys_count_at_once_and_everywhere_and_after_a_restart",
)
def test_shortcuts_by_keys(screen: Screen) -> None:
    to_page_by_keys(screen)
    screen.type(DEMO)
    screen.keys("Tab")
    screen.wait_focus("Find by pressing keys")
    screen.keys("Tab")
    screen.wait_focus(DEMO)
    screen.keys("Return")
    screen.wait_focus(f"Keys of “{DEMO}”")
    screen.keys("ctrl+n")
    screen.wait_says(f"Ctrl+N is used by “{NEW}”.")
    screen.wait_focus("Cancel")
    screen.keys("Tab")
    screen.wait_focus("Take the keys over")
    screen.keys("space")
    screen.wait_line(f"{DEMO}, Ctrl+N (changed)")
    leave_page(screen)
    command_by_keys(screen, "Connect a model")
    screen.wait_for("Connect a model", "label")
    screen.keys("ctrl+n")
    screen.wait_for("Message")


@pytest.mark.exhaustive("tests/ui/settings/test_shortcuts_form.py::test_keys_are_given_changed_removed_and_reset")
def test_shortcuts_by_the_tree(screen: Screen) -> None:
    command(screen, "Settings")
    screen.press("Keyboard shortcuts")
    screen.write("Search shortcuts", NEW)
    screen.press(screen.wait_line(f"{NEW}, "))
    screen.wait_for(f"Keys of “{NEW}”")
    screen.press("Reset all shortcuts")
    screen.wait_says("All actions get their original keys.")
    screen.press("Reset all shortcuts now")
    screen.wait_line(f"{NEW}, Ctrl+N")
    screen.press("No keys")
    screen.wait_line(f"{NEW}, none (changed)")
    screen.press("Reset")
    wait_until("the keys are back", lambda: screen.says(f"{NEW}, Ctrl+N"))
    screen.press("Close")
    screen.wait_gone("Settings", "dialog")
