"""Shell lines, run for real; what confines them is in test_confined."""

import asyncio
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from desktop_agent.sandbox.backends import Sandbox, bubblewrap_sandbox, no_sandbox
from desktop_agent.tools.commands.execution import shorten_output
from desktop_agent.tools.commands.run_command import run_command
from desktop_agent.tools.tool import RunningCall, Tool
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.blocks import Text
from desktop_agent.types.errors import OutsideWorkspace, Sentence, ToolFailed, ToolInputInvalid
from desktop_agent.types.permissions import CommandSubject, HostSubject
from desktop_agent.types.tool_calls import CommandPreview, Effect, ToolClass
from tests.frame.children import Children

PATIENCE = 30


def plain(workspace: Workspace) -> Tool[object]:
    return run_command(workspace, confinement=lambda: no_sandbox(Sentence("For a test.")))  # type: ignore[return-value]


def temporary_files() -> list[Path]:
    return list(Path(tempfile.gettempdir()).iterdir())


async def run(workspace: Workspace, line: str, progress: list[str] | None = None, **more: object) -> str:
    tool = plain(workspace)
    reported = [] if progress is None else progress
    (part,) = await tool.run(tool.checked({"command": line, **more}), RunningCall("1", reported.append))
    assert temporary_files() == []
    return part.text  # type: ignore[union-attr]


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))


async def test_output_of_both_streams_and_the_exit_code(workspace: Workspace) -> None:
    assert await run(workspace, "echo one; echo two >&2; exit 3") == "one\ntwo\n[exit code 3.]"
    assert await run(workspace, "true") == "[exit code 0.]"
    assert await run(workspace, "printf x") == "x\n[exit code 0.]"
    assert await run(workspace, "kill -9 $$") == "[ended by SIGKILL.]"
    assert "command not found" in await run(workspace, "no-such-program-anywhere")


async def test_it_is_bash_in_a_folder_of_the_workspace_without_input(workspace: Workspace) -> None:
    (workspace.folder / "sub").mkdir()
    assert await run(workspace, "[[ -n x ]] && pwd; cat", folder="sub") == f"{workspace.folder}/sub\n[exit code 0.]"
    (workspace.folder / "file").touch()
    for folder in ("none", "file"):
        with pytest.raises(ToolFailed, match="is not a folder"):
            await run(workspace, "true", folder=folder)
    with pytest.raises(OutsideWorkspace):
        await run(workspace, "true", folder="..")


