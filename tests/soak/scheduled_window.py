"""Successive real windows on a data folder with scheduled prompts, until each is killed.

    python -m tests.soak.scheduled_window DATA

Each line of standard input starts one: it is `Allow once`, `Deny` or empty, and names the button that the person in the
window presses for each waiting call, by way of the inbox. The window is forked, so that the program is loaded only
once. JSON objects on standard output report its `pid`, that its scheduler is `ready`, each `answered` call with the
button, and that it has `ended`.
"""

import importlib
import json
import os
import select
import sys
import time
import traceback
from pathlib import Path

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QAbstractButton, QApplication, QListWidget, QWidget

from desktop_agent.engine.engine import Engine
from desktop_agent.schedule import scheduler
from desktop_agent.types.tool_calls import Decision
from tests.soak.driven_window import find_shown
from ui.__main__ import BACKGROUND_IMPORTS, SLICED_IMPORTS
from ui.__main__ import main as window
from ui.bridge.permissions import Approvals
from ui.shell import startup_window

_LOADED = (
    *SLICED_IMPORTS,
    *BACKGROUND_IMPORTS,
    "desktop_agent.tools.builtin_tools",
    "ui.approval.approval_dialog",
    "ui.bridge.event_loop",
    "ui.shell.desktop.desktop_parts",
    "ui.shell.exchange",
    "ui.shell.inbox",
)
_EVERY_MS = 100
_LONGEST_SLEEP = 0.2


def write_line(line: dict[str, object]) -> None:
    """Write a line in one piece, without buffering."""
    os.write(1, f"{json.dumps(line)}\n".encode())


class Person(QObject):
    """Decides each waiting call of every conversation."""

    def __init__(self, app: QApplication, button: str) -> None:
        super().__init__(app)
        self._app = app
        self._button = button
        timer = QTimer(self)
        timer.timeout.connect(self._check_windows)
        timer.start(_EVERY_MS)

    def _check_windows(self) -> None:
        windows = [window for window in self._app.topLevelWidgets() if window.isVisible()]
        any(self._decide(window) for window in windows) or any(self._choose(window) for window in windows) or any(
            self._open_inbox(window) for window in windows
        )

    def _decide(self, window: QWidget) -> bool:
        button = find_shown(window, QAbstractButton, self._button)
        if button is None:
            return False
        if button.isEnabled():
            button.click()
        return True

    def _choose(self, window: QWidget) -> bool:
        """Open the conversation of the call that has waited longest."""
        calls = find_shown(window, QListWidget, "Calls that wait for you")
        if calls is None:
            return False
        calls.setCurrentRow(0)
        button = find_shown(window, QAbstractButton, "Open the conversation")
        if button is not None and button.isEnabled():
            button.click()
        return True

    def _open_inbox(self, window: QWidget) -> bool:
        buttons = (candidate for candidate in window.findChildren(QAbstractButton) if candidate.isVisible())
        button = next((candidate for candidate in buttons if candidate.accessibleName() == "Waiting approvals"), None)
        if button is not None:
            button.click()
        return button is not None


def live(data: str, button: str) -> int:
    """Run the program, in which a person presses this button; return the exit code."""
    open_application = startup_window.open_application
    answer = Approvals.answer

    def opened() -> QApplication:
        app = open_application()
        if button:
            Person(app, button)
        return app

    def answered(self: Approvals, approval_id: str, decision: Decision) -> None:
        write_line({"answered": approval_id, "button": button})
        answer(self, approval_id, decision)

    startup_window.open_application = opened
    Approvals.answer = answered
    return window(["--data-dir", data])


def prepare() -> None:
    """Load the program, and adapt it to a fast clock."""
    for module in _LOADED:
        importlib.import_module(module)
    create = scheduler.Scheduler

    def create_ready(engine: Engine, listener: scheduler.SchedulerListener) -> scheduler.Scheduler:
        write_line({"ready": True})
        # The clock of the process runs many times as fast as its timers.
        return create(engine, listener, longest_sleep=_LONGEST_SLEEP)

    scheduler.Scheduler = create_ready  # type: ignore[misc, assignment]
    # libfaketime 0.9.10 does not leave clock_nanosleep alone where it leaves the monotonic clock alone.
    time.sleep = lambda seconds: select.select((), (), (), seconds) and None  # type: ignore[assignment]


def main(data: str) -> None:
    prepare()
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                write_line({"pid": os.getpid()})
                code = live(data, line.strip())
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        write_line({"ended": os.waitstatus_to_exitcode(status)})


if __name__ == "__main__":
    main(str(Path(sys.argv[1])))
