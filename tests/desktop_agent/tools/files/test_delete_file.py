"""Deletion of files and empty folders."""

import pytest

from desktop_agent.tools.files import change_tools as module
from desktop_agent.tools.files.change_tools import delete_file
from desktop_agent.tools.tool import RunningCall
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.errors import OutsideWorkspace, ToolFailed
from desktop_agent.types.tool_calls import DiffPreview, Effect, PicturePreview, Preview, TextPreview, ToolClass

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


async def delete(workspace: Workspace, path: str) -> str:
    tool = delete_file(workspace)
    (part,) = await tool.run(tool.checked({"path": path}), RunningCall("1", lambda _: None))
    return part.text  # type: ignore[union-attr]


def text_of(preview: Preview | None) -> str:
    assert isinstance(preview, TextPreview)
    return str(preview.text)


async def previewed(workspace: Workspace, path: str) -> Preview | None:
    tool = delete_file(workspace)
    assert tool.preview is not None
    return await tool.preview(tool.checked({"path": path}))


async def test_a_file_and_an_empty_folder_go(workspace: Workspace) -> None:
    (workspace.folder / "folder").mkdir()
    (workspace.folder / "folder/a.txt").write_text("x")
    assert await delete(workspace, "folder/a.txt") == "Deleted folder/a.txt."
    assert await delete(workspace, "folder") == "Deleted the empty folder folder."
    assert list(workspace.folder.iterdir()) == []


async def test_a_link_is_followed_and_what_it_means_is_named(workspace: Workspace) -> None:
    (workspace.folder / "a.txt").write_text("x")
    (workspace.folder / "link").symlink_to("a.txt")
    assert await previewed(workspace, "link") == DiffPreview("a.txt", "x", None)
    assert await delete(workspace, "link") == "Deleted a.txt."


async def test_the_preview_shows_what_is_lost(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = workspace.folder
    (folder / "a.txt").write_bytes(b"one\r\n")
    (folder / "a.bin").write_bytes(b"\0\1")
    (folder / "a.png").write_bytes(PNG)
    (folder / "empty").mkdir()
    assert await previewed(workspace, "a.txt") == DiffPreview("a.txt", "one\n", None)
    assert text_of(await previewed(workspace, "a.bin")) == "Deletes the binary file “a.bin” (2 bytes)."
    picture = await previewed(workspace, "a.png")
    assert isinstance(picture, PicturePreview)
    assert (picture.name, picture.data, str(picture.note)) == ("a.png", PNG, "Deletes this picture (28 bytes).")
    assert text_of(await previewed(workspace, "empty")) == "Deletes the empty folder “empty”."
    monkeypatch.setattr(module, "_SHOWN_LIMIT", 1)
    assert text_of(await previewed(workspace, "a.txt")) == "Deletes “a.txt” (5 bytes)."
    monkeypatch.setattr(module, "MAX_SAVED_BYTES", 4)
    assert text_of(await previewed(workspace, "a.txt")).endswith(
        "It is too large to be kept, so this cannot be undone."
    )
    assert len(list(folder.iterdir())) == 4


async def test_what_is_not_deleted_says_why(workspace: Workspace) -> None:
    folder = workspace.folder
    (folder / "full").mkdir()
    (folder / "full/a").touch()
    (folder / "kept").touch(0o444)
    for path, why in (
        (".", "workspace folder itself"),
        ("none", "There is no"),
        ("full", "something in it"),
        ("kept", "write-protected"),
    ):
        for ask in (previewed, delete):
            with pytest.raises(ToolFailed, match=why):
                await ask(workspace, path)
    with pytest.raises(OutsideWorkspace):
        await delete(workspace, "../x")
    assert (folder / "full/a").exists()
    assert (folder / "kept").exists()


async def test_it_is_mutating_and_its_file_is_known_before(workspace: Workspace) -> None:
    tool = delete_file(workspace)
    assert (tool.tool_class, tool.effects) == (ToolClass.MUTATING, {Effect.WRITE})
    assert tool.changes is not None
    assert await tool.changes(tool.checked({"path": "./a"})) == ("a",)
