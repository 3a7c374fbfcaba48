"""The guard process around a server program: servers do not notice it and cannot escape it."""

import asyncio
import contextlib
import json
import os
import shlex
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from desktop_agent.engine.mcp_tools import load_tool_offer
from desktop_agent.mcp.diagnostics import ServerLog
from desktop_agent.mcp.stdio import ServerCommand, stdio_streams
from desktop_agent.sandbox.backends import supervised_command_from_socket
from tests.desktop_agent.tools.commands.test_staying import AWAY, nobody_left, running
from tests.fakes.mcp_client import own_server, program, until
from tests.frame.children import Children
from tests.frame.patience import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this")
__all__ = ["nobody_left"]


def command(line: str, folder: Path, **environment: str) -> ServerCommand:
    return ServerCommand(("sh", "-c", line), folder, {"PATH": "/usr/bin:/bin", **environment})


@pytest.mark.parametrize("ends", [False, True])
async def test_who_forks_twice_and_forgets_everything_ends_with_the_server(tmp_path: Path, ends: bool) -> None:
    """Whether the client closes the server, or the server ends by itself."""
    (tmp_path / "away.py").write_text(AWAY)
    begin = f"'{sys.executable}' -I away.py; until [ -e away ]; do sleep 0.02; done"
    if ends:
        async with stdio_streams(command(f"{begin}; exit 0", tmp_path), ServerLog()):
            await until((tmp_path / "away").exists)
            await until(lambda: not running())
        return
    async with program(["sh", "-c", f"{begin}; exec {shlex.join(own_server())}"], tmp_path) as live:
        assert (await load_tool_offer(live)).tools
        assert len(running()) == 1
    assert running() == []


async def test_the_closing_of_its_input_reaches_it_and_its_last_words_are_kept(tmp_path: Path) -> None:
    log = ServerLog()
    async with stdio_streams(command("cat >/dev/null; echo bye >&2; : >over; exit 7", tmp_path), log):
        pass
    assert (tmp_path / "over").exists()
    assert (log.last_line, log.exit_code) == ("bye", 7)


async def test_the_end_of_its_output_is_seen_while_it_goes_on(tmp_path: Path) -> None:
    async with stdio_streams(command(": >begun; exec >&-; exec sleep 60", tmp_path), ServerLog()) as (incoming, _):
        async with asyncio.timeout(PATIENCE):
            assert [message async for message in incoming] == []
        assert (tmp_path / "begun").exists()


STARTS_AND_WAITS = """
import asyncio, sys
from pathlib import Path
from desktop_agent.mcp.diagnostics import ServerLog
from desktop_agent.mcp.stdio import ServerCommand, stdio_streams

async def main():
    line = "trap '' TERM; echo $$ >written; mv written begun; while :; do sleep 60; done"
    command = ServerCommand(("sh", "-c", line), Path.cwd(), {"PATH": "/usr/bin:/bin"})
    async with stdio_streams(command, ServerLog()):
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_who_heeds_neither_its_input_nor_a_request_ends_with_a_program_that_is_killed(tmp_path: Path) -> None:
    words = (sys.executable, "-c", STARTS_AND_WAITS)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    starter = await asyncio.create_subprocess_exec(*words, cwd=tmp_path, env=environment)
    try:
        await until((tmp_path / "begun").exists)
    finally:
        starter.kill()
        await starter.wait()
    server = int((tmp_path / "begun").read_text())
    await until(lambda: not psutil.pid_exists(server) or psutil.Process(server).status() == psutil.STATUS_ZOMBIE)


async def test_nothing_is_started_for_a_program_that_is_gone_already(tmp_path: Path) -> None:
    own_end, child_end = socket.socketpair()
    with child_end:
        with own_end:
            own_end.sendall(json.dumps({"argv": ["touch", "begun"], "environment": dict(os.environ)}).encode())
        words = supervised_command_from_socket(child_end.fileno())
        starter = await asyncio.create_subprocess_exec(*words, cwd=tmp_path, pass_fds=(child_end.fileno(),))
    assert await starter.wait() != 0
    assert not (tmp_path / "begun").exists()


# The signals that Python ignores from its start.
OF_PYTHON = 1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)


async def test_its_environment_is_its_own_alone_and_in_no_list_of_processes(
    tmp_path: Path, new_children: Children
) -> None:
    secrets = {f"TOKEN{number}": f"{number}" * 100_000 for number in range(5)}
    line = "env >told; grep SigIgn /proc/self/status >ignored; ls /proc/self/fd >open; : >begun; exec sleep 60"
    async with stdio_streams(command(line, tmp_path, PYTHONHOME="/nowhere", LD_DEBUG="x", **secrets), ServerLog()):
        await until((tmp_path / "begun").exists)
        (guard,) = (process for process in new_children() if process.ppid() == psutil.Process().pid)
        assert "00000" not in "".join([*guard.cmdline(), *guard.environ().values()])
    environment = dict(line.split("=", 1) for line in (tmp_path / "told").read_text().splitlines())
    marks = [name for name in environment if name.startswith("DESKTOP_AGENT_CALL_")]
    of_the_shell = {"PWD", "OLDPWD", "_", "SHLVL"}
    assert environment.keys() - of_the_shell == {"PATH", "PYTHONHOME", "LD_DEBUG", *secrets, *marks}
    assert len(marks) == 1
    assert all(environment[name] == value for name, value in secrets.items())
    assert not int((tmp_path / "ignored").read_text().split()[1], 16) & OF_PYTHON
    # The last descriptor is that of the folder being listed.
    assert (tmp_path / "open").read_text().split() == ["0", "1", "2", "3"]


@pytest.mark.parametrize("is_awaited", [lambda process: True, lambda process: process.ppid() != psutil.Process().pid])
async def test_who_is_stopped_while_it_starts_leaves_nothing(
    is_awaited: Callable[[psutil.Process], bool], tmp_path: Path, new_children: Children
) -> None:
    async with contextlib.AsyncExitStack() as stack:
        starting = asyncio.ensure_future(
            stack.enter_async_context(stdio_streams(command("sleep 60", tmp_path), ServerLog()))
        )
        await until(lambda: any(is_awaited(process) for process in new_children()))
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await starting
    assert new_children() == []
