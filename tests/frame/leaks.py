"""Fails a test that leaves something behind, or during which Qt, Python or asyncio reported a fault.

Watched: Python warnings (by `filterwarnings = error`), warnings and worse from Qt, exceptions in slots (by pytest-qt),
errors on the event loop, running timers, unfinished tasks, threads, child processes, open sockets and files, windows,
another working folder.
Not seen: `QTimer.singleShot` that has not fired, and timers that only C++ started.
A test that must leave something says what and why: `@pytest.mark.leaves("threads", reason="…")`.
A test that makes Qt complain on purpose takes the fixture `qt_messages` and calls `expect(pattern)`.
"""

import asyncio
import contextlib
import gc
import logging
import os
import re
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import shiboken6
from PySide6.QtCore import QCoreApplication, QEvent, QThreadPool, QTimer, QtMsgType, qInstallMessageHandler
from PySide6.QtWidgets import QApplication, QWidget

GRACE = 2.0
"""Seconds that threads and processes get to end by themselves."""

KINDS = ("Qt messages", "loop errors", "timers", "tasks", "threads", "processes", "files", "windows")

AS_IN_PROGRAM = gc.get_threshold()
"""The thresholds of Python's garbage collector, for a test that measures memory."""

SELDOM = (200_000, 50, 100)
"""The thresholds during a run: new objects until Python collects garbage, and how often it includes older ones."""

ALLOWED_QT_MESSAGES: tuple[tuple[str, str], ...] = (
    (r"^This plugin does not support (propagateSizeHints|raise)\(\)$", "the offscreen platform has no window manager"),
    (r"^QFontDatabase: Cannot find font directory", "the wheel ships no fonts; fontconfig finds the system's"),
)

LOOPS = weakref.WeakSet[asyncio.AbstractEventLoop]()
"""The event loops that are open, or were closed by the current test."""

_COMPLAINTS = {
    QtMsgType.QtWarningMsg: "warning",
    QtMsgType.QtCriticalMsg: "critical",
    QtMsgType.QtFatalMsg: "fatal",
    QtMsgType.QtSystemMsg: "system",
}


@dataclass
class QtMessages:
    """The warnings and errors of Qt since the test began."""

    seen: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def expect(self, pattern: str) -> None:
        """Expect a message of Qt that matches; the test fails if there is none."""
        self.expected.append(pattern)

    def take_unexpected(self) -> list[str]:
        """Return messages that were not expected, and patterns that none matched; forget both."""
        patterns = self.expected + [pattern for pattern, _ in ALLOWED_QT_MESSAGES]
        wrong = [text for text in self.seen if not any(re.search(pattern, text) for pattern in patterns)]
        wrong += [
            f"expected, but not said: {pattern}"
            for pattern in self.expected
            if not any(re.search(pattern, text) for text in self.seen)
        ]
        self.seen, self.expected = [], []
        return wrong


class LoopErrors(logging.Handler):
    """The errors that asyncio and qasync log because there is nobody to raise them to."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        lines = [record.getMessage()]
        if record.exc_info and record.exc_info[1] is not None:
            lines.append(repr(record.exc_info[1]))
        self.seen.append(" ".join(lines))


class Watch:
    """The hooks of the whole run: into Qt's messages, timers, event loops and their logs."""

    def __init__(self) -> None:
        self.qt = QtMessages()
        self.loop_errors = LoopErrors()
        self.unfinished: list[str] = []
        self._timers: list[weakref.ref[QTimer]] = []
        self._patch = pytest.MonkeyPatch()

    def install(self) -> None:
        """Install the hooks."""
        qInstallMessageHandler(self._on_qt_message)
        for name in ("asyncio", "qasync"):
            logging.getLogger(name).addHandler(self.loop_errors)
        start, close, init_loop = QTimer.start, asyncio.Runner.close, asyncio.BaseEventLoop.__init__

        def watched_start(timer: QTimer, *arguments: Any) -> None:
            self._timers.append(weakref.ref(timer))
            start(timer, *arguments)

        def watched_close(runner: asyncio.Runner) -> None:
            # Closing cancels the tasks that still run, so this is the last moment to see them.
            with contextlib.suppress(RuntimeError):  # closed already
                self.unfinished += [describe_task(task) for task in asyncio.all_tasks(runner.get_loop())]
            close(runner)

        def watched_loop(loop: asyncio.BaseEventLoop) -> None:
            init_loop(loop)
            LOOPS.add(loop)

        self._patch.setattr(QTimer, "start", watched_start)
        self._patch.setattr(asyncio.BaseEventLoop, "__init__", watched_loop)
        self._patch.setattr(asyncio.Runner, "close", watched_close)

    def remove(self) -> None:
        """Remove the hooks."""
        self._patch.undo()
        qInstallMessageHandler(None)
        for name in ("asyncio", "qasync"):
            logging.getLogger(name).removeHandler(self.loop_errors)

    def running_timers(self) -> list[str]:
        """Describe the timers that were started since the last call and still run."""
        timers = {id(timer): timer for ref in self._timers if (timer := ref()) is not None}
        self._timers.clear()
        return [describe_timer(timer) for timer in timers.values() if shiboken6.isValid(timer) and timer.isActive()]

    def _on_qt_message(self, kind: QtMsgType, _context: object, text: str | None) -> None:
        if kind in _COMPLAINTS:
            self.qt.seen.append(f"{_COMPLAINTS[kind]}: {text}" if kind is not QtMsgType.QtWarningMsg else str(text))


