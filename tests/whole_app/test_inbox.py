"""Waiting calls are decided from the inbox: by keys, by the tree alone, and after the program was killed."""

from pathlib import Path

import pytest

from tests.fakes.window_process import Screen, opened, wait_until
from tests.frame.selection import few

CRASHED = "Desktop Agent ended unexpectedly the last time."
ROW = "Write a file: notes/hello.txt. The assistant asks, in the conversation write a file, since "


def leave_waiting(screen: Screen) -> None:
    """Leave a call waiting in a conversation that is not open."""
    screen.wait_for("Message")
    screen.send("write a file")
    screen.close_dialog("Approve tool call")
    screen.new_conversation()


def decide(screen: Screen) -> None:
    """Wait for the conversation and its dialog, and deny the call."""
    screen.wait_for("Approve tool call", "dialog")
    screen.wait_for("write a file — Desktop Agent", "frame")
    wait_until("Deny can be pressed", lambda: "enabled" in screen.wait_for("Deny")["states"])


@pytest.mark.exhaustive("tests/ui/shell/test_inbox.py::test_it_lists_what_waits_and_enter_leads_to_the_decision")
def test_keys_alone(real_display: dict[str, str], tmp_path: Path) -> None:
    with opened(real_display, tmp_path / "data", "--demo") as (program, screen):
        leave_waiting(screen)
        screen.wait_for("Waiting approvals", "push button")
        screen.keys("ctrl+shift+y")
        screen.wait_focus("Calls that wait for you")
        screen.wait_line(ROW)
        screen.keys("Return")
        decide(screen)
        screen.keys("d")
        screen.wait_gone("Approve tool call", "dialog")
        screen.wait_gone("Waiting approvals", "push button")
        screen.wait_for("Send")
        assert not (program.data / "demo workspace" / "notes" / "hello.txt").exists()
        screen.keys("ctrl+shift+y")
        screen.wait_says("Nothing waits for you.")
        screen.close_dialog("Waiting approvals")


@pytest.mark.parametrize("how", few(["killed", "quit"], 1, "test_the_tree_alone_and_after_the_program_ended"))
def test_the_tree_alone_and_after_the_program_ended(real_display: dict[str, str], tmp_path: Path, how: str) -> None:
    with opened(real_display, tmp_path / "data", "--demo") as (program, screen):
        leave_waiting(screen)
        screen.press("Waiting approvals")
        screen.wait_line(ROW)
        program.kill() if how == "killed" else program.end()
    with opened(real_display, tmp_path / "data", "--demo") as (_, screen):
        screen.wait_for("Message")
        # A program that was killed did not crash.
        assert not screen.says(CRASHED)
        screen.press(screen.wait_line("Waiting approvals"))
        screen.press(screen.wait_line(ROW))
        screen.press("Open the conversation")
        decide(screen)
        screen.press("Deny")
        screen.wait_gone("Approve tool call", "dialog")
        screen.wait_gone("Waiting approvals", "push button")
        screen.wait_for("Send")
