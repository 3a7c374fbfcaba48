"""A stranger with a keyboard, or with assistive technology, finds the settings, the help and a conversation."""

from collections.abc import Iterator

import pytest

from desktop_agent.processes.program_version import program_version
from tests.fakes.window_process import Program, Screen, opened, wait_until

Desk = tuple[Program, Screen]


@pytest.fixture(scope="module")
def desk(real_display: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    data = tmp_path_factory.mktemp("finding") / "data"
    with opened(real_display, data, "--demo") as desk:
        desk[1].wait_for("Message")
        yield desk


def focused(screen: Screen) -> set[str]:
    return {node["name"] for node in screen.tree() if "focused" in node["states"]}


@pytest.mark.exhaustive(
    "tests/ui/sidebar/test_conversation_list.py::test_the_row_at_the_bottom_leads_to_settings_what_waits_what_is_scheduled_trash_every_command_and_help"
)
def test_the_row_at_the_bottom_leads_to_the_settings(desk: Desk) -> None:
    _, screen = desk
    for name in ("Settings", "Trash", "Commands", "Help"):
        assert screen.wait_for(name, "push button")["actions"]
    screen.click("Settings")
    screen.close_dialog("Settings")


@pytest.mark.exhaustive("tests/ui/shell/commands/test_help_dialog.py::test_about_says_version_licence_and_folder")
def test_help_names_the_version_and_the_data_folder(desk: Desk) -> None:
    program, screen = desk
    screen.click("Help")
    screen.wait_for("Help", "dialog")
    screen.wait_window("Help")
    screen.keys("shift+Tab", "Down", "Down")
    screen.wait_says(f"Version {program_version()}", str(program.data))
    screen.close_dialog("Help")


@pytest.mark.exhaustive(
    "tests/ui/shell/commands/test_help_dialog.py::test_f1_opens_the_guide_and_esc_gives_the_keyboard_back"
)
def test_f1_opens_the_guide_from_the_message(desk: Desk) -> None:
    _, screen = desk
    screen.focus("Message")
    screen.keys("F1")
    screen.wait_says("Connect a model")
    screen.close_dialog("Help")


@pytest.mark.exhaustive(
    "tests/ui/sidebar/test_conversation_list.py::test_enter_opens_the_best_also_before_the_results_are_there"
)
def test_keys_find_a_conversation_by_its_title(desk: Desk) -> None:
    _, screen = desk
    for prompt in ("What is 6 * 7?", "Tell me who you are"):
        screen.new_conversation()
        screen.send(prompt)
        wait_until("it is listed", lambda prompt=prompt: screen.says(f"{prompt}, "))
    screen.focus("Message")
    screen.keys("ctrl+shift+f")
    wait_until("the search has the keyboard", lambda: "Search conversations" in focused(screen))
    screen.keys("6")
    wait_until("the list is narrowed", lambda: not screen.says("Tell me who you are, "))
    screen.keys("Return")
    screen.wait_for("What is 6 * 7? — Desktop Agent", "frame")
    screen.keys("ctrl+shift+f", "Escape")
    wait_until("the message has the keyboard", lambda: "Message" in focused(screen))
    wait_until("the list is whole", lambda: screen.says("Tell me who you are, "))


@pytest.mark.exhaustive(
    "tests/ui/shell/commands/test_command_palette.py::test_esc_and_the_same_keys_close_it_and_give_the_keyboard_back"
)
def test_the_palette_is_in_the_accessible_tree_and_gives_the_keyboard_back(desk: Desk) -> None:
    _, screen = desk
    screen.focus("Message")
    screen.keys("ctrl+k")
    wait_until("the palette has the keyboard", lambda: "Commands" in focused(screen))
    screen.wait_for("Commands", "list")
    screen.keys("k", "e", "y", "b")
    wait_until("a command is found by its letters", lambda: screen.find("Keyboard shortcuts", "list item"))
    screen.keys("Escape")
    wait_until("it goes", lambda: screen.find("Commands", "list") is None)
    wait_until("the message has the keyboard", lambda: "Message" in focused(screen))
    screen.keys("ctrl+k")
    wait_until("the palette has the keyboard", lambda: "Commands" in focused(screen))
    screen.keys("k", "e", "y", "b", "Return")
    screen.close_dialog("Help")
