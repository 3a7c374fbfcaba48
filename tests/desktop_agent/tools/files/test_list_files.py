import os
from pathlib import Path

import pytest

from desktop_agent.tools.files.read_tools import MAX_DEPTH, MAX_ENTRIES, list_files
from desktop_agent.tools.tool import RunningCall
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.errors import OutsideWorkspace, ToolFailed


async def listed(workspace: Workspace, **arguments: object) -> list[str]:
    tool = list_files(workspace)
    (part,) = await tool.run(tool.checked(arguments), RunningCall("1", lambda _: None))
    return part.text.split("\n")  # type: ignore[union-attr]


@pytest.fixture
def filled(workspace: Workspace) -> Path:
    folder = workspace.folder
    (folder / "b" / "c").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("x")
    (folder / "A.txt").write_bytes(b"x" * 1234)
    (folder / "b" / "d.txt").write_text("12")
    (folder / "link").symlink_to("/etc")
    os.mkfifo(folder / "pipe")
    return folder


async def test_a_folder_is_listed_by_name_with_sizes_and_kinds(workspace: Workspace, filled: Path) -> None:
    assert await listed(workspace) == [
        ".git/",
        "A.txt  1,234 bytes",
        "b/",
        "link  (link, not followed)",
        "pipe  (not an ordinary file)",
    ]


async def test_recursively_hidden_folders_and_links_are_not_entered(workspace: Workspace, filled: Path) -> None:
    assert await listed(workspace, recursive=True) == [
        ".git/  (hidden, not entered)",
        "A.txt  1,234 bytes",
        "b/",
        "b/c/",
        "b/d.txt  2 bytes",
        "link  (link, not followed)",
        "pipe  (not an ordinary file)",
    ]


async def test_a_hidden_folder_can_be_listed_by_name(workspace: Workspace, filled: Path) -> None:
    assert await listed(workspace, path=".git") == [".git/config  1 bytes"]


async def test_the_count_is_bounded_and_said(workspace: Workspace) -> None:
    for number in range(MAX_ENTRIES + 5):
        (workspace.folder / f"{number:04}").touch()
    lines = await listed(workspace)
    assert len(lines) == MAX_ENTRIES + 1
    assert lines[-1].startswith("[Stopped after 1,000 entries")


async def test_the_depth_is_bounded(workspace: Workspace) -> None:
    deep = workspace.folder.joinpath(*["d"] * (MAX_DEPTH + 3))
    deep.mkdir(parents=True)
    assert len(await listed(workspace, recursive=True)) == MAX_DEPTH


async def test_an_empty_folder_says_so(workspace: Workspace) -> None:
    assert await listed(workspace) == ["[The folder is empty.]"]


async def test_a_name_with_a_line_end_does_not_look_like_two(workspace: Workspace) -> None:
    (workspace.folder / "a\nb").touch()
    (workspace.folder / os.fsdecode(b"bad\xff")).touch()
    lines = await listed(workspace)
    assert len(lines) == 2
    assert all(line.isprintable() and line.encode() for line in lines)


async def test_what_is_no_folder_is_refused(workspace: Workspace, filled: Path) -> None:
    with pytest.raises(OutsideWorkspace):
        await listed(workspace, path="link")
    with pytest.raises(ToolFailed, match="file, not a folder"):
        await listed(workspace, path="A.txt")
    with pytest.raises(ToolFailed, match="There is no"):
        await listed(workspace, path="nothing")
