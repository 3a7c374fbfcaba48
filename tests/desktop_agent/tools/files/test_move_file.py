"""Files that get another name or another folder."""

import os
import stat
from pathlib import Path

import pytest

from desktop_agent.tools.files.change_tools import move_file
from desktop_agent.tools.open_folders import HAS_DESCRIPTORS
from desktop_agent.tools.tool import RunningCall
from desktop_agent.tools.workspace import Workspace, WorkspacePath
from desktop_agent.types.errors import OutsideWorkspace, ToolFailed
from desktop_agent.types.permissions import PathSubject
from desktop_agent.types.tool_calls import Effect, TextPreview, ToolClass


@pytest.fixture(params=[pytest.param(True, marks=pytest.mark.skipif(not HAS_DESCRIPTORS, reason="no dir_fd")), False])
def workspace(tmp_path: Path, request: pytest.FixtureRequest) -> Workspace:
    return Workspace(tmp_path, by_descriptor=request.param)


async def move(workspace: Workspace, source: str, target: str, *, replace: bool = False) -> str:
    tool = move_file(workspace)
    arguments = tool.checked({"source": source, "target": target, "replace": replace})
    assert tool.preview is not None
    await tool.preview(arguments)
    (part,) = await tool.run(arguments, RunningCall("1", lambda _: None))
    return part.text  # type: ignore[union-attr]


async def test_a_file_moves_with_its_permissions_and_folders_are_made(workspace: Workspace) -> None:
    file = workspace.folder / "a.txt"
    file.write_text("x")
    file.chmod(0o640)
    assert await move(workspace, "a.txt", "new/deep/b.txt") == "Moved a.txt to new/deep/b.txt."
    moved = workspace.folder / "new/deep/b.txt"
    assert (moved.read_text(), stat.S_IMODE(moved.stat().st_mode), file.exists()) == ("x", 0o640, False)


async def test_what_is_there_stays_unless_it_may_be_replaced(workspace: Workspace) -> None:
    (workspace.folder / "a").write_text("a")
    (workspace.folder / "b").write_text("b!")
    with pytest.raises(ToolFailed, match="There is a “b” already") as failed:
        await move(workspace, "a", "b")
    assert "replace" in str(failed.value.remedy)
    assert (workspace.folder / "b").read_text() == "b!"
    assert await move(workspace, "a", "b", replace=True) == "Moved a to b, replacing what was there."
    assert [(path.name, path.read_text()) for path in workspace.folder.iterdir()] == [("b", "a")]


async def test_what_comes_there_at_the_last_moment_stays(workspace: Workspace) -> None:
    (workspace.folder / "a").write_text("a")
    (workspace.folder / "b").write_text("mine")
    with pytest.raises(ToolFailed, match="already"):
        workspace.move(WorkspacePath(("a",)), WorkspacePath(("b",)))
    assert sorted(path.read_text() for path in workspace.folder.iterdir()) == ["a", "mine"]


async def test_a_last_look_that_objects_leaves_everything(workspace: Workspace) -> None:
    (workspace.folder / "a").write_text("a")

    def object_to_it() -> None:
        raise ToolFailed("No.")

    with pytest.raises(ToolFailed, match="No"):
        workspace.move(WorkspacePath(("a",)), WorkspacePath(("b",)), object_to_it)
    assert [path.name for path in workspace.folder.iterdir()] == ["a"]


async def test_of_two_names_of_one_file_one_is_left(workspace: Workspace) -> None:
    (workspace.folder / "a").write_text("a")
    os.link(workspace.folder / "a", workspace.folder / "b")
    await move(workspace, "a", "b", replace=True)
    assert [path.name for path in workspace.folder.iterdir()] == ["b"]


async def test_what_cannot_be_moved_says_why(workspace: Workspace) -> None:
    folder = workspace.folder
    (folder / "a").touch()
    (folder / "kept").touch(0o444)
    (folder / "folder").mkdir()
    for source, target, why in (
        ("none", "b", "There is no “none”"),
        ("folder", "b", "only files are moved"),
        (".", "b", "only files are moved"),
        ("a", "folder", "only files are moved"),
        ("a", ".", "only files are moved"),
        ("a", "./a", "is there already"),
        ("a", "kept/b", "is a file, not a folder|cannot|not a folder"),
        ("a", "kept", "write-protected"),
    ):
        with pytest.raises(ToolFailed, match=why):
            await move(workspace, source, target, replace=True)
    for source, target in (("../a", "b"), ("a", "../b"), ("a", "/etc/b")):
        with pytest.raises(OutsideWorkspace):
            await move(workspace, source, target)
    assert sorted(path.name for path in folder.iterdir()) == ["a", "folder", "kept"]


async def test_a_folder_swapped_for_a_link_leads_nowhere(
    workspace: Workspace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (workspace.folder / "a").write_text("a")
    (workspace.folder / "link").symlink_to(outside)
    with pytest.raises(ToolFailed):
        workspace.move(WorkspacePath(("a",)), WorkspacePath(("link", "a")))
    assert list(outside.iterdir()) == []
    assert (workspace.folder / "a").exists()


async def test_rules_and_checkpoints_know_both_places(workspace: Workspace) -> None:
    (workspace.folder / "a").write_text("abc")
    (workspace.folder / "b").write_text("b")
    tool = move_file(workspace)
    arguments = tool.checked({"source": "./a", "target": "b", "replace": True})
    assert tool.subjects
    assert tool.changes
    assert tool.preview
    root = workspace.folder.as_posix()
    assert await tool.subjects(arguments) == (PathSubject(f"{root}/a"), PathSubject(f"{root}/b"))
    assert await tool.changes(arguments) == ("a", "b")
    preview = await tool.preview(arguments)
    assert isinstance(preview, TextPreview)
    assert str(preview.text) == "Moves “a”\nto “b”.\n\nThis replaces what is there (1 bytes)."
    assert (tool.tool_class, tool.effects) == (ToolClass.MUTATING, {Effect.WRITE})
