"""Actions under messages, folders, filters and backups: once by keys alone, once by the tree alone."""

from collections.abc import Iterator

import pytest

from tests.fakes.window_process import Screen, opened, wait_until
from tests.whole_app.steps import choose, choose_by_keys, command, command_by_keys, go_to_row, step_to

FIRST, SECOND = "What is 6 * 7?", "What is 7 * 8?"
THIRD, FOURTH = "What is 8 * 9?", "What is 9 * 9?"
FIFTH, SIXTH = "What is 9 * 7?", "What is 9 * 8?"
BACKED_UP = "The backup is in"


@pytest.fixture(scope="module")
def screen(real_display: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Screen]:
    data = tmp_path_factory.mktemp("beside") / "data"
    with opened(real_display, data, "--demo") as (_, screen):
        screen.wait_for("Message")
        for prompt in (FIRST, SECOND):
            screen.new_conversation()
            screen.send(prompt)
            wait_answered(screen)
        yield screen


def wait_answered(screen: Screen) -> None:
    wait_until("it is answered", lambda: "calculate succeeded." in screen.last("Assistant said"))
    screen.wait_for("Send")


@pytest.mark.exhaustive(
    "tests/ui/shell/test_branches.py::test_an_answer_is_asked_for_anew_and_both_are_walked",
    "tests/ui/shell/test_message_deletion.py::test_the_version_before_is_shown_then",
)
def test_an_answer_by_keys_alone(screen: Screen) -> None:
    go_to_row(screen, FIRST)
    screen.keys("Return")
    screen.wait_for(f"{FIRST} — Desktop Agent", "frame")
    screen.keys("ctrl+Up")
    screen.wait_focus("Assistant said")
    choose_by_keys(screen, "Regenerate", "Menu: Assistant said")
    screen.wait_for("2 of 2", "panel")
    wait_answered(screen)
    screen.focus("Message")
    screen.keys("ctrl+Up")
    screen.wait_focus("Assistant said")
    choose_by_keys(screen, "Delete…", "Menu: Assistant said")
    screen.wait_focus("Keep")
    screen.keys("Tab", "space")
    screen.wait_gone("Delete this answer?")
    screen.wait_gone("2 of 2")


@pytest.mark.exhaustive(
    "tests/ui/shell/test_branch_tree.py::test_branches_are_opened_deleted_and_branched_from_by_keyboard"
)
def test_an_answer_by_the_tree_alone(screen: Screen) -> None:
    screen.press(screen.wait_line(f"{SECOND}, "))
    screen.wait_for(f"{SECOND} — Desktop Agent", "frame")
    screen.press("Regenerate this answer")
    screen.wait_for("2 of 2", "panel")
    wait_answered(screen)
    choose(screen, SECOND, "Branches…")
    row = screen.wait_line(f"You: {SECOND}")
    screen.press(row)
    screen.wait_focus(row)
    screen.press("Show")
    screen.press("Close")
    screen.wait_gone("Branches", "dialog")


@pytest.mark.exhaustive("tests/ui/shell/test_message_deletion.py::test_a_message_is_deleted_once_that_was_asked")
def test_messages_are_deleted_by_the_tree_alone(screen: Screen) -> None:
    screen.new_conversation()
    for prompt, answer in ((FIFTH, "= 63"), (SIXTH, "= 72")):
        screen.send(prompt)
        wait_until("it is answered", lambda answer=answer: answer in screen.last("Assistant said"))
        screen.wait_for("Send")
    # The name of each button has the author and the beginning of the message that it deletes.
    screen.press("Delete your message…", about=SIXTH)
    screen.wait_for("Delete your message?")
    screen.wait_says("It is deleted for good, with")
    screen.press("Keep")
    screen.wait_gone("Delete your message?")
    screen.wait_last("You said", SIXTH)
    screen.press("Delete your message…", about=SIXTH)
    screen.wait_for("Delete your message?")
    screen.press("Delete for good")
    screen.wait_gone("Delete your message?")
    wait_until("the second prompt is gone", lambda: screen.last("You said") == FIFTH)
    screen.press("Delete this answer…")
    screen.wait_for("Delete this answer?")
    screen.press("Delete for good")
    screen.wait_gone("Delete this answer?")
    wait_until("the answer is gone", lambda: not screen.texts("Assistant said"))
    screen.wait_gone("Delete this answer…")
    assert screen.texts("You said") == [FIFTH]
    screen.press("Delete your message…", about=FIFTH)
    screen.press("Delete for good")
    wait_until("nothing is left", lambda: not screen.texts("You said"))


