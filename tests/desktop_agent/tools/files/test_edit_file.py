"""Passages of files changed in place."""

import os

import pytest

from desktop_agent.tools.files import change_tools as module
from desktop_agent.tools.files.change_tools import edit_file
from desktop_agent.tools.tool import RunningCall
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.errors import OutsideWorkspace, ToolFailed
from desktop_agent.types.tool_calls import DiffPreview, Effect, Preview, TextPreview, ToolClass


async def edit(workspace: Workspace, path: str, old: str, new: str, *, everywhere: bool = False) -> str:
    tool = edit_file(workspace)
    arguments = {"path": path, "old_text": old, "new_text": new, "replace_all": everywhere}
    (part,) = await tool.run(tool.checked(arguments), RunningCall("1", lambda _: None))
    return part.text  # type: ignore[union-attr]


async def previewed(workspace: Workspace, path: str, old: str, new: str) -> Preview | None:
    tool = edit_file(workspace)
    assert tool.preview is not None
    return await tool.preview(tool.checked({"path": path, "old_text": old, "new_text": new}))


async def test_a_passage_is_replaced_and_said_where(workspace: Workspace) -> None:
    file = workspace.folder / "a.txt"
    file.write_text("one\ntwo\nthree\n")
    assert await edit(workspace, "a.txt", "two\nth", "2\nTH") == "Edited a.txt: replaced at line 2."
    assert file.read_text() == "one\n2\nTHree\n"


async def test_everywhere_only_when_it_was_said(workspace: Workspace) -> None:
    file = workspace.folder / "a.txt"
    file.write_text("x = 1\ny\nx = 2\n")
    with pytest.raises(ToolFailed, match="is in “a\\.txt” 2 times, at lines 1, 3") as failed:
        await edit(workspace, "a.txt", "x =", "z =")
    assert "replace_all" in str(failed.value.remedy)
    assert file.read_text() == "x = 1\ny\nx = 2\n"
    assert await edit(workspace, "a.txt", "x =", "z =", everywhere=True) == (
        "Edited a.txt: replaced 2 times, at lines 1, 3."
    )
    assert file.read_text() == "z = 1\ny\nz = 2\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n", b"\xef\xbb\xbfone\r\n2\r\n2\r\nthree\r\n"),
        ("one\ntwo\nthree ä".encode("latin-1"), "one\n2\n2\nthree ä".encode("latin-1")),
        ("\ufeffone\ntwo\nthree".encode("utf-16-le"), "\ufeffone\n2\n2\nthree".encode("utf-16-le")),
        # Of several kinds of line ends, those elsewhere stay, and the new ones are like their neighbours.
        (b"one\ntwo\r\nthree\rfour", b"one\n2\r\n2\r\nthree\rfour"),
    ],
    ids=["mark-crlf", "latin-1", "utf-16", "mixed"],
)
async def test_encoding_mark_and_line_ends_stay(workspace: Workspace, before: bytes, after: bytes) -> None:
    file = workspace.folder / "a.txt"
    file.write_bytes(before)
    await edit(workspace, "a.txt", "two\nthree", "2\n2\nthree")
    assert file.read_bytes() == after


async def test_what_the_encoding_cannot_hold_is_said(workspace: Workspace) -> None:
    (workspace.folder / "a.txt").write_bytes("Grüße".encode("latin-1"))
    assert "It is UTF-8 now." in await edit(workspace, "a.txt", "Grüße", "日本")
    assert (workspace.folder / "a.txt").read_text(encoding="utf-8") == "日本"


async def test_the_preview_shows_the_file_before_and_after_and_changes_nothing(workspace: Workspace) -> None:
    (workspace.folder / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    assert await previewed(workspace, "./a.txt", "two", "2") == DiffPreview("a.txt", "one\ntwo\n", "one\n2\n")
    assert (workspace.folder / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
    with pytest.raises(ToolFailed, match="is not in"):
        await previewed(workspace, "a.txt", "three", "2")


async def test_a_large_file_is_previewed_in_words(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_DIFF_LIMIT", 5)
    (workspace.folder / "a.txt").write_text("one two")
    preview = await previewed(workspace, "a.txt", "two", "three")
    assert isinstance(preview, TextPreview)
    assert str(preview.text).endswith("Old:\ntwo\n\nNew:\nthree")


async def test_a_file_that_changed_since_the_preview_is_judged_again(workspace: Workspace) -> None:
    file = workspace.folder / "a.txt"
    file.write_text("one\ntwo\n")
    await previewed(workspace, "a.txt", "two", "2")
    file.write_text("two\ntwo\n")
    with pytest.raises(ToolFailed, match="2 times"):
        await edit(workspace, "a.txt", "two", "2")
    file.write_text("zero\none\ntwo\n")
    assert "line 3" in await edit(workspace, "a.txt", "two", "2")
    assert file.read_text() == "zero\none\n2\n"


async def test_what_somebody_writes_in_the_middle_is_not_overwritten(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = workspace.folder / "a.txt"
    file.write_text("one")
    encode = module.encode_text

    def write_then_encode(*arguments: object) -> object:
        file.write_text("one, and mine")
        return encode(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "encode_text", write_then_encode)
    with pytest.raises(ToolFailed, match="changed by another program"):
        await edit(workspace, "a.txt", "one", "two")
    assert file.read_text() == "one, and mine"
    assert [path.name for path in workspace.folder.iterdir()] == ["a.txt"]


async def test_what_cannot_be_edited_says_why(workspace: Workspace) -> None:
    folder = workspace.folder
    (folder / "binary").write_bytes(b"a\0b")
    (folder / "folder").mkdir()
    (folder / "kept").write_text("a")
    (folder / "kept").chmod(0o444)
    (folder / "pipe").touch()
    (folder / "pipe").unlink()
    os.mkfifo(folder / "pipe")
    for path, why in (
        ("binary", "not text"),
        ("folder", "is a folder"),
        (".", "is a folder"),
        ("none", "There is no"),
        ("kept", "write-protected"),
        ("pipe", "not an ordinary file"),
    ):
        with pytest.raises(ToolFailed, match=why):
            await edit(workspace, path, "a", "b")
    with pytest.raises(OutsideWorkspace):
        await edit(workspace, "../a", "a", "b")
    with pytest.raises(ToolFailed, match="nothing would change"):
        await edit(workspace, "kept", "a", "a")


async def test_it_is_mutating_and_its_file_is_known_before(workspace: Workspace) -> None:
    tool = edit_file(workspace)
    assert (tool.tool_class, tool.effects) == (ToolClass.MUTATING, {Effect.WRITE})
    assert tool.changes is not None
    assert await tool.changes(tool.checked({"path": "./x/../a", "old_text": "a", "new_text": ""})) == ("a",)
