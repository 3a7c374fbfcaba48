"""A call that nobody allowed to change anything: its command is held to reading, whatever it is."""

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


async def told(workspace: Workspace, confinement: Sandbox, line: str) -> str:
    # For root nothing is held; that it is tried is enough here.
    tool = run_command(workspace, confinement=lambda: replace(confinement, is_enforced=True))
    (part,) = await tool.run(tool.checked({"command": line}), RunningCall("1", lambda _: None, is_read_only=True))
    return part.text  # type: ignore[union-attr]


@pytest.mark.parametrize("how", CHANGES)
async def test_it_changes_nothing_in_the_workspace(how: str, workspace: Workspace, confinement: Sandbox) -> None:
    place = workspace.folder / "there"
    place.write_text("as it was")
    await told(workspace, confinement, CHANGES[how])
    assert [each.name for each in workspace.folder.iterdir()] == ["there"]
    assert place.read_text() == "as it was"
    assert place.stat().st_nlink == 1


async def test_it_reads_the_workspace_and_writes_in_its_own_folder(workspace: Workspace, confinement: Sandbox) -> None:
    (workspace.folder / "src").mkdir()
    (workspace.folder / "src" / "there").write_text("as it was")
    said = await told(workspace, confinement, 'cd src && cat there > "$TMPDIR/t" && cat "$TMPDIR/t" && ls . | wc -l')
    assert said.startswith("as it was")
    assert "exit code 0" in said


async def test_it_says_so_where_that_made_it_fail(workspace: Workspace, confinement: Sandbox) -> None:
    said = await told(workspace, confinement, "echo x > new")
    assert "was held to reading" in said


async def test_it_writes_into_no_pipe_of_the_workspace(workspace: Workspace, confinement: Sandbox) -> None:
    os.mkfifo(workspace.folder / "pipe")
    heard = os.open(workspace.folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        line = "echo x > pipe; ls pipe; echo y > /dev/null && echo z >$TMPDIR/there && exit 3"
        said = await told(workspace, confinement, line)
        assert os.read(heard, 10) == b""
    finally:
        os.close(heard)
    assert "was held to reading" in said
    assert "\npipe\n[exit code 3.]" in said


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
    said = await told(workspace, confinement, line)
    assert "exit code 0" not in said
    assert "ran without a question" in said


async def test_it_can_raise_none_of_its_limits(workspace: Workspace, confinement: Sandbox) -> None:
    said = await told(workspace, confinement, "ulimit -Hd; ulimit -Hf; ulimit -Hu; ulimit -d unlimited || echo refused")
    data, files, processes, *rest = said.split("\n")
    assert (data, files) == ("1953125", "976562")
    assert processes == "1024" or confinement.name == "Landlock"
    assert "refused" in rest


async def test_it_ends_after_a_while(
    workspace: Workspace, confinement: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("desktop_agent.tools.commands.run_command._UNASKED_SECONDS", 1)
    with pytest.raises(ToolFailed) as failed:
        await told(workspace, confinement, "tail -f /dev/null")
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

    made = command_environment({"PATH": "/usr/bin"}, tmp_path, network=False, is_read_only=True)
    assert {made["RUFF_CACHE_DIR"], made["MYPY_CACHE_DIR"]} == {f"{tmp_path}/cache/ruff", f"{tmp_path}/cache/mypy"}
