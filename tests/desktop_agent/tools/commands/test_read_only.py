"""A command that ran without approval is read-only, whatever it tries."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from desktop_agent.sandbox.backends import _LIMITS, Sandbox
from desktop_agent.tools.commands.run_command import run_command
from desktop_agent.tools.tool import RunningCall
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.errors import ToolFailed
from desktop_agent.types.permissions import CommandSubject
from tests.desktop_agent.tools.commands.sandboxes import working_sandbox
from tests.frame.selection import few

PYTHON = str(Path(sys.executable).resolve())
CHANGES = {
    "a new file": "echo x > new",
    "a new folder": "mkdir new",
    "a link": "ln -s there new",
    "a hard link": "ln there new",
    "other contents": "echo x >> there",
    "cut off": ": > there",
    "gone": "rm there",
    "renamed": "mv there new",
    "through a descriptor": "exec 3<> there; echo x >&3",
    "through another name": "echo x > $PWD/../$(basename $PWD)/there",
    "through the root of a process": "echo x > /proc/self/root$PWD/there",
    "through its folder": "echo x > /proc/self/cwd/there",
    "mounted anew": "mount -o remount,rw . ; echo x > there",
}


@pytest.fixture(params=few(["bubblewrap", "Landlock"], 1, "test_confined.py tries both"))
def confinement(request: pytest.FixtureRequest) -> Sandbox:
    return working_sandbox(request.param)


async def run_read_only(workspace: Workspace, confinement: Sandbox, line: str) -> str:
    # A sandbox is not enforced for root; here it is enough that it is tried.
    tool = run_command(workspace, confinement=lambda: replace(confinement, is_enforced=True))
    (part,) = await tool.run(tool.checked({"command": line}), RunningCall("1", lambda _: None, is_read_only=True))
    return part.text  # type: ignore[union-attr]


@pytest.mark.parametrize("how", CHANGES)
async def test_it_changes_nothing_in_the_workspace(how: str, workspace: Workspace, confinement: Sandbox) -> None:
    file = workspace.folder / "there"
    file.write_text("as it was")
    await run_read_only(workspace, confinement, CHANGES[how])
    assert [path.name for path in workspace.folder.iterdir()] == ["there"]
    assert file.read_text() == "as it was"
    assert file.stat().st_nlink == 1


async def test_it_reads_the_workspace_and_writes_in_its_own_folder(workspace: Workspace, confinement: Sandbox) -> None:
    (workspace.folder / "src").mkdir()
    (workspace.folder / "src" / "there").write_text("as it was")
    output = await run_read_only(
        workspace, confinement, 'cd src && cat there > "$TMPDIR/t" && cat "$TMPDIR/t" && ls . | wc -l'
    )
    assert output.startswith("as it was")
    assert "exit code 0" in output


async def test_it_says_so_where_that_made_it_fail(workspace: Workspace, confinement: Sandbox) -> None:
    output = await run_read_only(workspace, confinement, "echo x > new")
    assert "was held to reading" in output


async def test_it_writes_into_no_pipe_of_the_workspace(workspace: Workspace, confinement: Sandbox) -> None:
    os.mkfifo(workspace.folder / "pipe")
    pipe = os.open(workspace.folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        line = "echo x > pipe; ls pipe; echo y > /dev/null && echo z >$TMPDIR/there && exit 3"
        output = await run_read_only(workspace, confinement, line)
        assert os.read(pipe, 10) == b""
    finally:
        os.close(pipe)
    assert "was held to reading" in output
    assert "\npipe\n[exit code 3.]" in output


@pytest.mark.parametrize(
    "line",
    [
        """awk 'BEGIN { s = "x"; while (1) s = s s }'""",
        "tail /dev/zero",
        "sort /dev/zero",
        'truncate -s 2G "$TMPDIR/large"',
        f"'{PYTHON}' -c 'bytes(300_000_000)'",
    ],
)
async def test_it_takes_no_more_than_it_may_and_says_so(
    line: str, workspace: Workspace, confinement: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(_LIMITS, "DATA", 200_000_000)
    output = await run_read_only(workspace, confinement, line)
    assert "exit code 0" not in output
    assert "ran without a question" in output


async def test_it_can_raise_none_of_its_limits(workspace: Workspace, confinement: Sandbox) -> None:
    output = await run_read_only(
        workspace, confinement, "ulimit -Hd; ulimit -Hf; ulimit -Hu; ulimit -d unlimited || echo refused"
    )
    data, files, processes, *rest = output.split("\n")
    assert (data, files) == ("1953125", "976562")
    assert processes == "1024" or confinement.name == "Landlock"
    assert "refused" in rest


async def test_it_ends_after_a_while(
    workspace: Workspace, confinement: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("desktop_agent.tools.commands.run_command._UNASKED_SECONDS", 1)
    with pytest.raises(ToolFailed) as failed:
        await run_read_only(workspace, confinement, "tail -f /dev/null")
    assert "longer than 1 s" in str(failed.value)
    assert "nobody was asked" in str(failed.value.remedy)


async def test_a_line_is_said_to_be_sandboxed_only_where_the_confinement_holds(
    workspace: Workspace, confinement: Sandbox
) -> None:
    tool = run_command(workspace, confinement=lambda: confinement)
    assert tool.subjects is not None
    (subject,) = await tool.subjects(tool.checked({"command": "ls"}))
    assert isinstance(subject, CommandSubject)
    assert subject.is_sandboxed is confinement.is_enforced


def test_caches_of_programs_that_look_lie_elsewhere(tmp_path: Path) -> None:
    from desktop_agent.sandbox.environment import command_environment

    environment = command_environment({"PATH": "/usr/bin"}, tmp_path, network=False, is_read_only=True)
    assert {environment["RUFF_CACHE_DIR"], environment["MYPY_CACHE_DIR"]} == {
        f"{tmp_path}/cache/ruff",
        f"{tmp_path}/cache/mypy",
    }
