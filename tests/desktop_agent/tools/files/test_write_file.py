import asyncio
import threading

import pytest

from desktop_agent.tools.files import change_tools as module
from desktop_agent.tools.files.change_tools import write_file
from desktop_agent.tools.tool import RunningCall
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.errors import OutsideWorkspace, ToolFailed
from desktop_agent.types.tool_calls import DiffPreview, Effect, Preview, TextPreview, ToolClass


async def write(workspace: Workspace, path: str, content: str) -> str:
    tool = write_file(workspace)
    (part,) = await tool.run(tool.checked({"path": path, "content": content}), RunningCall("1", lambda _: None))
    return part.text  # type: ignore[union-attr]


async def previewed(workspace: Workspace, path: str, content: str) -> Preview | None:
    tool = write_file(workspace)
    assert tool.preview is not None
    return await tool.preview(tool.checked({"path": path, "content": content}))


async def test_a_new_file_is_made_with_its_folders(workspace: Workspace) -> None:
    assert await write(workspace, "notes/new.txt", "hello\n") == "Created notes/new.txt (6 bytes)."
    assert (workspace.folder / "notes/new.txt").read_bytes() == b"hello\n"


async def test_an_existing_file_keeps_mark_encoding_and_line_ends(workspace: Workspace) -> None:
    file = workspace.folder / "a.txt"
    file.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    assert (await write(workspace, "a.txt", "three\nfour\n")).startswith("Replaced a.txt")
    assert file.read_bytes() == b"\xef\xbb\xbfthree\r\nfour\r\n"
    file.write_bytes("Grüße\n".encode("latin-1"))
    await write(workspace, "a.txt", "Größe\n")
    assert file.read_bytes() == "Größe\n".encode("latin-1")
    assert "cannot hold the new text" in await write(workspace, "a.txt", "日本\n")
    assert file.read_bytes() == "日本\n".encode()


async def test_the_preview_shows_before_and_after_and_changes_nothing(workspace: Workspace) -> None:
    (workspace.folder / "a.txt").write_bytes(b"one\r\n")
    assert await previewed(workspace, "./a.txt", "two\n") == DiffPreview("a.txt", "one\n", "two\n")
    assert await previewed(workspace, "new/b.txt", "x") == DiffPreview("new/b.txt", None, "x")
    assert (workspace.folder / "a.txt").read_bytes() == b"one\r\n"
    assert [path.name for path in workspace.folder.iterdir()] == ["a.txt"]


async def test_the_preview_of_a_binary_file_shows_the_text_in_words(workspace: Workspace) -> None:
    (workspace.folder / "a.bin").write_bytes(b"\0\1\2")
    preview = await previewed(workspace, "a.bin", "new text")
    assert isinstance(preview, TextPreview)
    assert "binary file “a.bin” (3 bytes)" in str(preview.text)
    assert str(preview.text).endswith("new text")


async def test_a_way_out_is_refused_by_preview_and_run(workspace: Workspace) -> None:
    with pytest.raises(OutsideWorkspace):
        await previewed(workspace, "../a.txt", "x")
    with pytest.raises(OutsideWorkspace):
        await write(workspace, "../a.txt", "x")
    assert not (workspace.folder.parent / "a.txt").exists()


async def test_a_folder_is_not_replaced(workspace: Workspace) -> None:
    (workspace.folder / "folder").mkdir()
    for path in ("folder", "."):
        with pytest.raises(ToolFailed, match="is a folder"):
            await write(workspace, path, "x")


async def test_a_cancel_waits_for_the_thread_and_the_file_stays_as_it_was(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace.folder / "a.txt").write_text("old")
    reached, go_on = threading.Event(), threading.Event()
    encode = module.encode_text

    def slow_encode(*arguments: object) -> object:
        reached.set()
        go_on.wait(10)
        return encode(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "encode_text", slow_encode)
    task = asyncio.ensure_future(write(workspace, "a.txt", "new"))
    await asyncio.to_thread(reached.wait, 10)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (workspace.folder / "a.txt").read_text() == "old"
    assert [path.name for path in workspace.folder.iterdir()] == ["a.txt"]


def test_it_is_mutating_and_writes(workspace: Workspace) -> None:
    tool = write_file(workspace)
    assert (tool.tool_class, tool.effects) == (ToolClass.MUTATING, {Effect.WRITE})


async def test_what_it_will_change_is_known_before(workspace: Workspace) -> None:
    (workspace.folder / "folder").mkdir()
    (workspace.folder / "link").symlink_to("folder")

    async def changes(path: str) -> tuple[str, ...]:
        tool = write_file(workspace)
        assert tool.changes is not None
        return await tool.changes(tool.checked({"path": path, "content": ""}))

    assert await changes("./new/../link/a.txt") == ("folder/a.txt",)
    assert await changes(str(workspace.folder / "folder" / "b")) == ("folder/b",)
    assert await changes(".") == ()
    with pytest.raises(OutsideWorkspace):
        await changes("../a.txt")
