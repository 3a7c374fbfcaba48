"""Conversations are archived, exported and put into the trash, and come back: once by keys, once by the tree alone."""

import json
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.fakes.window_process import Screen, opened, wait_until
from tests.whole_app.steps import choose, choose_by_keys, command, command_by_keys, go_to_row

FIRST, SECOND, THIRD = "What is 6 * 7?", "What is 7 * 8?", "What is 8 * 9?"
ANSWERS = {FIRST: "6 * 7 = 42", SECOND: "7 * 8 = 56", THIRD: "8 * 9 = 72"}


@pytest.fixture(scope="module")
def screen(real_display: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Screen]:
    data = tmp_path_factory.mktemp("putting-away") / "data"
    with opened(real_display, data, "--demo") as (_, screen):
        screen.wait_for("Message")
        yield screen


@pytest.fixture(autouse=True)
def _conversations(screen: Screen) -> None:
    """The same three conversations for every test."""
    said = screen.says()
    for prompt, answer in ANSWERS.items():
        if f"{prompt}, " not in said:
            screen.new_conversation()
            screen.send(prompt)
            wait_until("it is answered", lambda answer=answer: answer in screen.last("Assistant said"))
            screen.wait_for("Send")
    lists(screen, *ANSWERS)


def lists(screen: Screen, *titles: str) -> None:
    """Wait until these conversations are listed, and none of the others."""

    def listed() -> bool:
        said = screen.says()
        return [title for title in ANSWERS if f"{title}, " in said] == list(titles)

    wait_until(f"{titles} are listed", listed)


def export_by_keys(screen: Screen, target: Path) -> None:
    screen.wait_focus("File name:")
    screen.keys("ctrl+a")
    screen.type(str(target))
    screen.keys("Return")


def exported(target: Path) -> list[str]:
    """Return the titles in an export once it is written; each must have the answer to its question."""
    wait_until(f"{target} is there", target.exists)
    if target.suffix == ".md":
        said = target.read_text()
    elif target.suffix == ".zip":
        with ZipFile(target) as archive:
            said = "".join(archive.read(name).decode() for name in archive.namelist())
    else:
        said = json.dumps(json.loads(target.read_text()))
    titles = [title for title in ANSWERS if title in said]
    assert [title for title, answer in ANSWERS.items() if answer in said] == titles
    return titles


def in_folder(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.exhaustive(
    "tests/ui/shell/test_organising.py::test_pins_and_the_archive_are_undone_by_the_notice",
    "tests/ui/shell/test_trash.py",
    "tests/ui/shell/test_exchange.py::test_a_conversation_is_exported_in_the_chosen_format",
)
def test_keys_alone(screen: Screen, tmp_path: Path) -> None:
    go_to_row(screen, FIRST)
    choose_by_keys(screen, "Archive")
    lists(screen, SECOND, THIRD)
    command_by_keys(screen, "Show the archive")
    lists(screen, FIRST)
    go_to_row(screen, FIRST)
    choose_by_keys(screen, "Bring back from the archive")
    lists(screen)
    screen.keys("BackSpace")
    lists(screen, *ANSWERS)

    go_to_row(screen, FIRST)
    screen.keys("Delete")
    lists(screen, SECOND, THIRD)
    screen.keys("ctrl+z")
    lists(screen, *ANSWERS)
    for key in ("Return", "Delete"):
        go_to_row(screen, FIRST)
        screen.keys("Delete")
        lists(screen, SECOND, THIRD)
        command_by_keys(screen, "Trash")
        screen.wait_focus("Deleted conversations")
        row = screen.wait_line(f"{FIRST}, deleted")
        screen.keys(key)
        if key == "Delete":
            screen.wait_focus("Keep")
            screen.keys("Tab", "space")
        screen.wait_gone(row)
        screen.wait_says("The trash is empty.")
        screen.close_dialog("Trash")
        lists(screen, *([FIRST] if key == "Return" else []), SECOND, THIRD)

    go_to_row(screen, SECOND)
    choose_by_keys(screen, "Export…")
    export_by_keys(screen, tmp_path / "one.md")
    assert exported(tmp_path / "one.md") == [SECOND]
    go_to_row(screen, THIRD)
    screen.keys("shift+Down")
    choose_by_keys(screen, "Export…")
    export_by_keys(screen, tmp_path / "two.json")
    assert exported(tmp_path / "two.json") == [SECOND, THIRD]
    assert in_folder(tmp_path) == ["one.md", "two.json"]


@pytest.mark.exhaustive(
    "tests/ui/shell/test_organising.py::test_pins_and_the_archive_are_undone_by_the_notice",
    "tests/ui/shell/test_trash.py",
    "tests/ui/shell/test_export_of_several.py",
)
def test_the_tree_alone(screen: Screen, tmp_path: Path) -> None:
    choose(screen, SECOND, "Archive")
    lists(screen, FIRST, THIRD)
    command(screen, "Show the archive")
    lists(screen, SECOND)
    choose(screen, SECOND, "Bring back from the archive")
    lists(screen)
    screen.press("Archive. Go up to: All conversations")
    lists(screen, *ANSWERS)

    choose(screen, SECOND, "Delete")
    lists(screen, FIRST, THIRD)
    screen.press("Undo")
    lists(screen, *ANSWERS)
    for answer in ("Restore", "Delete for good…"):
        choose(screen, SECOND, "Delete")
        lists(screen, FIRST, THIRD)
        screen.press("Trash")
        row = screen.wait_line(f"{SECOND}, deleted")
        screen.press(answer)
        if answer != "Restore":
            screen.press("Really delete for good")
        screen.wait_gone(row)
        screen.wait_says("The trash is empty.")
        screen.press("Close")
        screen.wait_gone("Trash", "dialog")
        lists(screen, FIRST, *([SECOND] if answer == "Restore" else []), THIRD)

    choose(screen, THIRD, "Export…")
    screen.write("File name:", str(tmp_path / "one.md"))
    screen.press("Save")
    assert exported(tmp_path / "one.md") == [THIRD]
    command(screen, "Export all conversations…")
    screen.write("File name:", str(tmp_path / "all.zip"))
    screen.press("Save")
    assert exported(tmp_path / "all.zip") == [FIRST, THIRD]
    assert in_folder(tmp_path) == ["all.zip", "one.md"]


@pytest.mark.exhaustive("tests/ui/shell/test_organising.py::test_tags_are_given_in_a_dialog_and_shown_in_the_row")
def test_the_marked_row_of_a_picker_by_the_tree_alone(screen: Screen) -> None:
    choose(screen, THIRD, "Tags…")
    screen.write("Tags", "later")
    screen.press(screen.wait_line("New tag “later”"))
    # It stays the selected row when its tag is given and taken away.
    for state in ("assigned", "not assigned"):
        screen.press(screen.wait_line(f"later, {state}"))
    screen.wait_line("later, assigned")
    screen.press("Done")
    screen.wait_says("tags: later")
    choose(screen, THIRD, "Move to a folder…")
    screen.write("Move to a folder", "Sums")
    screen.press(screen.wait_line("New folder “Sums”"))
    screen.wait_line("Folder: Sums")
