"""The job object of Windows, with functions that write down their calls: the real ones are only there."""

import asyncio
import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from desktop_agent.processes import run_process as module
from desktop_agent.processes.job_object import (
    KILL_ON_JOB_CLOSE,
    BasicAccounting,
    ExtendedLimits,
    JobObject,
    load_kernel32,
)
from desktop_agent.processes.run_process import run_process
from desktop_agent.types.errors import ToolFailed
from tests.frame.children import Children
from tests.frame.patience import PATIENCE

JOB, PROCESS = 11, 22
FAMILY = "import subprocess, sys, time\nchild = subprocess.Popen(['sleep', '500'])\nprint('begun', flush=True)\n"


class Kernel32:
    """Writes down its calls. Ending the job ends what was assigned to it, with all below it."""

    def __init__(self, failing: str = "") -> None:
        self.calls: list[str] = []
        self.limits = 0
        self._failing = failing
        self._opened = 0
        self._session = 0

    def __getattr__(self, name: str) -> Callable[..., int]:
        def function(*arguments: Any) -> int:
            self.calls.append(name if name != "CloseHandle" else f"CloseHandle {arguments[0]}")
            if name == self._failing:
                return 0
            return int(getattr(type(self), f"do_{name}", lambda *_: 1)(self, *arguments))

        return function

    def do_CreateJobObjectW(self, *_: Any) -> int:  # noqa: N802 - as Windows has it
        return JOB

    def do_SetInformationJobObject(self, _job: int, _kind: int, limits: Any, size: int) -> int:  # noqa: N802
        assert size == ctypes.sizeof(ExtendedLimits)
        self.limits = limits._obj.basic.flags
        return 1

    def do_OpenProcess(self, _rights: int, _inherit: int, pid: int) -> int:  # noqa: N802
        self._opened = pid
        return PROCESS

    def do_AssignProcessToJobObject(self, *handles: int) -> int:  # noqa: N802
        assert handles == (JOB, PROCESS)
        self._session = self._opened
        return 1

    def do_QueryInformationJobObject(self, _job: int, _kind: int, accounting: Any, *_: Any) -> int:  # noqa: N802
        accounting._obj.active_processes = len(self._living())
        return 1

    def do_TerminateJobObject(self, *_: Any) -> int:  # noqa: N802
        for process in self._living():
            process.kill()
        return 1

    def _living(self) -> list[psutil.Process]:
        # The program leads a session, and stands for the job here.
        return [each for each in psutil.process_iter() if self._session and _is_in(self._session, each)]


def _is_in(session: int, process: psutil.Process) -> bool:
    try:
        return os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE
    except (OSError, psutil.Error):
        return False


@pytest.fixture
def in_job(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Kernel32]:
    def use(failing: str = "") -> Kernel32:
        kernel32 = Kernel32(failing)

        def open_job() -> JobObject:
            job = JobObject(kernel32)
            # On Linux nothing starts suspended.
            job.creation_flags = 0
            return job

        monkeypatch.setattr(module, "open_job", open_job)
        return kernel32

    return use


def test_the_records_are_as_large_as_those_of_windows() -> None:
    assert (ctypes.sizeof(ExtendedLimits), ctypes.sizeof(BasicAccounting)) == (144, 48)


def test_a_program_starts_suspended_and_without_a_window() -> None:
    assert JobObject(Kernel32()).creation_flags == 0x4 | 0x08000000


@pytest.mark.skipif(sys.platform == "win32", reason="there it is")
def test_there_is_none_elsewhere() -> None:
    assert module.open_job() is None
    with pytest.raises(OSError, match="Windows"):
        load_kernel32()


async def test_a_program_is_in_the_job_before_it_runs_and_the_job_is_closed_last(
    in_job: Callable[..., Kernel32], tmp_path: Path
) -> None:
    kernel32 = in_job()
    finished = await run_process([sys.executable, "-c", "print('ran')"], cwd=tmp_path)
    assert (finished.exit_code, finished.output) == (0, "ran\n")
    assert kernel32.limits == KILL_ON_JOB_CLOSE
    assert kernel32.calls[:5] == [
        "CreateJobObjectW",
        "SetInformationJobObject",
        "OpenProcess",
        "AssignProcessToJobObject",
        f"CloseHandle {PROCESS}",
    ]
    assert kernel32.calls[-1] == f"CloseHandle {JOB}"
    assert kernel32.calls.count("TerminateJobObject") == 1


async def test_what_it_leaves_running_ends_with_it_and_is_counted(
    in_job: Callable[..., Kernel32], tmp_path: Path, new_children: Children
) -> None:
    in_job()
    finished = await run_process([sys.executable, "-c", FAMILY], cwd=tmp_path)
    assert (finished.exit_code, finished.left_running) == (0, 1)
    assert not new_children()


async def test_stop_ends_all_at_once(in_job: Callable[..., Kernel32], tmp_path: Path, new_children: Children) -> None:
    kernel32, heard = in_job(), asyncio.Event()
    running = asyncio.ensure_future(
        run_process([sys.executable, "-c", FAMILY + "child.wait()"], cwd=tmp_path, on_output=lambda _: heard.set())
    )
    async with asyncio.timeout(PATIENCE):
        await heard.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert "TerminateJobObject" in kernel32.calls
    assert kernel32.calls[-1] == f"CloseHandle {JOB}"
    assert not new_children()


@pytest.mark.parametrize("failing", ["OpenProcess", "AssignProcessToJobObject"])
async def test_what_cannot_be_held_is_killed_before_it_runs(
    in_job: Callable[..., Kernel32], tmp_path: Path, failing: str, new_children: Children
) -> None:
    kernel32 = in_job(failing)
    with pytest.raises(ToolFailed, match=failing):
        await run_process(["sleep", "500"], cwd=tmp_path)
    assert kernel32.calls[-1] == f"CloseHandle {JOB}"
    assert not new_children()


def test_a_program_that_has_ended_is_no_fault_of_its_own() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    JobObject(Kernel32()).adopt(ended.pid)
    with pytest.raises(ToolFailed, match="AssignProcessToJobObject"):
        JobObject(Kernel32("AssignProcessToJobObject")).adopt(ended.pid)


@pytest.mark.parametrize("failing", ["CreateJobObjectW", "SetInformationJobObject"])
async def test_without_a_job_nothing_starts(
    in_job: Callable[..., Kernel32], tmp_path: Path, failing: str, new_children: Children
) -> None:
    kernel32 = in_job(failing)
    with pytest.raises(ToolFailed, match=failing):
        await run_process(["sleep", "500"], cwd=tmp_path)
    assert "OpenProcess" not in kernel32.calls
    assert not new_children()