def describe_timer(timer: QTimer) -> str:
    """Name, interval and owner."""
    return f"QTimer {timer.objectName()!r} every {timer.interval()} ms, parent {timer.parent()!r}"


def describe_task(task: asyncio.Task[Any]) -> str:
    """Name and coroutine."""
    return f"{task.get_name()}: {getattr(task.get_coro(), '__qualname__', task.get_coro())}"


def all_unfinished_tasks() -> set[asyncio.Task[Any]]:
    """The unfinished tasks of every loop, running or not: Python has no public list across loops."""
    return {task for loop in tuple(LOOPS) for task in asyncio.all_tasks(loop)}


def other_threads() -> set[threading.Thread]:
    """The threads that Python started. A thread of Qt that once called Python stays listed as a dummy for ever."""
    return {thread for thread in threading.enumerate() if not isinstance(thread, threading._DummyThread)}


def child_processes() -> set[int]:
    """The ids of child processes; empty where the system has no /proc."""
    children: set[int] = set()
    with contextlib.suppress(FileNotFoundError, ChildProcessError):
        threads = os.listdir("/proc/self/task")  # noqa: PTH208 - for every test: a Path takes five times as long
        # Raises ChildProcessError without children, which most tests have not: then no file is read for each thread.
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        for thread in threads:
            with contextlib.suppress(OSError), open(f"/proc/self/task/{thread}/children") as file:  # noqa: PTH123
                children |= {int(pid) for pid in file.read().split()}
    return children


def command_of(pid: int) -> str:
    """The command line of a process, for the message."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return "gone"


def open_files() -> dict[int, str]:
    """Sockets and files outside the system's own folders, by descriptor; empty where the system has no /proc."""
    files: dict[int, str] = {}
    with contextlib.suppress(FileNotFoundError):
        for number in os.listdir("/proc/self/fd"):  # noqa: PTH208 - for every test: a Path takes five times as long
            with contextlib.suppress(OSError):
                target = os.readlink(f"/proc/self/fd/{number}")  # noqa: PTH115
                if not target.startswith(("/usr/", "/proc/", "/dev/", "/sys/", "/etc/", "/memfd:", "pipe:", "anon_")):
                    files[int(number)] = target
    return files


def settle(still_there: Callable[[], bool]) -> None:
    """Wait until nothing is still there, at most GRACE seconds."""
    deadline = time.monotonic() + GRACE
    while still_there() and time.monotonic() < deadline:
        time.sleep(0.005)


def windows() -> list[QWidget]:
    """The top-level widgets without a parent."""
    if not isinstance(QApplication.instance(), QApplication):
        return []
    return [widget for widget in QApplication.topLevelWidgets() if widget.parent() is None]


@dataclass
class Before:
    """What was there when the test began."""

    tasks: set[asyncio.Task[Any]]
    threads: set[threading.Thread]
    children: set[int]
    files: dict[int, str]
    windows: list[QWidget]

    @classmethod
    def now(cls) -> "Before":
        """Read the state of now, and forget closed loops: they get no more tasks, and asking each loop takes time."""
        LOOPS.difference_update([loop for loop in LOOPS if loop.is_closed()])
        return cls(all_unfinished_tasks(), other_threads(), child_processes(), open_files(), windows())

    def new_threads(self) -> list[str]:
        """The names of new threads, and whether Qt's own pool still works."""
        settle(lambda: bool(other_threads() - self.threads))
        names = [f"{thread.name}" for thread in other_threads() - self.threads]
        pool = QThreadPool.globalInstance()
        if not pool.waitForDone(int(GRACE * 1000)):
            names.append(f"{pool.activeThreadCount()} threads of Qt's pool")
        return names

    def new_children(self) -> list[str]:
        """New child processes with their commands."""
        settle(lambda: bool(child_processes() - self.children))
        return [f"{pid} {command_of(pid)}" for pid in child_processes() - self.children]

    def new_files(self) -> list[str]:
        """Sockets and files that were opened since."""
        return [f"{number} {target}" for number, target in open_files().items() if self.files.get(number) != target]

    def new_windows(self) -> list[str]:
        """New windows with their titles."""
        return [f"{w!r} {w.windowTitle()!r}" for w in windows() if not any(w is known for known in self.windows)]

    def new_tasks(self) -> list[str]:
        """New unfinished tasks; those of an asyncio.Runner are noted when it closes (`Watch.unfinished`)."""
        return [describe_task(task) for task in all_unfinished_tasks() - self.tasks]


