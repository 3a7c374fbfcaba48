"""What `make run` must do on a screen: open the window, keep it open, answer, and end without an error.

`python packaging/from_source.py`; packaging/systems.py runs it on other systems.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from build import ROOT
from tests.fakes.window_process import opened
from tests.frame.displays import end_group, readable_display
from windows import PATIENCE, window_of

Check = tuple[str, bool, str]
STAY = 10.0
"""Seconds."""


def make_run(shown: dict[str, str], home: Path) -> Iterator[Check]:
    """Check that the window of `make run` opens, is still there after a while, and closes on SIGTERM."""
    log = home / "make.out"
    words = ["make", "--silent", "run", f"ARGS=--demo --data-dir {home / 'made'}"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            words, cwd=ROOT, env=shown, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        deadline = time.monotonic() + PATIENCE
        while not window_of("desktop-agent", shown) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        is_open = window_of("desktop-agent", shown)
        time.sleep(STAY if is_open else 0)
        stays = window_of("desktop-agent", shown) and process.poll() is None
        for pid in window_pids(shown):
            os.kill(pid, signal.SIGTERM)
        if not is_open:
            end_group(process)
        code = process.wait(PATIENCE)
    output = log.read_text(errors="replace").strip()
    seen = f"stays: {stays}, ends with {code} {output}".strip()
    yield "make run opens a window", is_open and stays and code == 0, seen


def window_pids(shown: dict[str, str]) -> set[int]:
    """Return the processes of the program's windows."""
    command = [shutil.which("xdotool") or "xdotool", "search", "--class", "desktop-agent", "getwindowpid", "%@"]
    return {int(pid) for pid in subprocess.run(command, env=shown, capture_output=True, check=False).stdout.split()}


def answers(shown: dict[str, str], home: Path) -> Iterator[Check]:
    """Check that the window answers, as a screen reader reads it."""
    with opened(shown, home / "data", "--demo") as (_, screen):
        screen.wait_for("Message")
        screen.send("Hello there")
        screen.wait_for("Stop")
        screen.wait_for("Send")
        answer = screen.last("Assistant said")
    yield "the window answers", "I am the demo model" in answer, f"{len(answer)} characters"


def main() -> int:
    """Run all checks. Returns 1 when one failed."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="desktop-agent-", ignore_cleanup_errors=True) as name:
        home = Path(name)
        with readable_display(home) as shown:
            for check in (make_run, answers):
                for what, passed, seen in check(shown, home):
                    failed += not passed
                    sys.stdout.write(f"{'ok  ' if passed else 'BAD '} {what}: {seen}\n")
                    sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
