"""The file of a crash: what it takes from the last process, what it leaves, and what it never says."""

import faulthandler
import sys
from pathlib import Path

import pytest

from ui.bridge.desktop.crash_reports import CrashLog

FAULT = 'Desktop Agent 1, Qt 6\n\nFatal Python error: Segmentation fault\n\n  File "{}/x.py", line 1 in run\n'


@pytest.fixture
def log(tmp_path):
    """Return a log. Afterwards pytest's own fault handler is restored."""
    was_enabled = faulthandler.is_enabled()
    crash_log = CrashLog(tmp_path)
    yield crash_log
    crash_log.close()
    if was_enabled:
        faulthandler.enable(sys.__stderr__)


def test_a_report_is_taken_once_without_the_name_of_the_home_folder(log, tmp_path):
    (tmp_path / "crash-report.txt").write_text(FAULT.format(Path.home()))
    log.begin()
    assert 'File "~/x.py"' in log.last_report
    assert str(Path.home()) not in log.last_path.read_text()
    log.note_versions("Desktop Agent 2")
    assert (tmp_path / "crash-report.txt").read_text() == "Desktop Agent 2\n\n"
    log.close()
    again = CrashLog(tmp_path)
    again.begin()
    again.close()
    assert again.last_report == ""
    assert log.last_report in log.last_path.read_text()


def test_what_a_killed_process_left_is_no_report(log, tmp_path):
    (tmp_path / "crash-report.txt").write_text("Desktop Agent 1, Qt 6\n\n")
    log.begin()
    assert log.last_report == ""
    assert not log.last_path.exists()


def test_a_folder_that_cannot_be_written_is_no_reason_not_to_start(tmp_path):
    log = CrashLog(tmp_path / "missing")
    log.begin()
    log.note_versions("Desktop Agent 2")
    log.close()
    assert log.last_report == ""
