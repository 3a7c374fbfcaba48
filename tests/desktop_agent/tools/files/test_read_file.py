import pytest

from desktop_agent.tools.files import read_tools
from desktop_agent.tools.files.read_tools import ANSWER_LIMIT, read_file
from desktop_agent.tools.tool import RunningCall
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.errors import OutsideWorkspace, ToolFailed, ToolInputInvalid
from desktop_agent.types.tool_calls import Effect, ToolClass
from tests.fakes.pdf import LOCKED_PDF, pdf_of


async def read(workspace: Workspace, **arguments: object) -> list[str]:
    tool = read_file(workspace)
    return [part.text for part in await tool.run(tool.checked(arguments), RunningCall("1", lambda _: None))]  # type: ignore[union-attr]


async def test_a_file_is_read_whole(workspace: Workspace) -> None:
    (workspace.folder / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    assert await read(workspace, path="a.txt") == ["one\ntwo\n"]


async def test_a_part_says_what_is_left_and_where_to_go_on(workspace: Workspace) -> None:
    (workspace.folder / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 11)))
    assert await read(workspace, path="a.txt", start_line=3, max_lines=2) == [
        "line 3\nline 4",
        "[6 more lines; go on with start_line 5.]",
    ]
    assert await read(workspace, path="a.txt", start_line=10) == ["line 10\n"]
    assert (await read(workspace, path="a.txt", max_lines=9))[1] == "[1 more line; go on with start_line 10.]"


async def test_reading_on_from_part_to_part_gives_the_whole_file(workspace: Workspace) -> None:
    lines = [f"{n} " + "x" * 300 for n in range(3000)]
    (workspace.folder / "a.txt").write_text("\n".join(lines) + "\n")
    lines_read: list[str] = []
    while len(lines_read) < len(lines):
        body, *_ = await read(workspace, path="a.txt", start_line=len(lines_read) + 1)
        assert len(body.encode()) <= ANSWER_LIMIT
        lines_read += body.splitlines()
    assert lines_read == lines


async def test_a_line_longer_than_the_limit_is_cut_and_said(workspace: Workspace) -> None:
    (workspace.folder / "a.txt").write_text("é" * ANSWER_LIMIT + "\nend\n")
    body, note = await read(workspace, path="a.txt")
    assert len(body.encode()) <= ANSWER_LIMIT
    assert note == "[Line 1 is too long and was cut. 1 more line; go on with start_line 2.]"


async def test_a_line_behind_the_end_is_refused(workspace: Workspace) -> None:
    (workspace.folder / "a.txt").write_text("one\ntwo")
    with pytest.raises(ToolFailed, match="has 2 lines; there is no line 3"):
        await read(workspace, path="a.txt", start_line=3)


async def test_an_empty_file_and_another_encoding_are_said(workspace: Workspace) -> None:
    (workspace.folder / "empty").write_bytes(b"")
    (workspace.folder / "old").write_bytes("Grüße\n".encode("latin-1"))
    assert await read(workspace, path="empty") == ["", "[The file is empty.]"]
    body, note = await read(workspace, path="old")
    assert body == "Grüße\n"
    assert "Latin-1" in note


async def test_a_pdf_is_read_as_the_text_of_its_pages(workspace: Workspace) -> None:
    (workspace.folder / "plan.pdf").write_bytes(pdf_of("Hello there", "The end"))
    assert await read(workspace, path="plan.pdf") == ["[Page 1]\nHello there\n\n[Page 2]\nThe end"]
    assert (await read(workspace, path="plan.pdf", start_line=4, max_lines=1))[0] == "[Page 2]"
    (workspace.folder / "locked.pdf").write_bytes(LOCKED_PDF)
    with pytest.raises(ToolFailed, match=r"“locked\.pdf” is protected by a password"):
        await read(workspace, path="locked.pdf")


async def test_a_pdf_that_is_read_in_parts_is_taken_apart_once(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def read_pdf(data: bytes, name: str, _max_length: int) -> str:
        asked.append(name)
        return data.decode("ascii")

    monkeypatch.setattr(read_tools, "read_pdf_text_async", read_pdf)
    tool = read_file(workspace)

    async def line(number: int) -> str:
        arguments = tool.checked({"path": "plan.pdf", "start_line": number, "max_lines": 1})
        return (await tool.run(arguments, RunningCall("1", lambda _: None)))[0].text  # type: ignore[union-attr]

    (workspace.folder / "plan.pdf").write_bytes(b"%PDF-\none\ntwo")
    assert [await line(2), await line(3), asked] == ["one", "two", ["plan.pdf"]]
    (workspace.folder / "plan.pdf").write_bytes(b"%PDF-\nthree\nfour")
    assert [await line(3), asked] == ["four", ["plan.pdf"] * 2]


async def test_binary_files_and_pictures_are_refused_in_words(workspace: Workspace) -> None:
    (workspace.folder / "a.bin").write_bytes(b"\0\1\2")
    (workspace.folder / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    with pytest.raises(ToolFailed, match=r"“a\.bin” is a binary file of 3 bytes"):
        await read(workspace, path="a.bin")
    with pytest.raises(ToolFailed, match="a picture"):
        await read(workspace, path="a.png")


async def test_outside_is_refused(workspace: Workspace) -> None:
    with pytest.raises(OutsideWorkspace):
        await read(workspace, path="../a.txt")


def test_arguments_that_do_not_fit_are_refused(workspace: Workspace) -> None:
    tool = read_file(workspace)
    for arguments in ({}, {"path": ""}, {"path": "a", "start_line": 0}, {"path": "a", "other": 1}, {"path": 3}):
        with pytest.raises(ToolInputInvalid):
            tool.checked(arguments)


def test_it_only_reads_and_its_identity_names_the_folder(workspace: Workspace) -> None:
    tool = read_file(workspace)
    assert (tool.tool_class, tool.effects) == (ToolClass.READ_ONLY, {Effect.READ})
    assert str(workspace.folder) in tool.identity
    assert tool.spec.input_schema["additionalProperties"] is False
