import os

import pytest

from desktop_agent.tools.files import search_tools as module
from desktop_agent.tools.files.search_tools import find_files
from desktop_agent.tools.tool import RunningCall
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.errors import OutsideWorkspace, ToolFailed
from desktop_agent.types.permissions import PathSubject


async def find(workspace: Workspace, names: str, path: str = ".") -> list[str]:
    tool = find_files(workspace)
    (part,) = await tool.run(tool.checked({"names": names, "path": path}), RunningCall("1", lambda _: None))
    return part.text.split("\n")  # type: ignore[union-attr]


async def test_the_newest_come_first(workspace: Workspace) -> None:
    for age, name in enumerate(("new.py", "sub/old.py", "older.py", "other.txt")):
        file = workspace.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("12345")
        os.utime(file, (1_700_000_000 - age * 86_400,) * 2)
    assert [line.split()[0] for line in await find(workspace, "*.py")] == ["new.py", "sub/old.py", "older.py"]
    assert "5 bytes, 2023-11-" in (await find(workspace, "new*"))[0]
    assert [line.split()[0] for line in await find(workspace, "*.py", "sub")] == ["sub/old.py"]
    assert [line.split()[0] for line in await find(workspace, "old.*", "sub/old.py")] == ["sub/old.py"]


async def test_only_so_many_are_told(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FOUND", 2)
    for name in range(5):
        (workspace.folder / f"{name}").touch()
        os.utime(workspace.folder / f"{name}", (1_700_000_000 + name,) * 2)
    first, second, note = await find(workspace, "*")
    assert (first.split()[0], second.split()[0], note) == ("4", "3", "[3 older files are left out.]")


async def test_nothing_is_said_and_ways_out_are_refused(workspace: Workspace) -> None:
    (workspace.folder / "a\nb").touch()
    assert (await find(workspace, "*.py"))[0].startswith("[No file is called “*.py”")
    assert len(await find(workspace, "a*")) == 1
    with pytest.raises(OutsideWorkspace):
        await find(workspace, "*", "..")
    with pytest.raises(ToolFailed):
        await find(workspace, "*" * 30)
    tool = find_files(workspace)
    assert tool.subjects
    assert await tool.subjects(tool.checked({"names": "*"})) == (PathSubject(workspace.folder.as_posix()),)
