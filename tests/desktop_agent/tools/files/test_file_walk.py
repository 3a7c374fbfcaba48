from pathlib import Path

import pytest

from desktop_agent.tools.files import search_process
from desktop_agent.tools.files.search_process import FileWalk
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.errors import ToolFailed


def files(workspace: Workspace, path: str = ".") -> list[str]:
    return [str(found_path) for found_path, _size in FileWalk(workspace, workspace.locate(path), lambda: None).files()]


def fill(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def test_files_in_order_without_hidden_ones_and_links(workspace: Workspace) -> None:
    fill(workspace.folder, "b/c.txt", "a.txt", ".git/config", ".env", "b/.hidden/x", "z")
    (workspace.folder / "link").symlink_to("b")
    (workspace.folder / "b/link").symlink_to("../a.txt")
    assert files(workspace) == ["a.txt", "b/c.txt", "z"]
    assert files(workspace, "b") == ["b/c.txt"]
    assert files(workspace, "a.txt") == ["a.txt"]
    with pytest.raises(ToolFailed, match="There is no"):
        files(workspace, "none")


def test_too_much_is_cut_and_said(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(workspace.folder, "a", "b", "c/d/e")
    for name, value, count in (("MAX_FILES", 2, 2), ("MAX_DEPTH", 1, 2), ("_SCAN_LIMIT", 3, 3)):
        with monkeypatch.context() as changed:
            changed.setattr(search_process, name, value)
            walk = FileWalk(workspace, workspace.locate("."), lambda: None)
            assert len(list(walk.files())) == count
            assert walk.is_cut
    walk = FileWalk(workspace, workspace.locate("."), lambda: None)
    assert len(list(walk.files())) == 3
    assert not walk.is_cut
