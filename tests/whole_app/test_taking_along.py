"""Conversations are exported, saved, backed up and continued: by assistive technology alone, and by keys alone."""

from collections.abc import Iterator
from pathlib import Path
from zipfile import is_zipfile

import pytest

from tests.desktop_agent.exchange.readers.foreign_homes import write_claude_code
from tests.fakes.window_process import Screen, opened, wait_until

QUESTION = "What is 6 * 7?"
FOUND = "What a.py does"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    write_claude_code(home)
    return home


@pytest.fixture(scope="module")
def screen(real_display: dict[str, str], home: Path) -> Iterator[Screen]:
    with opened({**real_display, "HOME": str(home)}, home / "history" / "data", "--demo") as (_, screen):
        screen.wait_for("Message")
        screen.send(QUESTION)
        wait_until("it is answered", lambda: "6 * 7 = 42" in screen.last("Assistant said"))
        screen.wait_for("Send")
        yield screen


def wait_title(screen: Screen, title: str) -> None:
    screen.wait_for(f"{title} — Desktop Agent", "frame")


def choose_in_menu(screen: Screen, action: str) -> None:
    screen.focus("Conversations")
    screen.press("Menu: Conversation")
    screen.press(action)


def focus_rows_by_keys(screen: Screen) -> None:
    screen.keys("ctrl+shift+f")
    screen.wait_focus("Search conversations")
    screen.keys("Down")
    screen.wait_focus("Conversations")


def focus_by_tab(screen: Screen, name: str) -> None:
    for _ in range(20):
        node = screen.find(name)
        if node is not None and "focused" in node["states"]:
            return
        screen.keys("Tab")
    screen.wait_focus(name)


@pytest.mark.exhaustive("tests/ui/shell/test_exchange.py::test_a_conversation_is_exported_in_the_chosen_format")
def test_it_is_exported(screen: Screen, home: Path) -> None:
    target = home / "taken.zip"
    screen.press(screen.wait_line(f"{QUESTION}, "))
    choose_in_menu(screen, "Export…")
    screen.write("File name:", str(target))
    screen.press("Save")
    screen.wait_says("Exported to")
    assert is_zipfile(target)
    screen.press("Close this message")


@pytest.mark.exhaustive("tests/ui/shell/test_unstored.py::test_it_is_kept_with_its_draft")
def test_one_that_is_not_stored_is_kept(screen: Screen) -> None:
    screen.press("New conversation that is not stored")
    screen.wait_for("Not stored")
    screen.send("What is 2 * 3?")
    wait_until("it is answered", lambda: "2 * 3 = 6" in screen.last("Assistant said"))
    screen.wait_for("Send")
    screen.press("Keep this conversation: store it")
    screen.wait_gone("Not stored")


@pytest.mark.exhaustive("tests/ui/shell/test_disk_notices.py::test_a_backup_is_written_and_restored_in_the_settings")
def test_a_backup_is_made(screen: Screen) -> None:
    screen.press("Settings")
    screen.press("Storage")
    screen.press("Back up now")
    screen.wait_says("The backup is in")
    screen.press("Close")
    screen.wait_gone("Sections")


@pytest.mark.exhaustive(
    "tests/ui/shell/test_found_histories.py::test_it_is_continued_in_a_copy_that_says_where_it_is_from"
)
def test_a_found_conversation_is_continued(screen: Screen) -> None:
    screen.press("Show")
    screen.press(screen.wait_line("Claude Code, conversations: 1, closed"))
    screen.press(screen.wait_line(f"{FOUND}, "))
    wait_title(screen, FOUND)
    screen.wait_says("From Claude Code, read only.")
    screen.press("Continue here")
    screen.wait_for("Message")
    screen.wait_gone("Continue here")


@pytest.mark.exhaustive(
    "tests/ui/shell/test_found_histories.py::test_a_conversation_is_read_in_place_and_nothing_is_written"
)
def test_a_found_conversation_is_continued_by_keys(screen: Screen) -> None:
    focus_rows_by_keys(screen)
    screen.keys("Tab")
    screen.wait_focus("Conversations of other programs")
    screen.keys("Home", "Down", "Return")
    wait_title(screen, FOUND)
    screen.wait_for("Continue here")
    focus_by_tab(screen, "Continue here")
    screen.keys("space")
    screen.wait_gone("Continue here")
