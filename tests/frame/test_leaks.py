"""Proves each check for leaks: in a child run of pytest a test commits each fault, and must fail for that reason."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.frame.patience import PATIENCE

ROOT = Path(__file__).parents[2]

FAULTS = """
import asyncio, os, socket, subprocess, sys, threading, time, warnings, weakref
import pytest
import qasync
from PySide6.QtCore import QObject, QTimer, Signal, qWarning, QCoreApplication
from PySide6.QtWidgets import QLabel, QApplication
from tests.frame import leaks
from ui.bridge.event_loop import FrameClock

leaks.GRACE = 0.2  # what has not ended by then has not ended after two seconds either
KEPT = []
GONE = []


def test_clean(qtbot):
    label = QLabel("clean")
    qtbot.addWidget(label)
    label.show()
    timer = QTimer(label)
    timer.start(10)


async def test_clean_async():
    task = asyncio.create_task(asyncio.sleep(0))
    await task


def test_clean_again_with_a_server():
    with socket.create_server(("127.0.0.1", 0)):
        pass


def test_something_lives_as_long_as_the_application(qapp):
    clock = FrameClock(qapp)
    GONE.append(weakref.ref(clock))


def test_it_is_gone_with_its_test():
    assert GONE[0]() is None


def test_a_style_sheet_stays(qapp):
    qapp.setStyleSheet("QLabel { color: red }")


def test_it_is_taken_away(qapp):
    assert not qapp.styleSheet()


def test_warning():
    warnings.warn("old", DeprecationWarning)


def test_unraisable():
    class Bad:
        def __del__(self):
            raise RuntimeError("in del")

    Bad()


def test_unclosed_and_dropped(tmp_path):
    (tmp_path / "x").open("w")


def test_thread_exception():
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()


def test_qt_message(qtbot):
    qWarning("something is odd")


@pytest.fixture
def complaining():
    yield
    qWarning("odd at the end")


def test_qt_message_of_fixture(complaining):
    pass


def test_qt_message_expected(qt_messages):
    qt_messages.expect("odd")
    qWarning("something is odd")


def test_qt_message_expected_in_vain(qt_messages):
    qt_messages.expect("odd")


class Talker(QObject):
    said = Signal()


def test_slot_exception(qtbot):
    talker = Talker()
    talker.said.connect(lambda: 1 / 0)
    talker.said.emit()


def test_timer(qtbot):
    timer = QTimer()
    timer.start(1000)
    KEPT.append(timer)


def test_stop_timer(qtbot):
    for timer in KEPT:
        timer.stop()
    KEPT.clear()


async def test_task():
    KEPT.append(asyncio.create_task(asyncio.sleep(100)))
    await asyncio.sleep(0)


def test_task_of_qasync(qapp):
    loop = qasync.QEventLoop(qapp)
    KEPT.append((loop, loop.create_task(asyncio.sleep(100))))
    loop.run_until_complete(asyncio.sleep(0))


def test_end_task_of_qasync(qapp):
    KEPT[-1][1].cancel()
    KEPT[-1][0].run_until_complete(asyncio.sleep(0))
    KEPT[-1][0].close()
    asyncio.set_event_loop(None)


async def test_loop_error():
    async def fail():
        raise ValueError("nobody sees this")

    task = asyncio.create_task(fail())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    del task


def test_thread():
    thread = threading.Thread(target=time.sleep, args=(1.5,), name="sleeper", daemon=True)
    thread.start()
    KEPT.append(thread)


def test_end_thread():
    KEPT[-1].join()


def test_process():
    KEPT.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]))


def test_end_process():
    KEPT[-1].kill()
    KEPT[-1].wait()


def test_socket():
    KEPT.append(socket.create_server(("127.0.0.1", 0)))


def test_file(tmp_path):
    KEPT.append((tmp_path / "open").open("w"))


def test_window(qtbot):
    label = QLabel("left")
    label.show()
    KEPT.append(label)


def test_working_folder(tmp_path):
    os.chdir(tmp_path)


def test_working_folder_is_put_back(pytestconfig):
    assert os.getcwd() == str(pytestconfig.invocation_params.dir)


def test_working_folder_that_is_patched(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.leaves("threads", reason="the next test ends it")
def test_excused():
    thread = threading.Thread(target=time.sleep, args=(1,), daemon=True)
    thread.start()
    KEPT.append(thread)


def test_end_excused():
    KEPT[-1].join()


@pytest.mark.leaves("threads")
def test_excused_without_reason():
    pass


def test_keys_and_homes(pytestconfig):
    import keyring.errors
    import platformdirs

    assert "fail" in type(keyring.get_keyring()).__module__
    assert platformdirs.user_data_dir("x").startswith(os.environ["HOME"])
    assert "DBUS_SESSION_BUS_ADDRESS" not in os.environ and "DISPLAY" not in os.environ
"""

EXPECTED = {
    "test_warning": "DeprecationWarning: old",
    "test_unraisable": "in del",
    "test_unclosed_and_dropped": "ResourceWarning",
    "test_thread_exception": "ZeroDivisionError",
    "test_qt_message": "Qt messages: something is odd",
    "test_qt_message_of_fixture": "Qt messages: odd at the end",
    "test_qt_message_expected_in_vain": "expected, but not said: odd",
    "test_slot_exception": "ZeroDivisionError",
    "test_timer": "timers: QTimer '' every 1000 ms",
    "test_task": r"tasks: Task-\d+: sleep",
    "test_task_of_qasync": r"tasks: Task-\d+: sleep",
    "test_loop_error": "(?s)loop errors: Task exception was never retrieved.*nobody sees this",
    "test_thread": "threads: sleeper",
    "test_process": r"processes: \d+ .*time.sleep\(60\)",
    "test_socket": r"files: \d+ socket:",
    "test_file": r"files: \d+ .*/open",
    "test_window": "windows: .*QLabel.* 'left'|windows: .*QLabel",
    "test_working_folder": "working folder: one that was deleted",
    "test_excused_without_reason": "a reason",
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What pytest reported about each seeded test; an empty text if it passed."""
    folder = tmp_path_factory.mktemp("faults")
    (folder / "test_faults.py").write_text(FAULTS)
    plugins = [part for name in ("homes", "leaks") for part in ("-p", f"tests.frame.{name}")]
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder), *plugins]
    command += ["-q", "-p", "no:cacheprovider", "--junitxml", str(folder / "report.xml"), str(folder)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert run.returncode == 1, run.stdout + run.stderr
    outcomes: dict[str, str] = {}
    for case in ElementTree.parse(folder / "report.xml").iter("testcase"):
        report = " ".join((part.get("message") or "") + (part.text or "") for part in case if part.tag in WRONG)
        outcomes[case.attrib["name"]] = outcomes.get(case.attrib["name"], "") + report
    return outcomes


WRONG = ("failure", "error", "skipped")


@pytest.mark.parametrize("name", EXPECTED)
def test_a_seeded_fault_is_caught(name: str, outcomes: dict[str, str]) -> None:
    assert re.search(EXPECTED[name], outcomes[name]), outcomes[name] or "it passed"


def test_everything_else_passed(outcomes: dict[str, str]) -> None:
    assert {name for name, report in outcomes.items() if report} == set(EXPECTED)
    assert len(outcomes) == FAULTS.count("def test_")
