"""Processes that a command leaves running, and that no parent, session or variable identifies."""

import asyncio
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from desktop_agent.sandbox.backends import Sandbox, no_sandbox
from desktop_agent.sandbox.launcher import read_left_running
from desktop_agent.tools.commands.run_command import run_command
from desktop_agent.tools.tool import RunningCall
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.errors import Sentence, ToolFailed
from tests.desktop_agent.tools.commands.sandboxes import working_sandbox
from tests.frame.patience import PATIENCE
from tests.frame.selection import few

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this")
PYTHON = str(Path(sys.executable).resolve())
AWAY = """
import os
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
os.setsid()
os.closerange(0, 50)
os.execve("/bin/sh", ["sh", "-c", ": > away; exec sleep 43210"], {})
"""
CHAIN = """
import os, time
if os.fork():
    os._exit(0)
os.setsid()
os.closerange(0, 50)
until = time.monotonic() + 30
while time.monotonic() < until:
    if os.fork():
        os._exit(0)
    os.setsid()
    with open("born", "ab") as file:
        file.write(b"x")
    time.sleep(0.005)
"""
UNTIL = f"'{PYTHON}' away.py; until [ -e away ]; do sleep 0.02; done; echo begun"


@pytest.fixture(params=few(["bubblewrap", "Landlock", ""], 1, "test_confined.py tries the others"))
def confinement(request: pytest.FixtureRequest) -> Sandbox:
    return working_sandbox(request.param) if request.param else no_sandbox(Sentence("For a test."))


@pytest.fixture(autouse=True)
def nobody_left() -> Iterator[None]:
    yield
    for process in running():
        process.kill()


async def run_line(workspace: Workspace, confinement: Sandbox, line: str, **more: object) -> str:
    (workspace.folder / "away.py").write_text(AWAY)
    tool = run_command(workspace, confinement=lambda: confinement)
    (part,) = await tool.run(tool.checked({"command": line, **more}), RunningCall("1", lambda _: None))
    return part.text  # type: ignore[union-attr]


async def until_gone() -> None:
    """Wait, as the system ends the processes of a namespace while its outermost process goes on to its own end."""
    async with asyncio.timeout(PATIENCE):
        while running():
            await asyncio.sleep(0.02)


def running() -> list[psutil.Process]:
    return [process for process in psutil.process_iter(["cmdline"]) if (process.info["cmdline"] or [])[1:] == ["43210"]]


async def test_who_forks_twice_and_forgets_everything_ends_too(workspace: Workspace, confinement: Sandbox) -> None:
    output = await run_line(workspace, confinement, UNTIL)
    note = "" if confinement.name else " 1 process that it left running ended with it."
    assert output == f"begun\n[exit code 0.{note}]"
    await until_gone()


@pytest.mark.exhaustive("test_it_ends_too_when_the_command_is_stopped")
async def test_it_ends_too_when_the_command_times_out(workspace: Workspace, confinement: Sandbox) -> None:
    with pytest.raises(ToolFailed, match="begun"):
        await run_line(workspace, confinement, f"{UNTIL}; sleep 43211", timeout_seconds=5)
    await until_gone()


async def test_it_ends_too_when_the_command_is_stopped(workspace: Workspace, confinement: Sandbox) -> None:
    call = asyncio.ensure_future(run_line(workspace, confinement, f"{UNTIL}; (trap '' TERM; sleep 43211); sleep 43211"))
    async with asyncio.timeout(PATIENCE):
        while not running():
            await asyncio.sleep(0.02)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until_gone()