WATCH = pytest.StashKey[Watch]()
PASSED = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    """Install the hooks."""
    config.addinivalue_line("markers", "leaves(*kinds, reason): this test may leave these behind, and why")
    watch = config.stash[WATCH] = Watch()
    watch.install()
    config.add_cleanup(watch.remove)
    config.stash[START_FOLDER] = working_folder()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[Any]:
    """Switch garbage collection off while tests are found: all new objects stay. Saves a seventh of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Freeze what is loaded by now, since it stays: this keeps the garbage collection after each test cheap.

    What finding the tests left as garbage is frozen too: collecting it would take half a second.
    As each test ends with one, Python need not start one by itself while a test makes no more than some MB of garbage.
    """
    gc.freeze()
    session.config.add_cleanup(partial(gc.set_threshold, *AS_IN_PROGRAM))
    gc.set_threshold(*SELDOM)


def pytest_sessionfinish() -> None:
    """Empty the clipboard: offscreen it outlives the interpreter, which the Python objects in it cannot."""
    if isinstance(QCoreApplication.instance(), QApplication):
        QApplication.clipboard().clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[Any]:
    """Remember whether the test itself passed: the locals of a failed one live on in its traceback."""
    report = yield
    if call.when == "call":
        item.stash[PASSED] = report.passed
    return report


@pytest.fixture
def qt_messages(pytestconfig: pytest.Config) -> QtMessages:
    """The messages of Qt, for a test that provokes some and expects them."""
    return pytestconfig.stash[WATCH].qt


def excused(request: pytest.FixtureRequest) -> set[str]:
    """The kinds that the marks of the test excuse."""
    kinds: set[str] = set()
    for mark in request.node.iter_markers("leaves"):
        if not mark.kwargs.get("reason") or not set(mark.args) <= set(KINDS):
            pytest.fail(f"leaves() wants kinds of {KINDS} and a reason, not {mark.args} {mark.kwargs}", pytrace=False)
        kinds |= set(mark.args)
    return kinds


MANY = 3_000
"""Objects not yet frozen that make a collection slow: mostly of a library that a test was the first to import."""


START_FOLDER = pytest.StashKey[str]()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Refuse a test that left the process in another folder, and go back. Runs after the fixtures: some go back."""
    start = item.config.stash[START_FOLDER]
    try:
        yield
    finally:
        if (folder := working_folder()) != start:
            os.chdir(start)
    if folder != start:
        pytest.fail(f"This test left behind:\n  working folder: {folder}", pytrace=False)


def working_folder() -> str:
    """The folder of this process, also where it was deleted."""
    try:
        return os.getcwd()  # noqa: PTH109 - for every test: a Path takes five times as long
    except FileNotFoundError:
        return "one that was deleted"


def tidy() -> None:
    """Delete our children of the application, objects that wait for deletion, and what only cycles keep alive.

    Then remove the application's style sheet, with which later tests of panes would take three times as long.
    """
    if (app := QCoreApplication.instance()) is not None:
        delete_children(app)
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    gc.collect()
    if isinstance(app, QApplication) and app.styleSheet():
        app.setStyleSheet("")
    if len(gc.get_objects()) > MANY:
        gc.freeze()


def delete_children(app: QCoreApplication) -> None:
    """Delete our objects that live as long as the application: they keep all of a closed window alive."""
    for child in app.children():
        if type(child).__module__.startswith("ui."):
            child.deleteLater()


@pytest.fixture(autouse=True)
def leaves_nothing(request: pytest.FixtureRequest, own_home: Path) -> Iterator[None]:
    """Compare before and after. Set up first, so that it compares after every other fixture of the test has ended."""
    watch, kinds_excused = request.config.stash[WATCH], excused(request)
    before = Before.now()
    watch.running_timers()
    watch.unfinished.clear()
    yield
    # The frames of an earlier failure would keep its windows alive.
    sys.last_value = sys.last_traceback = sys.last_exc = None
    tidy()
    found = {"Qt messages": watch.qt.take_unexpected(), "loop errors": list(watch.loop_errors.seen)}
    watch.loop_errors.seen.clear()
    if request.node.stash.get(PASSED, False):
        found["timers"] = watch.running_timers()
        found["tasks"] = watch.unfinished + before.new_tasks()
        found["threads"] = before.new_threads()
        found["processes"] = before.new_children()
        found["files"] = before.new_files()
        found["windows"] = before.new_windows()
    leaks = {kind: things for kind, things in found.items() if things and kind not in kinds_excused}
    if leaks:
        lines = [f"{kind}: {thing}" for kind, things in leaks.items() for thing in things]
        pytest.fail("This test left behind:\n  " + "\n  ".join(lines), pytrace=False)
