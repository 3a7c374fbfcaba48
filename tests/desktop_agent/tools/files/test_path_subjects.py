"""What rules get to know about a call of a file tool."""

import os
from pathlib import Path

import pytest

from desktop_agent.tools.files.change_tools import write_file
from desktop_agent.tools.files.read_tools import changed_paths, list_files, path_subjects, read_file
from desktop_agent.tools.tool import AnyTool
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.errors import OutsideWorkspace, ToolFailed
from desktop_agent.types.permissions import PathSubject

ARGUMENTS = {"content": ""}


@pytest.fixture(params=[read_file, list_files, write_file], ids=lambda make: make.__name__)
def tool(request: pytest.FixtureRequest, workspace: Workspace) -> AnyTool:
    return request.param(workspace)


async def subjects(tool: AnyTool, path: str) -> list[str]:
    assert tool.subjects is not None
    arguments = {"path": path} | (ARGUMENTS if tool.name == "write_file" else {})
    path_subjects = await tool.subjects(tool.checked(arguments))
    assert all(isinstance(subject, PathSubject) for subject in path_subjects)
    return [subject.path for subject in path_subjects]  # type: ignore[union-attr]


async def test_the_subject_is_the_absolute_place_with_links_followed(tool: AnyTool, workspace: Workspace) -> None:
    folder = workspace.folder
    (folder / "inner").mkdir()
    (folder / "inner" / "file").touch()
    (folder / "link").symlink_to("inner")
    (folder / "file-link").symlink_to("inner/file")
    expected = f"{folder.as_posix()}/inner/file"
    for path in ("inner/file", "./inner/../inner/file", "link/file", "file-link", str(folder / "link" / "file")):
        assert await subjects(tool, path) == [expected]
    assert await subjects(tool, ".") == [folder.as_posix()]
    assert await subjects(tool, "new/file") == [f"{folder.as_posix()}/new/file"]


async def test_a_way_out_has_no_subject(tool: AnyTool, workspace: Workspace) -> None:
    (workspace.folder / "out").symlink_to("/etc")
    for path in ("../file", "/etc/passwd", "out/passwd"):
        with pytest.raises(OutsideWorkspace):
            await subjects(tool, path)


async def test_the_same_folder_through_a_link_is_the_same_subject(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to("real")
    workspace = Workspace(tmp_path / "real")
    through = [await path_subjects(workspace, str(tmp_path / name / "a")) for name in ("real", "alias")]
    assert through[0] == through[1]


async def test_a_name_that_is_no_text_cannot_be_mistaken_for_another(workspace: Workspace) -> None:
    (workspace.folder / os.fsdecode(b"bad\xff")).touch()
    (workspace.folder / "link").symlink_to(os.fsdecode(b"bad\xff"))
    for ask in (path_subjects, changed_paths):
        with pytest.raises(ToolFailed, match="bytes that are not text"):
            await ask(workspace, "link")
