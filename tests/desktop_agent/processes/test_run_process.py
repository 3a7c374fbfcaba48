"""Real programs, and trees of them that do not want to end."""

import asyncio
import contextlib
import os
import secrets
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from desktop_agent.processes.run_process import ProcessResult, Termination, run_process
from desktop_agent.types.errors import ToolFailed, WrongUse
from tests.frame.patience import PATIENCE

PYTHON = sys.executable

# Each tells the id of the process that must not survive, and waits. If it does survive, then not for long.
STAY = "import os, signal, sys, time\ndef stay():\n    print(os.getpid(), flush=True)\n    time.sleep(100)\n"
DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
FORK = "if os.fork(): time.sleep(60)\n"
ORPHAN = "if os.fork(): os._exit(0)\n"
TREES = {
    "alone": STAY + "stay()",
    "deaf to being asked": STAY + DEAF + "stay()",
    "a deaf grandchild": STAY + DEAF + FORK + FORK + "stay()",
    "an own session": STAY + FORK + "os.setsid()\nstay()",
    "an own group": STAY + FORK + DEAF + "os.setpgid(0, 0)\nstay()",
    "a double fork": STAY + FORK + ORPHAN + "stay()",
    "a daemon": STAY + FORK + ORPHAN + "os.setsid()\n" + ORPHAN + DEAF + "stay()",
    "an own session without the environment": STAY
    + DEAF
    + FORK
    + "os.setsid()\nos.execve(sys.executable, [sys.executable, '-c', "
    + repr(STAY + DEAF + "stay()")
    + "], {})",
    "an orphan without the environment": STAY
    + FORK
    + ORPHAN
    + "os.execve(sys.executable, [sys.executable, '-c', "
    + repr(STAY + DEAF + "stay()")
    + "], {})",
    "stopped": STAY + "print(os.getpid(), flush=True)\nos.kill(os.getpid(), signal.SIGSTOP)",
}


class Heard:
    """What a program says, and a wait for its first line."""

    def __init__(self) -> None:
        self.text = ""
        self._line = asyncio.Event()

    def __call__(self, text: str) -> None:
        self.text += text
        if "\n" in self.text:
            self._line.set()

    async def pid(self) -> int:
        await asyncio.wait_for(self._line.wait(), PATIENCE)
        return int(self.text.split("\n")[0])


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def with_variable(name: str) -> list[int]:
    """Who has it in its environment."""
    found: list[int] = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if name in process.environ():
                found.append(process.pid)
    return found


async def run(tmp_path: Path, *argv: str, **options: object) -> ProcessResult:
    return await run_process(argv, cwd=tmp_path, **options)  # type: ignore[arg-type]


async def cancelled(task: "asyncio.Task[ProcessResult]") -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_both_streams_and_the_exit_code_come_back(tmp_path: Path) -> None:
    end = await run(tmp_path, "sh", "-c", "pwd; echo wrong >&2; exit 7")
    assert end == ProcessResult(7, f"{tmp_path}\nwrong\n", truncated=False)
    assert (await run(tmp_path, "sh", "-c", "kill -9 $$")).exit_code == -9


async def test_output_is_told_as_it_comes(tmp_path: Path) -> None:
    heard = Heard()
    (tmp_path / "gate").touch()
    task = asyncio.ensure_future(
        run(tmp_path, "sh", "-c", "echo 1; while [ -e gate ]; do sleep 0.01; done; echo 2", on_output=heard)
    )
    assert await heard.pid() == 1
    assert not task.done()
    (tmp_path / "gate").unlink()
    assert (await task).output == heard.text == "1\n2\n"


async def test_bytes_that_are_not_utf_8_do_no_harm(tmp_path: Path) -> None:
    end = await run(tmp_path, PYTHON, "-c", "import os; os.write(1, bytes(range(256)))")
    assert end.output.startswith("\0\1")
    assert end.output.endswith("��")


async def test_input_is_given_whole_and_nobody_need_read_it(tmp_path: Path) -> None:
    assert (await run(tmp_path, "cat", stdin="Grüße")).output == "Grüße"
    assert (await run(tmp_path, "wc", "-c", stdin=b"x" * 3_000_000)).output.strip() == "3000000"
    assert (await run(tmp_path, "true", stdin=b"x" * 3_000_000)).exit_code == 0
    assert (await run(tmp_path, "cat")).output == ""


async def test_more_output_than_the_limit_keeps_beginning_and_end(tmp_path: Path) -> None:
    heard = Heard()
    end = await run(tmp_path, "seq", "1", "300000", output_limit=1000, on_output=heard)
    assert end.truncated
    assert end.output.startswith("1\n2\n3\n")
    assert end.output.endswith("299999\n300000\n")
    assert len(end.output) < 1100
    assert len(heard.text) == 1000


async def test_endless_output_can_be_cancelled_and_the_loop_goes_on_meanwhile(tmp_path: Path) -> None:
    heard = Heard()
    task = asyncio.ensure_future(run(tmp_path, "yes", "1", on_output=heard, output_limit=100))
    await heard.pid()
    for _ in range(20):
        await asyncio.sleep(0.01)
    await cancelled(task)
    assert len(heard.text) == 100


