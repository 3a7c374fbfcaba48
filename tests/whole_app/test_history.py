"""The history, by keys alone and by assistive technology alone: edited prompts, versions and the search."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from desktop_agent.storage.opening import DATABASE_NAME
from tests.fakes.window_process import Program, Screen, opened, wait_until
from tests.frame.patience import PATIENCE

Desk = tuple[Program, Screen]

FIRST, SECOND = "What is 6 * 7?", "What is 7 * 8?"


@pytest.fixture(scope="module")
def desk(real_display: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    data = tmp_path_factory.mktemp("history") / "data"
    with opened(real_display, data, "--demo") as desk:
        desk[1].wait_for("Message")
        yield desk


def wait_title(screen: Screen, title: str) -> None:
    screen.wait_for(f"{title} — Desktop Agent", "frame")


def wait_answered(screen: Screen, answer: str) -> None:
    wait_until(f"the answer is {answer!r}", lambda: answer in screen.last("Assistant said"))
    screen.wait_for("Send")


def edit_by_up(screen: Screen, prompt: str) -> None:
    """Press Up until the prompt is edited: Up does nothing until the answer is stored, a moment after it is shown."""

    def edits() -> bool:
        if screen.last("Message") != prompt:
            screen.wait_focus("Message")
            screen.keys("Up")
        return screen.last("Message") == prompt

    try:
        wait_until("the last prompt is edited", edits)
    except pytest.fail.Exception as failed:
        front, focused = screen.active_window(), screen.focused()
        pytest.fail(f"{failed}; {front!r} is in front, the keyboard at {focused}; on the screen:\n{screen.says()}")


def test_a_prompt_is_edited_and_its_versions_are_walked_by_keys(desk: Desk) -> None:
    _, screen = desk
    screen.focus("Message")
    screen.type(FIRST)
    screen.keys("Return")
    wait_answered(screen, "6 * 7 = 42")
    edit_by_up(screen, FIRST)
    screen.keys("ctrl+a")
    screen.type(SECOND)
    screen.keys("Return")
    wait_answered(screen, "7 * 8 = 56")
    screen.wait_for("2 of 2", "panel")
    # Thinking, a text and a call are between the answer and the prompt.
    screen.keys("ctrl+Up", "ctrl+Up", "ctrl+Up", "ctrl+Up", "ctrl+Up")
    screen.wait_focus("You said")
    screen.keys("alt+Left")
    wait_answered(screen, "6 * 7 = 42")
    screen.wait_for("1 of 2", "panel")
    screen.wait_focus("You said")


@pytest.mark.exhaustive(
    "tests/ui/shell/test_branch_tree.py::test_branches_are_opened_deleted_and_branched_from_by_keyboard"
)
def test_the_tree_of_branches_by_keys(desk: Desk) -> None:
    _, screen = desk
    screen.keys("ctrl+shift+b")
    screen.wait_focus("Branches of this conversation")
    first = screen.wait_line(f"You: {FIRST}, 1 other version, shown")
    screen.keys("Home", "Right")
    screen.wait_focus(first)
    screen.wait_line(f"You: {SECOND}")
    screen.keys("Down", "Return")
    wait_answered(screen, "7 * 8 = 56")
    # It stays open, so that another result can be chosen.
    screen.wait_focus("Branches of this conversation")
    screen.keys("Escape")
    screen.wait_gone("Branches of this conversation")
    screen.wait_focus("Transcript")


@pytest.mark.exhaustive(
    "tests/ui/sidebar/test_conversation_list.py::test_keys_lead_from_the_search_to_the_results_and_back"
)
def test_the_search_by_keys_opens_the_very_place(desk: Desk) -> None:
    _, screen = desk
    screen.keys("ctrl+n", "ctrl+shift+f")
    screen.wait_focus("Search conversations")
    screen.type("calculate")
    screen.wait_line("Assistant, ")
    screen.keys("Tab")
    screen.wait_focus("Filters")
    screen.keys("Tab")
    screen.wait_focus("Search results")
    screen.keys("Down", "Return")
    wait_title(screen, SECOND)
    screen.keys("ctrl+shift+f", "Escape")
    screen.wait_focus("Message")


@pytest.mark.exhaustive(
    "tests/ui/sidebar/test_conversation_list.py::test_assistive_technology_opens_any_row_also_the_open_one"
)
def test_a_conversation_is_opened_changed_and_found_by_the_accessible_tree(desk: Desk) -> None:
    _, screen = desk
    screen.new_conversation()
    screen.press(screen.wait_line(SECOND))
    wait_title(screen, SECOND)
    screen.press("Previous version of your message")
    wait_answered(screen, "6 * 7 = 42")
    screen.press("Edit your message")
    wait_until("the prompt is edited", lambda: screen.last("Message") == FIRST)
    screen.send("What is 2 * 3?")
    wait_answered(screen, "2 * 3 = 6")
    screen.wait_for("3 of 3", "panel")
    screen.write("Search conversations", "7 * 8")
    screen.press(screen.wait_line("Assistant, "))
    wait_answered(screen, "7 * 8 = 56")
    screen.write("Search conversations", "")


@pytest.mark.exhaustive("tests/ui/sidebar/test_conversation_list.py::test_a_title_is_edited_in_place")
def test_a_conversation_is_renamed_by_the_accessible_tree(desk: Desk) -> None:
    _, screen = desk
    screen.focus("Conversations")
    screen.press("Menu: Conversation")
    screen.press("Rename…")
    screen.write("Title", "Products")
    # Like every field in a list, it takes effect when the keyboard goes elsewhere.
    screen.focus("Message")
    wait_title(screen, "Products")
    screen.wait_gone("Title")


def test_a_database_of_a_newer_version_leads_to_another_folder(real_display: dict[str, str], tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    with closing(sqlite3.connect(data / DATABASE_NAME)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA user_version=999")
    before = (data / DATABASE_NAME).read_bytes()
    running = Program(real_display, data)
    screen = Screen(real_display, running.process.pid)
    try:
        screen.wait_says("were saved by a newer version.", "Install the newest version")
        screen.press("Choose another data folder…")
        screen.wait_for("Choose another data folder — Desktop Agent", "dialog")
        screen.wait_focus("Directory:")
        screen.keys("Escape")
        screen.wait_gone("Directory:")
        assert running.end() == 1
    finally:
        screen.close()
        running.kill()
    assert (data / DATABASE_NAME).read_bytes() == before


@pytest.mark.exhaustive("tests/ui/shell/test_early.py::test_keys_pressed_before_there_are_actions_are_not_lost")
def test_keys_that_are_pressed_during_the_start_stay_where_they_went(
    real_display: dict[str, str], tmp_path: Path
) -> None:
    with opened(real_display, tmp_path / "data", "--demo") as (_, screen):
        screen.keys("ctrl+k")
        screen.wait_for("Commands", "list")
        wait_title(screen, "New conversation")
        screen.type("keyb")
        screen.wait_line("Keyboard shortcuts")
        screen.keys("Escape")
        screen.wait_focus("Message")
        screen.wait_last("Message", "")


def test_a_folder_that_another_program_holds_is_opened_at_the_next_try(
    real_display: dict[str, str], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    with opened(real_display, data, "--demo") as (_, screen):
        wait_title(screen, "New conversation")
    with closing(sqlite3.connect(data / DATABASE_NAME, isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        running = Program(real_display, data, "--demo")
        screen = Screen(real_display, running.process.pid)
        try:
            screen.wait_says("The conversations are in use by another program.")
            screen.write("Message", "What can you do?")
            screen.press("Send")
            screen.press("Try again")
            screen.wait_gone("Try again")
            screen.wait_for("Try again")
            database.execute("ROLLBACK")
            screen.press("Try again")
            wait_title(screen, "New conversation")
            screen.wait_last("Message", "What can you do?")
            screen.press("Send")
            screen.wait_for("Assistant said")
            screen.wait_last("Message", "")
            assert running.end() == 0
            assert all("in use by another program" in line for line in running.unexpected)
        finally:
            screen.close()
            running.kill()


def test_a_start_without_a_place_for_its_data_says_so_in_a_window(real_display: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    environment = {**real_display, "XDG_DATA_HOME": str(tmp_path / "file")}
    command = [sys.executable, "-m", "ui"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        screen = Screen(environment, process.pid)
        try:
            screen.wait_says("is a file, where a folder is needed.", "Choose another data folder…")
            process.terminate()
            assert process.wait(PATIENCE) == 1
        finally:
            screen.close()
            process.kill()
