"""After a crash the next start says so, with a report that can be read and copied."""

import signal
from pathlib import Path

import pytest

from tests.fakes.window_process import opened

SAYS = "Desktop Agent ended unexpectedly the last time."


def end_with(real_display: dict[str, str], data: Path, number: int) -> None:
    """Start the program, and end it by a signal."""
    with opened(real_display, data, "--demo") as (running, screen):
        screen.send("What is 6 * 7?")
        screen.wait_says("6 * 7 = 42")
        running.process.send_signal(number)
        running.process.wait()


def test_a_crash_is_told_of_once_and_its_report_holds_no_words(real_display, tmp_path):
    data = tmp_path / "data"
    end_with(real_display, data, signal.SIGSEGV)
    with opened(real_display, data) as (_, screen):
        screen.wait_says(SAYS)
        screen.press("Show report")
        screen.wait_for("Crash report")
        screen.wait_says("Fatal Python error: Segmentation fault", "Desktop Agent ", "Qt 6.", "it is not sent anywhere")
        report = (data / "last-crash-report.txt").read_text()
        assert "6 * 7" not in report
        screen.press("Copy")
        screen.press("Close")
        screen.wait_gone("Crash report")
        screen.wait_says("6 * 7 = 42")
    assert not (data / "crash-report.txt").exists()
    with opened(real_display, data) as (_, screen):
        screen.wait_says("6 * 7 = 42")
        assert not screen.says(SAYS)
    assert (data / "last-crash-report.txt").read_text() == report


@pytest.mark.exhaustive(
    "tests/ui/bridge/desktop/test_crash_reports.py::test_what_a_killed_process_left_is_no_report",
    "tests/whole_app/test_inbox.py::test_the_tree_alone_and_after_the_program_ended",
)
def test_a_process_that_was_killed_left_no_report(real_display, tmp_path):
    data = tmp_path / "data"
    end_with(real_display, data, signal.SIGKILL)
    with opened(real_display, data) as (_, screen):
        screen.wait_says("6 * 7 = 42")
        assert not screen.says(SAYS)
    assert not (data / "last-crash-report.txt").exists()
