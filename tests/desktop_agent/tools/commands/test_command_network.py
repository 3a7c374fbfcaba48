"""A command and its proxy: which hosts rules allow, what the command reaches, and that the proxy ends with it."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from desktop_agent.permissions.rule_matching import CallFacts, find_allowing_rule
from desktop_agent.sandbox.backends import Sandbox, bubblewrap_sandbox
from desktop_agent.tools.commands.run_command import run_command
from desktop_agent.tools.tool import RunningCall, Tool
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.errors import ToolFailed
from desktop_agent.types.permissions import CommandPattern, HostPattern, Pattern, Rule, RuleEffect
from tests.desktop_agent.tools.commands.sandboxes import working_sandbox
from tests.frame.patience import PATIENCE

CURL = "curl -sS -m 20"


async def nowhere(_host: str, _port: int) -> list[str]:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def tool_in(workspace: Workspace, confinement: Sandbox) -> Tool[object]:
    return run_command(workspace, confinement=lambda: confinement, resolve=nowhere)  # type: ignore[return-value]


async def run(tool: Tool[object], line: str, *hosts: str, seconds: int = 60) -> str:
    arguments = tool.checked({"command": line, "hosts": list(hosts), "timeout_seconds": seconds})
    (part,) = await tool.run(arguments, RunningCall("1", lambda _: None))
    return part.text  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("patterns", "hosts", "is_allowed"),
    [
        ([CommandPattern(words=["curl"])], [], True),
        ([CommandPattern(words=["curl"])], ["a.example"], False),
        ([HostPattern(host="a.example")], ["a.example"], False),
        ([CommandPattern(words=["curl"]), HostPattern(host="a.example")], ["a.example"], True),
        ([CommandPattern(words=["curl"]), HostPattern(host="a.example")], ["a.example:8443"], True),
        ([CommandPattern(words=["curl"]), HostPattern(host="a.example")], ["a.example", "b.example"], False),
        ([CommandPattern(words=["curl"]), HostPattern(host="a.example")], ["*.a.example"], False),
        ([CommandPattern(words=["curl"]), HostPattern(host="*.a.example")], ["*.a.example"], True),
        ([CommandPattern(words=["curl"]), HostPattern(host="*.a.example")], ["x.a.example"], True),
    ],
)
async def test_a_rule_for_a_command_is_none_for_its_hosts(
    workspace: Workspace, patterns: list[Pattern], hosts: list[str], is_allowed: bool
) -> None:
    tool = tool_in(workspace, bubblewrap_sandbox("/x"))
    assert tool.subjects
    rules = [Rule(effect=RuleEffect.ALLOW, tool="run_command", pattern=pattern) for pattern in patterns]
    subjects = await tool.subjects(tool.checked({"command": "curl x", "hosts": hosts}))
    assert (find_allowing_rule(rules, CallFacts(tool, "a digest", subjects)) is not None) is is_allowed


async def test_without_a_sandbox_no_rule_for_hosts_is_enough(workspace: Workspace) -> None:
    tool = tool_in(workspace, Sandbox("", lambda argv, _folder, _bounds: list(argv)))
    assert tool.subjects
    patterns = (CommandPattern(words=["curl"]), HostPattern(host="a.example"), HostPattern(host="*.example"))
    rules = [Rule(effect=RuleEffect.ALLOW, tool="run_command", pattern=pattern) for pattern in patterns]
    subjects = await tool.subjects(tool.checked({"command": "curl x", "hosts": ["a.example"]}))
    assert find_allowing_rule(rules, CallFacts(tool, "a digest", subjects)) is None


async def test_it_gets_no_socket_of_ours(workspace: Workspace) -> None:
    output = await run(tool_in(workspace, working_sandbox("bubblewrap")), "ls -l /proc/*/fd", "a.example")
    assert "socket:" not in output
    assert "/dev/null" in output


async def test_what_it_could_not_reach_stands_in_the_result(workspace: Workspace) -> None:
    tool = tool_in(workspace, working_sandbox("bubblewrap"))
    line = f"{CURL} http://b.example/ http://a.example/ >/dev/null"
    notes = (
        "It was kept from hosts that it had not named: b.example. Name with hosts each one that it must reach.",
        "a.example:80 could not be reached: Name or service not known.",
    )
    output = await run(tool, line, "a.example")
    assert output == "[exit code 0.]\n" + "\n".join(f"[{note}]" for note in notes)
    with pytest.raises(ToolFailed) as failed:
        await run(tool, f"{line}; sleep 43213", "a.example", seconds=8)
    assert " ".join(notes) in str(failed.value)


@contextlib.asynccontextmanager
async def silent_server() -> AsyncIterator[tuple[int, asyncio.Event, asyncio.Event]]:
    connected, closed = asyncio.Event(), asyncio.Event()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.set()
        while await reader.read(1000):
            pass
        closed.set()
        writer.close()

    async with await asyncio.start_server(hold, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], connected, closed


async def test_stop_ends_its_connections_too(workspace: Workspace) -> None:
    tool = run_command(workspace, confinement=lambda: working_sandbox("bubblewrap"))
    async with silent_server() as (port, connected, closed), asyncio.timeout(PATIENCE):
        line = f"curl -sS --noproxy '' http://127.0.0.1:{port}/"
        running = asyncio.ensure_future(run(tool, line, "127.0.0.1"))  # type: ignore[arg-type]
        await connected.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await closed.wait()


async def test_a_confinement_that_fails_is_not_waited_for(workspace: Workspace, tmp_path: Path) -> None:
    broken = Sandbox("a test", lambda _argv, _folder, _bounds: ["/bin/false"], has_own_network=True)
    assert await run(tool_in(workspace, broken), "true", "a.example") == "[exit code 1.]"
    missing = Sandbox("a test", lambda _argv, _folder, _bounds: [str(tmp_path / "none")], has_own_network=True)
    with pytest.raises(ToolFailed):
        await run(tool_in(workspace, missing), "true", "a.example")
