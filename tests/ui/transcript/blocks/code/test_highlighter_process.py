"""The child that colours, as it really runs: what it may use, how it ends, and that nothing waits for it in vain."""

import os
import signal
import subprocess
import sys
import time
from collections import deque
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from desktop_agent.processes import worker as worker_module
from tests.frame.patience import PATIENCE
from tests.ui.transcript.blocks.code.lexed_words import words_by_line
from ui.transcript.blocks.code import highlighter as module
from ui.transcript.blocks.code.highlighter import LIMITS, HighlighterProcess, HighlightJob
from ui.transcript.blocks.code.highlighter_protocol import HighlightRequest, HighlightSlice, LexerState

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits and signals are those of POSIX")

ENDLESS = '"' + "\\" * 2000
PYTHON = "def f():\n    return 1  # one\n" * 200


class Desk:
    """A client of the process that submits one job after the other."""

    def __init__(self, qtbot):
        self._qtbot = qtbot
        self._errands = deque()
        self.process = HighlighterProcess(lambda: self._errands.popleft() if self._errands else None)

    def ask(self, *codes):
        answers = [[] for _ in codes]
        self._errands += [HighlightJob(code, slices.append) for code, slices in zip(codes, answers, strict=True)]
        self.process.start_next()
        self._qtbot.waitUntil(lambda: not self.process.is_busy)
        return answers

    @property
    def child(self):
        return psutil.Process(self.process.worker.pid)

    @property
    def counts(self):
        return self.process.worker.started, self.process.sent


@pytest.fixture
def desk(qtbot, monkeypatch):
    """Return a client with a short time limit; all texts here that end take a tenth of it."""
    monkeypatch.setattr(module, "LIMITS", replace(LIMITS, seconds=0.4))
    new_desk = Desk(qtbot)
    yield new_desk
    new_desk.process.close()


def words_in(answers):
    return [line for answer in answers for line in answer.words]


def test_what_comes_in_slices_is_what_the_library_says(desk):
    (steps,) = desk.ask(HighlightRequest(PYTHON, "python"))
    assert len(steps) > 3
    assert words_in(steps) == words_by_line(PYTHON, "python")
    assert [step.is_last for step in steps] == [False] * (len(steps) - 1) + [True]


def test_one_child_does_it_all(desk):
    desk.ask(HighlightRequest("x = 1", "python"), HighlightRequest("let x = 1", "js"))
    first = desk.child
    growing, unknown = desk.ask(
        HighlightRequest('"\ud83d😀" + 1\n', "python", LexerState(7)), HighlightRequest("x", "no-such-language")
    )
    assert desk.child == first
    assert (growing[0].line, growing[0].lexer_state.line) == (7, 8)
    assert unknown == [HighlightSlice(0, [], is_last=True)]
    assert desk.counts == (1, 4)


def test_no_child_without_code(qtbot, desk):
    desk.process.start_next()
    assert desk.process.worker.started == 0


def test_a_text_without_an_end_stays_plain_and_is_not_asked_for_again(desk):
    endless = HighlightRequest(ENDLESS, "scala")
    (steps,) = desk.ask(endless)
    assert steps == [None]
    plain, coloured = desk.ask(endless, HighlightRequest("val x = 1", "scala"))
    assert plain == [None]
    assert words_in(coloured) == words_by_line("val x = 1", "scala")
    assert desk.counts == (2, 2)


def test_what_is_refused_is_that_text_and_no_other_of_the_same_hash(desk, monkeypatch):
    monkeypatch.setattr(module, "hash", lambda _: 1, raising=False)
    monkeypatch.setattr(HighlightRequest, "__hash__", lambda _: 1)
    desk.ask(HighlightRequest(ENDLESS, "scala"))
    assert desk.process.is_refused(HighlightRequest(ENDLESS, "scala"))
    assert desk.process.is_refused(HighlightRequest(ENDLESS, "scala", LexerState(1)))
    for other in (
        HighlightRequest("val x = 1", "scala"),
        HighlightRequest(ENDLESS, "python"),
        HighlightRequest("\ud83d", "scala"),
    ):
        assert not desk.process.is_refused(other)


def test_the_lines_before_what_has_no_end_are_coloured(desk):
    (steps,) = desk.ask(HighlightRequest("val x = 1\n" * 100 + ENDLESS, "scala"))
    assert (steps[0].line, len(steps[0].words), steps[-1]) == (0, 60, None)


def test_a_language_that_overruns_again_and_again_is_let_be(desk):
    desk.ask(*(HighlightRequest(f"{ENDLESS}{number}", "scala") for number in range(3)))
    assert desk.ask(HighlightRequest("val x = 1", "scala"), HighlightRequest("val x = 2", "Scala")) == [[None], [None]]
    (python,) = desk.ask(HighlightRequest("x = 1", "python"))
    assert words_in(python)
    assert desk.process.sent == 4


def test_where_no_signal_ends_the_child_the_window_does(desk, qtbot):
    desk.ask(HighlightRequest("x = 1", "python"))
    desk.process.worker._timeout = 0.05
    child = desk.child
    child.suspend()
    assert desk.ask(HighlightRequest("x = 2", "python")) == [[None]]
    qtbot.waitUntil(lambda: not child.is_running())
    desk.process.worker._timeout = module._TIMEOUT
    (steps,) = desk.ask(HighlightRequest("x = 3", "python"))
    assert words_in(steps)


