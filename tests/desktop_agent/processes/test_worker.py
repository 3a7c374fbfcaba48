"""The worker process: what it answers, what it may use, and how it ends."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import IO

import psutil
import pytest

from desktop_agent.processes import worker as module
from desktop_agent.processes.worker import Worker, WorkerFailed, WorkerFailure
from desktop_agent.processes.worker_process import WorkerLimits, _AuditHook, encode_frame, read_frame
from tests.desktop_agent.processes import worker_tasks
from tests.frame.children import Children
from tests.frame.patience import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits and signals are those of POSIX")

LIMITS = WorkerLimits(memory=500_000_000, seconds=20.0)


def worker_of(task: str, limits: WorkerLimits = LIMITS, *, timeout: float = PATIENCE, attempts: int = 1) -> Worker:
    task = f"{worker_tasks.__name__}:{task}"
    return Worker(task, list[int | str | list[int] | None], limits, timeout=timeout, attempts=attempts)


@pytest.fixture
def made() -> Iterator[list[Worker]]:
    workers: list[Worker] = []
    yield workers
    for worker in workers:
        worker.close()


def test_one_process_answers_all_calls_and_starts_with_the_first(made: list[Worker], new_children: Children) -> None:
    made.append(worker := worker_of("count"))
    assert (worker.pid, new_children()) == (None, [])
    assert list(worker.call(3)) == [0, 1, 2]
    first = worker.pid
    assert list(worker.call(0)) == []
    assert (worker.pid, worker.started, len(new_children())) == (first, 1, 1)


def test_it_can_be_started_ahead(made: list[Worker]) -> None:
    made.append(worker := worker_of("echo"))
    worker.start()
    started = worker.pid
    worker.start()
    assert worker.ask(1) == 1
    assert started is not None
    assert (worker.pid, worker.started) == (started, 1)
    worker.close()
    worker.start()
    assert worker.pid is None
    Worker("a:b", list[int], LIMITS, timeout=1, command=["/no/such/program"]).start()


def test_a_function_that_returns_gives_one_answer(made: list[Worker]) -> None:
    made.append(worker := worker_of("echo"))
    assert worker.ask("\ud800😀") == "\ud800😀"
    assert worker.ask(None) is None
    made.append(counting := worker_of("count"))
    with pytest.raises(WorkerFailed):
        counting.ask(2)


def failure_of(worker: Worker, *arguments: object) -> WorkerFailed:
    with pytest.raises(WorkerFailed) as caught:
        list(worker.call(*arguments))
    return caught.value


def test_what_crashes_is_replaced_for_the_next_call_and_as_often_as_allowed(made: list[Worker]) -> None:
    made.append(worker := worker_of("end_process"))
    assert (failure_of(worker, 3).failure, worker.started) == (WorkerFailure.CRASHED, 1)
    assert failure_of(worker, 3).code == 3
    made.append(stubborn := worker_of("end_process", attempts=3))
    assert (failure_of(stubborn, 3).failure, stubborn.started) == (WorkerFailure.CRASHED, 3)
    made.append(raising := worker_of("echo"))
    assert failure_of(raising, 1, 2).failure is WorkerFailure.CRASHED
    assert list(raising.call(1)) == [1]


def test_what_was_killed_between_two_calls_is_replaced(made: list[Worker]) -> None:
    made.append(worker := worker_of("echo"))
    worker.ask(1)
    assert worker.pid
    os.kill(worker.pid, signal.SIGKILL)
    while psutil.Process(worker.pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    assert worker.ask(2) == 2
    assert worker.started == 2


def test_who_uses_up_the_processor_is_ended_and_said_to_be_slow(made: list[Worker]) -> None:
    made.append(worker := worker_of("compute_for_ever", replace(LIMITS, seconds=0.2), attempts=2))
    error = failure_of(worker)
    assert (error.failure, error.seconds, worker.started) == (WorkerFailure.SLOW, 0.2, 1)
    made.append(whole := worker_of("count_for_ever", replace(LIMITS, seconds=0.5, call_seconds=1.0)))
    assert failure_of(whole).failure is WorkerFailure.SLOW


def test_who_sleeps_is_ended_when_patience_is(made: list[Worker], new_children: Children) -> None:
    made.append(worker := worker_of("sleep", timeout=0.5))
    error = failure_of(worker, PATIENCE)
    assert (error.failure, error.seconds) == (WorkerFailure.SLOW, 0.5)
    assert not new_children()


def test_patience_begins_anew_with_each_answer(made: list[Worker]) -> None:
    made.append(worker := worker_of("count_slowly", timeout=3.0))
    assert list(worker.call(20, 0.2)) == list(range(20))


def test_all_answers_together_have_so_much_time(made: list[Worker], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CALL_FACTOR", 2)
    made.append(worker := worker_of("count_slowly", timeout=1.0))
    assert failure_of(worker, 1_000, 0.1).failure is WorkerFailure.SLOW


def test_all_answers_together_have_so_many_bytes(made: list[Worker]) -> None:
    made.append(worker := worker_of("repeat"))
    assert len(list(worker.call(1_000_000, 49))) == 49
    assert failure_of(worker, 1_000_000, 51).failure is WorkerFailure.CRASHED


@pytest.mark.parametrize("value", ["ж" * 1000, "\ud800 alone", "\0\u2028 and 🙂"])
def test_any_text_goes_there_and_back_in_little_room(value: str) -> None:
    frame = encode_frame([value])
    assert json.loads(read_frame(BytesIO(frame))) == [value]
    assert len(frame) < 2 * len(value) + 30


def test_memory_is_bounded(made: list[Worker]) -> None:
    made.append(worker := worker_of("use_memory"))
    assert list(worker.call(1_000_000)) == [1_000_000]
    assert failure_of(worker, 600_000_000).failure is WorkerFailure.CRASHED


@pytest.mark.parametrize(
    "data", [b"nonsense", b"\xff\xff\xff\xff", b"\0\0\0\x02{}", b"\0\0\0\x05[1.5]", b"\0\0\0\x01["]
)
def test_what_is_no_answer_is_a_crash(made: list[Worker], data: bytes) -> None:
    made.append(worker := worker_of("write"))
    assert failure_of(worker, list(data)).failure is WorkerFailure.CRASHED


def test_who_stops_listening_ends_the_process(made: list[Worker], new_children: Children) -> None:
    made.append(worker := worker_of("count_for_ever"))
    answers = worker.call()
    assert next(answers) == 0
    answers.close()
    assert not new_children()


def test_after_a_while_without_a_call_the_process_ends(made: list[Worker], monkeypatch: pytest.MonkeyPatch) -> None:
    assert module.IDLE_SECONDS == 30
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.1)
    made.append(worker := worker_of("echo"))
    worker.ask(1)
    while worker.pid is not None:
        time.sleep(0.01)
    assert worker.ask(2) == 2


def test_close_ends_a_call_and_all_that_follow(made: list[Worker], new_children: Children) -> None:
    made.append(worker := worker_of("sleep"))
    failures: list[WorkerFailed] = []
    thread = threading.Thread(target=lambda: failures.append(failure_of(worker, PATIENCE)))
    thread.start()
    while not worker.pid:
        time.sleep(0.01)
    worker.close()
    thread.join()
    failures.append(failure_of(worker, 0))
    assert [error.failure for error in failures] == [WorkerFailure.STOPPED] * 2
    assert not new_children()


def test_close_after_the_last_answer_was_read_leaves_no_process(
    made: list[Worker], new_children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.append(worker := worker_of("echo"))
    frames: list[bytes] = []

    def read_and_close(stream: IO[bytes], limit: int) -> bytes:
        frames.append(read_frame(stream, limit))
        if len(frames) == len(["the answer", "the end of the answers"]):
            worker.close()
        return frames[-1]

    monkeypatch.setattr(module, "read_frame", read_and_close)
    assert worker.ask(1) == 1
    assert worker.pid is None
    assert not new_children()


FORKING = "import os, time; os.fork(); time.sleep(5)"


@pytest.mark.parametrize("size", [1, 10_000_000])
def test_what_it_forked_holds_up_nobody(size: int) -> None:
    command = [sys.executable, "-c", FORKING]
    worker = Worker("tests:x", list[int], LIMITS, timeout=0.5, command=command)
    start = time.monotonic()
    assert failure_of(worker, "x" * size).failure is WorkerFailure.SLOW
    thread = threading.Thread(target=lambda: failure_of(worker, 0))
    thread.start()
    while not worker.pid:
        time.sleep(0.01)
    worker.close()
    thread.join()
    assert time.monotonic() - start < 4


LEAVING = """
import json, sys
from desktop_agent.processes.worker_process import encode_frame, read_frame
while True:
    call, (value,) = json.loads(read_frame(sys.stdin.buffer))
    for answers in ([value], [], ["left over"], []):
        sys.stdout.buffer.write(encode_frame((call, answers)))
    sys.stdout.buffer.flush()