@pytest.mark.exhaustive("test_who_forks_twice_and_forgets_everything_ends_too")
async def test_a_chain_of_new_processes_ends_too(workspace: Workspace, confinement: Sandbox) -> None:
    """Each of a chain forks twice into a session of its own, without an environment, and ends."""
    (workspace.folder / "chain.py").write_text(CHAIN)
    line = f"'{PYTHON}' chain.py; until [ -s born ]; do sleep 0.02; done; echo begun"
    for more, call in (("", {}), ("; sleep 43211", {"timeout_seconds": 5})):
        if call:
            with pytest.raises(ToolFailed, match="begun"):
                await run_line(workspace, confinement, line + more, **call)
        else:
            assert "begun" in await run_line(workspace, confinement, line)
        born = (workspace.folder / "born").read_bytes()
        await asyncio.sleep(0.5)
        assert (workspace.folder / "born").read_bytes() == born
        (workspace.folder / "born").unlink()


async def test_a_process_started_on_the_signal_to_end_ends_too(workspace: Workspace, confinement: Sandbox) -> None:
    """Its session is its own and its environment empty, so only the process that stays knows of it."""
    trap = "trap 'setsid env -i /bin/sleep 43210 </dev/null >/dev/null 2>&1 & : >asked' TERM"
    call = asyncio.ensure_future(run_line(workspace, confinement, f"{trap}; : >begun; while :; do sleep 0.05; done"))
    async with asyncio.timeout(PATIENCE):
        while not (workspace.folder / "begun").exists():
            await asyncio.sleep(0.02)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (workspace.folder / "asked").exists() or not confinement.is_supervised
    await until_gone()


async def test_without_bounds_who_stays_is_asked_first_and_counted(workspace: Workspace) -> None:
    line = (
        "(trap 'echo asked >asked; exit' TERM; : >ready; while :; do sleep 0.02; done) & "
        "(trap '' TERM; : >deaf; sleep 43210) & until [ -e ready ] && [ -e deaf ]; do sleep 0.02; done"
    )
    output = await run_line(workspace, no_sandbox(Sentence("For a test.")), line)
    assert (workspace.folder / "asked").read_text() == "asked\n"
    # The second shell may have become what it waits for, and what the first one waits for may just have ended.
    assert re.search(r"\[exit code 0\. [234] processes that it left running ended with it\.\]", output)
    await until_gone()


OF_PYTHON = 1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)


async def test_a_command_ignores_no_signal(workspace: Workspace, confinement: Sandbox) -> None:
    """Else a program that writes to a closed pipe reports an error, and one that writes without end goes on."""
    output = await run_line(workspace, confinement, "yes | head -n 1; grep SigIgn /proc/self/status")
    first, ignored, end = output.split("\n")
    assert (first, end) == ("y", "[exit code 0.]")
    # Those that Python ignores; the program that started the tests may ignore others.
    assert not int(ignored.split()[1], 16) & OF_PYTHON


async def test_no_link_leads_the_count_elsewhere(workspace: Workspace) -> None:
    other = workspace.folder / "other"
    other.write_text("as it was")
    line = f'ln -s {other} "$TMPDIR/.left-running"; sleep 43210 >/dev/null 2>&1 & sleep 0.2'
    assert "exit code 0." in await run_line(workspace, no_sandbox(Sentence("For a test.")), line)
    assert other.read_text() == "as it was"


def test_a_count_that_a_program_wrote_is_a_number_or_none(tmp_path: Path) -> None:
    for text, count in (("12", 12), ("x", 0), ("", 0)):
        (tmp_path / "count").write_text(text)
        assert read_left_running(tmp_path / "count") == count
    assert read_left_running(tmp_path / "none") == 0


@pytest.mark.parametrize("name", ["Landlock", ""])
async def test_the_end_of_the_program_is_told_as_it_was(workspace: Workspace, name: str) -> None:
    confinement = working_sandbox(name) if name else no_sandbox(Sentence("For a test."))
    for line, end in (
        ("exit 7", "exit code 7."),
        ("kill -9 $$", "ended by SIGKILL."),
        ("kill -TERM $$", "ended by SIGTERM."),
        ("trap '' TERM; kill 0; exit 3", "exit code 3."),
        ("trap '' HUP; kill -HUP 0; exit 3", "exit code 3."),
    ):
        assert await run_line(workspace, confinement, line) == f"[{end}]"