def test_a_window_that_stood_still_does_not_blame_the_child(desk, qtbot):
    steps = []
    desk._errands.append(HighlightJob(HighlightRequest("x = 1", "python"), steps.append))
    desk.process.start_next()
    qtbot.waitUntil(lambda: desk.process.worker._is_calling or bool(steps))
    while desk.process.worker._is_calling:
        time.sleep(0.01)
    desk.process.worker._deadline = 0.0
    qtbot.waitUntil(lambda: bool(steps))
    assert words_in(steps)
    assert desk.process.worker.started == 1


def test_a_child_that_was_killed_is_replaced_and_its_work_done(desk, qtbot):
    desk.ask(HighlightRequest("x = 1", "python"))
    desk.child.kill()
    (steps,) = desk.ask(HighlightRequest("x = 2", "python"))
    assert words_in(steps) == words_by_line("x = 2", "python")
    desk.child.kill()
    psutil.wait_procs([desk.child])
    (steps,) = desk.ask(HighlightRequest("x = 3", "python"))
    assert words_in(steps)
    assert desk.process.worker.started == 3


def test_who_kills_the_child_each_time_gets_no_colours(desk, monkeypatch):
    write = worker_module.encode_frame
    monkeypatch.setattr(worker_module, "encode_frame", lambda message: b"\xff\xff\xff\xff" + write(message))
    assert desk.ask(HighlightRequest("x = 1", "python")) == [[None]]
    assert desk.process.worker.started == 2


def test_nonsense_from_the_child_is_no_answer(desk, monkeypatch):
    shouting = [sys.executable, "-c", "import sys; sys.stdout.write('x' * 100, ); sys.stdout.flush(); input()"]
    desk.process.worker._command = shouting
    assert desk.ask(HighlightRequest("x = 1", "python")) == [[None]]


def test_where_no_child_can_be_started_code_is_plain(desk, monkeypatch):
    desk.process.worker._command = ["/no/such/program"]
    assert desk.ask(HighlightRequest("x = 1", "python"), HighlightRequest("x = 2", "python")) == [[None], [None]]
    assert desk.process.worker.started == 1


def test_after_a_while_without_work_the_child_is_let_go(desk, monkeypatch):
    assert worker_module.IDLE_SECONDS == 30
    monkeypatch.setattr(worker_module, "IDLE_SECONDS", 0.1)
    desk.ask(HighlightRequest("x = 1", "python"))
    child = desk.child
    psutil.wait_procs([child], PATIENCE)
    assert desk.process.worker.pid is None
    (steps,) = desk.ask(HighlightRequest("x = 2", "python"))
    assert words_in(steps)


@pytest.mark.parametrize("text", ["x = 1", PYTHON * 20])
def test_the_end_leaves_nothing(desk, qtbot, text):
    steps = []
    desk._errands.append(HighlightJob(HighlightRequest(text, "python"), steps.append))
    desk.process.start_next()
    qtbot.waitUntil(lambda: desk.process.worker.pid is not None)
    child = desk.child
    desk.process.close()
    assert not child.is_running()
    assert steps == []
    desk.process.start_next()
    assert not desk.process.is_busy


def test_it_knows_nothing_and_stands_behind(desk, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    desk.ask(HighlightRequest("x = 1", "python"))
    environment = Path(f"/proc/{desk.child.pid}/environ").read_bytes().decode().split("\0")
    assert {entry.partition("=")[0] for entry in environment if entry} <= {"PATH", "SYSTEMROOT", "LC_CTYPE"}
    assert desk.child.nice() == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 5)
    assert desk.child.rlimit(psutil.RLIMIT_AS)[0] == LIMITS.memory
    loaded = {Path(region.path).name for region in desk.child.memory_maps()}
    assert not [name for name in loaded if "Qt" in name]


def test_it_loads_neither_qt_nor_the_reader_of_markdown():
    code = "import sys, ui.transcript.blocks.code.highlighter_worker; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "ui.transcript.markdown.text_units" in loaded
    assert not {"PySide6", "markdown_it", "ui.transcript.markdown.inline"} & set(loaded)


PARENT = """
import sys
from PySide6.QtCore import QCoreApplication
from ui.transcript.blocks.code.highlighter_protocol import HighlightRequest
from ui.transcript.blocks.code.highlighter import HighlighterProcess, HighlightJob
app = QCoreApplication([])
errands = [HighlightJob(HighlightRequest(sys.argv[1], "scala"), lambda answer: print("said", flush=True))]
colourist = HighlighterProcess(lambda: errands.pop() if errands else None)
colourist.start_next()
while colourist.worker.pid is None:
    app.processEvents()
print(colourist.worker.pid, flush=True)
app.exec()
"""


@pytest.mark.parametrize("text", ["val x = 1", ENDLESS])
def test_it_does_not_outlive_who_started_it(text):
    command = [sys.executable, "-c", PARENT, text]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        child = psutil.Process(int(parent.stdout.readline()))
        if text != ENDLESS:
            assert parent.stdout.readline() == "said\n"
        parent.send_signal(signal.SIGKILL)
    child.wait(PATIENCE)
    assert not child.is_running()