async def test_a_bash_in_the_workspace_is_not_taken(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = workspace.folder / "bash"
    fake.write_text("#!/bin/sh\necho fake\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{workspace.folder}:{os.environ['PATH']}")
    assert await run(workspace, "echo real") == "real\n[exit code 0.]"


async def test_output_is_told_while_it_runs(workspace: Workspace) -> None:
    progress: list[str] = []
    running = asyncio.ensure_future(
        run(workspace, "echo first; until [ -e go ]; do sleep 0.02; done; echo last", progress)
    )
    async with asyncio.timeout(PATIENCE):
        while "first" not in "".join(progress):
            await asyncio.sleep(0.01)
    assert "last" not in "".join(progress)
    (workspace.folder / "go").touch()
    assert await running == "first\nlast\n[exit code 0.]"
    assert "".join(progress) == "first\nlast\n"


async def test_what_takes_too_long_is_ended_and_what_it_wrote_stays(
    workspace: Workspace, new_children: Children
) -> None:
    with pytest.raises(ToolFailed, match=r"longer than 3 s") as failed:
        await run(workspace, "echo begun; sleep 500 & sleep 500", timeout_seconds=3)
    assert "begun\n" in str(failed.value)
    assert "timeout_seconds" in str(failed.value.remedy)
    assert not new_children()


async def test_stop_leaves_nothing_running(workspace: Workspace) -> None:
    line = "sleep 500 & (setsid sleep 500 &) ; echo $$; wait"
    progress: list[str] = []
    running = asyncio.ensure_future(run(workspace, line, progress))
    async with asyncio.timeout(PATIENCE):
        while "\n" not in "".join(progress):
            await asyncio.sleep(0.01)
    marked = [process for process in psutil.process_iter() if _is_ours(process)]
    assert len(marked) >= 3
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not [process for process in marked if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
    assert temporary_files() == []


def _is_ours(process: psutil.Process) -> bool:
    try:
        return process.environ().get("TMPDIR", "").startswith(tempfile.gettempdir())
    except psutil.Error:
        return False


async def test_who_stays_behind_is_ended_and_counted(workspace: Workspace) -> None:
    assert await run(workspace, "sleep 500 & echo x") == (
        "x\n[exit code 0. 1 process that it left running ended with it.]"
    )


async def test_where_the_confinement_ends_them_they_are_not_counted(workspace: Workspace) -> None:
    sandbox = Sandbox("a test", lambda argv, _folder, _bounds: list(argv), ends_descendants=True)
    tool = run_command(workspace, confinement=lambda: sandbox)
    (part,) = await tool.run(tool.checked({"command": "sleep 500 &"}), RunningCall("1", lambda _: None))
    assert part == Text(text="[exit code 0.]")


async def test_no_secret_is_in_its_environment(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-hush")
    monkeypatch.setenv("BASH_ENV", "/dev/stdin")
    output = await run(workspace, "env; tr '\\0' '\\n' </proc/self/environ")
    assert "TMPDIR=" in output
    assert "hush" not in output
    assert "BASH_ENV" not in output


async def test_too_much_output_keeps_its_beginning_and_its_end(workspace: Workspace) -> None:
    output = await run(workspace, "echo first; seq 1 100000; echo last")
    assert output.startswith("first\n1\n2\n")
    assert output.endswith("100000\nlast\n[exit code 0.]")
    assert "characters are left out here" in output
    assert len(output) < 61_000
    assert shorten_output("abcdefgh", 4) == "ab\n[4 characters are left out here.]\ngh"


async def test_the_preview_says_line_folder_and_bounds(workspace: Workspace) -> None:
    tool = plain(workspace)
    assert tool.preview
    title = "Not confined: the command can read, change and send whatever you can. For a test."
    preview = await tool.preview(tool.checked({"command": "rm x", "folder": "."}))
    assert isinstance(preview, CommandPreview)
    assert (preview.line, preview.folder, str(preview.confinement)) == ("rm x", str(workspace.folder), title)
    assert not preview.only_hosts
    confined = run_command(workspace, confinement=lambda: replace(bubblewrap_sandbox("/x"), is_enforced=True))
    assert confined.preview
    preview = await confined.preview(confined.checked({"command": "x", "hosts": ["a.example", "b.example:1"]}))
    assert isinstance(preview, CommandPreview)
    assert (preview.hosts, preview.only_hosts) == (("a.example", "b.example:1"), True)
    assert "The command can reach only a.example, b.example:1." in str(preview.confinement)
    root = run_command(workspace, confinement=lambda: replace(bubblewrap_sandbox("/x"), is_enforced=False))
    assert root.preview
    preview = await root.preview(root.checked({"command": "x", "hosts": ["a.example"]}))
    assert isinstance(preview, CommandPreview)
    assert not preview.only_hosts
    with pytest.raises(ToolFailed):
        await tool.preview(tool.checked({"command": "rm x", "folder": "none"}))


async def test_rules_see_the_line_and_the_hosts(workspace: Workspace) -> None:
    tool = plain(workspace)
    assert tool.subjects
    assert await tool.subjects(tool.checked({"command": "ls | wc"})) == (CommandSubject("ls | wc"),)
    arguments = tool.checked({"command": "ls", "hosts": ["A-B.test", "a.example:1", "a.example:2", "*.example.org"]})
    named = [HostSubject(host) for host in ("a-b.test", "a.example", "*.example.org")]
    # Without a sandbox nothing limits the command to those hosts.
    assert await tool.subjects(arguments) == (CommandSubject("ls"), *named, HostSubject("*"))
    confined = run_command(workspace, confinement=lambda: replace(bubblewrap_sandbox("/x"), is_enforced=False))
    assert confined.subjects
    assert await confined.subjects(arguments) == (CommandSubject("ls"), *named)
    assert await confined.subjects(tool.checked({"command": "ls"})) == (CommandSubject("ls"),)
    assert tool.tool_class is ToolClass.MUTATING
    assert tool.effects == {Effect.READ, Effect.WRITE, Effect.EXECUTE, Effect.NETWORK}
    assert tool.timeout > 600
    for wrong_arguments in (
        {"command": ""},
        {"command": "x", "timeout_seconds": 601},
        {"command": "x", "timeout_seconds": 0},
        {"command": "x", "hosts": "a-b.test"},
        {"command": "x", "hosts": [f"a{number}.example" for number in range(21)]},
        {"command": "x", "network": True},
    ):
        with pytest.raises(ToolInputInvalid):
            tool.checked(wrong_arguments)
    with pytest.raises(ToolInputInvalid, match=r"“https://a-b.test/simple” is an address\. Name hosts as in"):
        tool.checked({"command": "x", "hosts": ["https://a-b.test/simple"]})


async def test_what_it_brings_is_named_by_its_hosts(workspace: Workspace) -> None:
    tool = plain(workspace)
    assert tool.brings
    assert tool.brings(tool.checked({"command": "x"})) is None
    hosts = ["a.example", "b.example", "c.example", "d.example"]
    many, single = (tool.brings(tool.checked({"command": "x", "hosts": named})) for named in (hosts, hosts[:1]))
    assert many is not None
    assert single is not None
    assert (many.name, single.name) == (
        "a command that may reach a.example, b.example, c.example, …",
        "a command that may reach a.example",
    )
    assert not many.is_same(single)


async def test_a_line_that_cannot_be_passed_on_is_a_sentence(workspace: Workspace) -> None:
    with pytest.raises(ToolFailed):
        await run(workspace, "echo \0")