async def test_the_environment_is_the_given_one_and_keeps_the_marks_of_those_above(tmp_path: Path) -> None:
    outer = "DESKTOP_AGENT_CALL_outer"
    lines = (await run(tmp_path, "/usr/bin/env", env={"A": "1", outer: "1"})).output.split()
    assert {"A=1", f"{outer}=1"} < set(lines)
    assert sum(line.startswith("DESKTOP_AGENT_CALL_") for line in lines) == len(lines) - 1 == 2


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["/nothing/here"], "There is no program “/nothing/here”"),
        (["."], "could not be started: Permission denied"),
        (["echo", "a\0b"], "arguments cannot be passed on"),
        (["echo", "\ud800"], "arguments cannot be passed on"),
        (["echo", "x" * 5_000_000], "could not be started: Argument list too long"),
    ],
)
async def test_what_cannot_be_started_is_said_in_words(tmp_path: Path, argv: list[str], why: str) -> None:
    with pytest.raises(ToolFailed, match=why):
        await run(tmp_path, *argv)


async def test_a_folder_that_is_not_there_and_no_program_at_all(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="There is no folder"):
        await run(tmp_path / "nothing", "echo")
    with pytest.raises(WrongUse):
        await run(tmp_path)


async def test_what_the_listener_raises_ends_the_program(tmp_path: Path) -> None:
    name = f"VAR_{secrets.token_hex(8)}"

    def listen(_text: str) -> None:
        raise LookupError("full")

    with pytest.raises(LookupError, match="full"):
        await run(tmp_path, "sh", "-c", "echo 1; sleep 100", on_output=listen, env={**os.environ, name: "1"})
    assert with_variable(name) == []


async def test_what_was_left_in_the_background_ends_with_the_program(tmp_path: Path) -> None:
    heard = Heard()
    end = await run(tmp_path, "sh", "-c", "sleep 100 & echo $!; echo done", on_output=heard)
    assert (end.exit_code, end.left_running) == (0, 1)
    assert end.output.endswith("done\n")
    assert not lives(await heard.pid())


async def test_who_gave_up_the_environment_is_still_of_the_session(tmp_path: Path) -> None:
    end = await run(tmp_path, "sh", "-c", "env -i sleep 100 & echo $!")
    assert end.left_running == 1
    assert not lives(int(end.output))


@pytest.mark.parametrize("kind", TREES)
async def test_a_cancel_leaves_nothing(tmp_path: Path, kind: str) -> None:
    heard, name = Heard(), f"VAR_{secrets.token_hex(8)}"
    environment = {**os.environ, name: "1"}
    task = asyncio.ensure_future(
        run(tmp_path, PYTHON, "-c", TREES[kind], on_output=heard, env=environment, ending=Termination(grace=0.2))
    )
    pid = await heard.pid()
    assert lives(pid)
    await cancelled(task)
    assert not lives(pid)
    assert with_variable(name) == []


async def test_what_is_left_when_the_program_ends_is_ended_however_far_away_it_is(tmp_path: Path) -> None:
    heard = Heard()
    code = STAY + DEAF + "if os.fork():\n    time.sleep(0.3)\n    os._exit(4)\n" + ORPHAN + "os.setsid()\nstay()"
    end = await run(tmp_path, PYTHON, "-c", code, on_output=heard, ending=Termination(grace=0.1))
    assert end.exit_code == 4
    assert not lives(await heard.pid())


async def test_who_runs_away_by_being_born_again_and_again_is_caught(tmp_path: Path) -> None:
    heard, name = Heard(), f"VAR_{secrets.token_hex(8)}"
    code = "import os, time\nif os.fork(): time.sleep(100)\nprint(1, flush=True)\n"
    code += "for _ in range(20_000):\n    if os.fork(): os._exit(0)\n    time.sleep(0.002)\n"
    task = asyncio.ensure_future(
        run(tmp_path, PYTHON, "-c", code, on_output=heard, env={**os.environ, name: "1"}, ending=Termination(grace=0.1))
    )
    await heard.pid()
    await cancelled(task)
    assert with_variable(name) == []


async def test_a_program_that_heeds_being_asked_may_tidy_up(tmp_path: Path) -> None:
    heard = Heard()
    tidy = "def tidy(*_):\n    open('tidied', 'w').close()\n    sys.exit(0)\nsignal.signal(signal.SIGTERM, tidy)\n"
    task = asyncio.ensure_future(
        run(tmp_path, PYTHON, "-c", STAY + tidy + "stay()", on_output=heard, ending=Termination(grace=30.0))
    )
    await heard.pid()
    await cancelled(task)
    assert (tmp_path / "tidied").exists()


@pytest.mark.parametrize("steps", range(6))
async def test_a_cancel_while_it_starts_leaves_nothing(tmp_path: Path, steps: int) -> None:
    name = f"VAR_{secrets.token_hex(8)}"
    task = asyncio.ensure_future(run(tmp_path, "sleep", "100", env={**os.environ, name: "1"}))
    for _ in range(steps):
        await asyncio.sleep(0)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    await cancelled(task)
    assert with_variable(name) == []


async def test_the_systems_processes_are_never_looked_through_on_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[threading.Thread] = []

    def watched(look: Callable[..., object]) -> Callable[..., object]:
        def watching(*arguments: object, **options: object) -> object:
            looked.append(threading.current_thread())
            return look(*arguments, **options)

        return watching

    for where, name in ((psutil, "pids"), (psutil.Process, "children"), (psutil.Process, "environ")):
        monkeypatch.setattr(where, name, watched(getattr(where, name)))
    await run(tmp_path, "sh", "-c", "sleep 100 &")
    assert looked
    assert threading.main_thread() not in looked
