"""Removing what a command left in its own folder."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from desktop_agent.sandbox.backends import no_sandbox
from desktop_agent.tools.commands.run_command import remove_tree, run_command
from desktop_agent.tools.tool import RunningCall
from desktop_agent.tools.workspace import Workspace

DEEP = "import os\nfor _ in range(3000):\n    os.mkdir('d')\n    os.chdir('d')\nopen('f', 'w').close()\n"


def test_all_goes_and_what_links_lead_to_stays(tmp_path: Path) -> None:
    top, outside = tmp_path / "top", tmp_path / "outside"
    (top / "a/b").mkdir(parents=True)
    outside.mkdir()
    (outside / "kept").touch()
    for name in ("f", "a/f", "a/b/f"):
        (top / name).touch()
    for name in ("link", "a/link"):
        (top / name).symlink_to(outside)
    os.mkfifo(top / "a/pipe")
    (top / "a/b").chmod(0)
    (top / "a").chmod(0o500)
    remove_tree(top)
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]
    assert (outside / "kept").exists()


def test_what_is_no_folder_is_left(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to("kept")
    for name in ("nothing", "link"):
        remove_tree(tmp_path / name)
    assert (tmp_path / "link").exists()


async def test_however_deep_the_result_is_told_and_nothing_stays(
    workspace: Workspace, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    (workspace.folder / "deep.py").write_text(f"import os\nos.chdir(os.environ['TMPDIR'])\n{DEEP}")
    tool = run_command(workspace, confinement=no_sandbox)
    arguments = tool.checked({"command": "python3 deep.py; echo done"})
    try:
        (part,) = await tool.run(arguments, RunningCall("1", lambda _: None))
        remaining = list(temporary.iterdir())
    finally:
        # pytest's own cleanup would hit the recursion limit in so deep a folder.
        await asyncio.to_thread(subprocess.run, ("rm", "-rf", str(temporary)), check=True)
    assert part.text == "done\n[exit code 0.]"  # type: ignore[union-attr]
    assert remaining == []
