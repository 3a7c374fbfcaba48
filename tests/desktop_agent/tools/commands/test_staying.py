"""What a command leaves running in the ways that no parent, session or variable gives away."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from desktop_agent.tools.commands.confinement import Confinement
from desktop_agent.tools.commands.run_command import run_command
from desktop_agent.tools.tool import RunningCall
from desktop_agent.tools.workspace import Workspace
from desktop_agent.vocabulary.errors import ToolFailed
from tests.desktop_agent.tools.commands.ways import way

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
UNTIL = f"'{PYTHON}' away.py; until [ -e away ]; do sleep 0.02; done; echo begun"


@pytest.fixture(params=["bubblewrap", "Landlock"])
def confinement(request: pytest.FixtureRequest) -> Confinement:
    return way(request.param)


@pytest.fixture(autouse=True)
def nobody_left() -> Iterator[None]:
    yield
    for each in running():
        each.kill()


async def said_by(workspace: Workspace, confinement: Confinement, line: str, **more: object) -> str:
    (workspace.folder / "away.py").write_text(AWAY)
    tool = run_command(workspace, confinement=lambda: confinement)
    (part,) = await tool.run(tool.checked({"command": line, **more}), RunningCall("1", lambda _: None))
    return part.text  # type: ignore[union-attr]


def running() -> list[psutil.Process]:
    return [each for each in psutil.process_iter(["cmdline"]) if each.info["cmdline"] == ["sleep", "43210"]]


async def test_who_forks_twice_and_forgets_everything_ends_too(workspace: Workspace, confinement: Confinement) -> None:
    assert await said_by(workspace, confinement, UNTIL) == "begun\n[exit code 0.]"
    assert running() == []


async def test_so_it_does_when_the_command_is_broken_off(workspace: Workspace, confinement: Confinement) -> None:
    with pytest.raises(ToolFailed, match="begun"):
        await said_by(workspace, confinement, f"{UNTIL}; sleep 43211", timeout_seconds=3)
    assert running() == []


async def test_so_it_does_when_the_command_is_stopped(workspace: Workspace, confinement: Confinement) -> None:
    call = asyncio.ensure_future(said_by(workspace, confinement, f"{UNTIL}; (trap '' TERM; sleep 43211); sleep 43211"))
    async with asyncio.timeout(30):
        while not running():
            await asyncio.sleep(0.02)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert running() == []


async def test_the_end_of_the_program_is_told_as_it_was(workspace: Workspace) -> None:
    confinement = way("Landlock")
    for line, end in (
        ("exit 7", "exit code 7."),
        ("kill -9 $$", "ended by SIGKILL."),
        ("kill -TERM $$", "ended by SIGTERM."),
        ("trap '' TERM; kill 0; exit 3", "exit code 3."),
        ("trap '' HUP; kill -HUP 0; exit 3", "exit code 3."),
    ):
        assert await said_by(workspace, confinement, line) == f"[{end}]"