"""


def test_what_an_earlier_call_left_is_no_answer(made: list[Worker], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "minimal_environment", lambda: {"PYTHONPATH": str(Path(__file__).parents[3])})
    command = [sys.executable, "-c", LEAVING]
    made.append(worker := Worker("tests:x", list[str], LIMITS, timeout=PATIENCE, attempts=2, command=command))
    assert [worker.ask("first"), worker.ask("second"), worker.started] == ["first", "second", 2]


async def test_a_cancel_is_passed_on_when_the_process_is_gone(made: list[Worker], new_children: Children) -> None:
    made.append(worker := worker_of("sleep"))
    task = asyncio.create_task(worker.run(lambda: worker.ask(PATIENCE)))
    while not worker.pid:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not new_children()


async def test_run_closes(made: list[Worker], new_children: Children) -> None:
    made.append(worker := worker_of("echo"))
    assert await worker.run(lambda: worker.ask(1)) == 1
    assert not new_children()


def test_where_no_process_can_be_started_it_is_said() -> None:
    worker = Worker("a:b", list[int], LIMITS, timeout=1, attempts=3, command=["/no/such/program"])
    assert (failure_of(worker).failure, worker.started) == (WorkerFailure.NOT_STARTED, 1)


READING = ["read", "list_folder"]
DEEDS = ["write_file", "connect", "start_program", "send_signal", "change_mode"]


@pytest.mark.parametrize("deed", [*READING, *DEEDS])
@pytest.mark.parametrize("reads_files", [True, False])
def test_nobody_writes_connects_or_starts_and_only_some_may_read(
    made: list[Worker], tmp_path: Path, deed: str, reads_files: bool
) -> None:
    (tmp_path / "there").write_text("kept")
    made.append(worker := worker_of("attempt", replace(LIMITS, reads_files=reads_files)))
    answer = worker.ask(deed, str(tmp_path))
    assert answer == ("done" if reads_files and deed in READING else "refused")
    assert [file.name for file in tmp_path.iterdir()] == ["there"]
    assert (tmp_path / "there").read_text() == "kept"


@pytest.mark.skipif(sys.platform != "linux", reason="only there the kernel refuses it")
def test_libraries_are_called_only_where_that_is_the_task() -> None:
    _AuditHook(reads_files=False, calls_libraries=True)("ctypes.call_function", ())
    for event, calls_libraries in (("ctypes.call_function", False), ("ctypes.dlopen", True)):
        with pytest.raises(PermissionError):
            _AuditHook(reads_files=False, calls_libraries=calls_libraries)(event, ())


@pytest.mark.parametrize("reads_files", [True, False])
def test_the_kernel_lets_nobody_fork(made: list[Worker], reads_files: bool, new_children: Children) -> None:
    made.append(worker := worker_of("fork", replace(LIMITS, reads_files=reads_files)))
    assert (worker.ask(), len(new_children())) == (-1, 1)


def test_it_knows_nothing_of_the_environment_and_stands_behind(
    made: list[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    made.append(worker := worker_of("echo", replace(LIMITS, niceness=5)))
    worker.ask(1)
    process = psutil.Process(worker.pid)
    assert set(process.environ()) <= {"PATH", "SYSTEMROOT", "LC_CTYPE"}
    assert process.nice() == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 5)
    assert process.rlimit(psutil.RLIMIT_AS) == (LIMITS.memory, LIMITS.memory)


PARENT = f"""
import threading
import time
from dataclasses import replace
from io import BytesIO
from tests.desktop_agent.processes.test_worker import LIMITS, worker_of
worker = worker_of("sleep", replace(LIMITS, seconds=0.1))
threading.Thread(target=lambda: list(worker.call({PATIENCE})), daemon=True).start()
while not worker.pid:
    time.sleep(0.01)
print(worker.pid, flush=True)
input()
"""


def test_it_does_not_outlive_who_started_it() -> None:
    # It sleeps, and notices only when its own clock ends it; idle it would see the end of its input.
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout
        child = psutil.Process(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)
    child.wait(PATIENCE)


def test_it_loads_no_large_library() -> None:
    code = "import sys; from desktop_agent.processes import worker_process; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert {"asyncio", "pydantic", "psutil", "PySide6"}.isdisjoint(run.stdout.split())