@pytest.mark.exhaustive("tests/ui/shell/test_organising.py::test_a_folder_is_made_opened_left_and_deleted")
def test_folders_by_keys_alone(screen: Screen) -> None:
    command_by_keys(screen, "New folder")
    screen.wait_focus("Name of the folder")
    screen.type("Sums")
    screen.keys("Return")
    screen.wait_line("Folder: Sums")
    go_to_row(screen, FIRST)
    choose_by_keys(screen, "Move to a folder")
    screen.wait_focus("Move to a folder")
    screen.type("Sums")
    screen.wait_focus("Sums")
    screen.keys("Return")
    screen.wait_says(f"Moved “{FIRST}”.")
    wait_until("it is in the folder", lambda: f"{FIRST}, " not in screen.says())
    screen.keys("ctrl+z")
    screen.wait_line(f"{FIRST}, ")


@pytest.mark.exhaustive("tests/ui/shell/test_organising.py::test_a_folder_is_made_opened_left_and_deleted")
def test_folders_by_the_tree_alone(screen: Screen) -> None:
    command(screen, "New folder…")
    screen.write("Name of the folder", "Products")
    screen.press("Create")
    screen.wait_line("Folder: Products")
    choose(screen, SECOND, "Move to a folder…")
    screen.press(screen.wait_line("Products"))
    screen.wait_says(f"Moved “{SECOND}”.")
    screen.press(screen.wait_line("Folder: Products"))
    screen.wait_line(f"{SECOND}, ")
    screen.press("Products. Go up to: All conversations")
    screen.wait_line("Folder: Products")


@pytest.mark.exhaustive("tests/ui/shell/test_organising.py::test_several_are_marked_in_their_menus")
def test_several_are_marked_by_the_tree_alone(screen: Screen) -> None:
    for prompt in (THIRD, FOURTH):
        screen.new_conversation()
        screen.send(prompt)
        wait_answered(screen)
    choose(screen, FOURTH, "Select several")
    screen.press(screen.wait_line(f"{THIRD}, "))
    screen.focus("Conversations")
    screen.press("Menu: Conversation")
    screen.press("Archive")
    screen.wait_says("Archived conversations: 2.")


@pytest.mark.exhaustive(
    "tests/ui/sidebar/test_search_filters.py::test_a_filter_is_chosen_from_the_menu_and_removed_by_its_chip"
)
def test_filters_by_keys_alone(screen: Screen) -> None:
    screen.keys("ctrl+shift+f")
    screen.wait_focus("Search conversations")
    screen.type("calculate")
    screen.wait_line("Assistant, ")
    step_to(screen, "Tab", "Filters")
    screen.keys("space")
    screen.wait_for("Menu: Filters", "popup menu")
    step_to(screen, "Down", "Said by")
    screen.keys("Right")
    step_to(screen, "Down", "Said by me")
    screen.keys("Return")
    screen.wait_for("Remove the filter: Said by me")
    wait_until("no answer is listed", lambda: "\nAssistant, " not in screen.says())
    step_to(screen, "Tab", "Remove the filter: Said by me")
    screen.keys("space")
    screen.wait_line("Assistant, ")
    screen.keys("ctrl+shift+f", "Escape")
    screen.wait_focus("Message")


@pytest.mark.exhaustive("tests/ui/shell/test_storage_page.py::test_a_backup_is_deleted_and_the_database_is_compacted")
def test_a_backup_by_keys_alone(screen: Screen) -> None:
    screen.keys("ctrl+comma")
    screen.wait_focus("Providers and keys")
    screen.keys("End")
    screen.wait_focus("Usage")
    screen.keys("Up")
    screen.wait_focus("Storage")
    step_to(screen, "Tab", "Back up now")
    screen.keys("space")
    screen.wait_says(BACKED_UP)
    step_to(screen, "Tab", "Delete backup…")
    screen.keys("space")
    screen.wait_focus("Keep")
    screen.keys("Escape")
    screen.wait_gone("Delete this backup?")
    screen.press("Delete backup…")
    screen.press("Delete for good")
    screen.wait_says("Backups and copies that were deleted: 1.")
    screen.keys("Escape")
    screen.wait_gone("Settings", "dialog")
