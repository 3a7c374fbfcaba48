"""Search in the files of a workspace, by a process that can be ended."""

import asyncio
import subprocess
import sys

import pytest

from desktop_agent.tools.files import search_tools as module
from desktop_agent.tools.files.search_tools import MAX_MATCHES, search_files
from desktop_agent.tools.tool import RunningCall
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.errors import OutsideWorkspace, ToolFailed, ToolInputInvalid
from desktop_agent.types.permissions import PathSubject
from tests.frame.children import Children
from tests.frame.patience import PATIENCE

HOSTILE = "(a+)+$"
BAIT = "a" * 60 + "!"


async def search(workspace: Workspace, pattern: str, *, seconds: float = module.SEARCH_SECONDS, **more: object) -> str:
    tool = search_files(workspace, timeout=seconds)
    (part,) = await tool.run(tool.checked({"pattern": pattern, **more}), RunningCall("1", lambda _: None))
    return part.text  # type: ignore[union-attr]


def test_the_process_loads_nothing_that_it_does_not_need() -> None:
    code = (
        "import sys, desktop_agent.tools.files.search_process; "
        "sys.exit('asyncio' in sys.modules or 'pydantic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_matches_have_path_number_and_line(workspace: Workspace) -> None:
    (workspace.folder / "sub").mkdir()
    (workspace.folder / "a.py").write_bytes(b"import os\r\nx = (1)\r\n")
    (workspace.folder / "sub/b.py").write_text("y\nz = (1)\n")
    (workspace.folder / "c.txt").write_text("(1)")
    output = await search(workspace, "(1)")
    assert output == "a.py\n     2: x = (1)\n\nc.txt\n     1: (1)\n\nsub/b.py\n     2: z = (1)"
    assert await search(workspace, "(1)", names="*.py", path="sub") == "sub/b.py\n     2: z = (1)"
    assert await search(workspace, "(1)", path="c.txt") == "c.txt\n     1: (1)"


async def test_expressions_case_and_context(workspace: Workspace) -> None:
    (workspace.folder / "a").write_text("one\nTWO\nthree\nfour\nTwo\n")
    assert await search(workspace, "^two$", is_expression=True, ignore_case=True, context=1) == (
        "a\n     1  one\n     2: TWO\n     3  three\n--\n     4  four\n     5: Two"
    )
    assert "[No match in 1 text files.]" in await search(workspace, "two")
    assert "[No match" in await search(workspace, "t.o")


async def test_an_expression_that_matches_nothing_everywhere_names_each_line_once(workspace: Workspace) -> None:
    (workspace.folder / "a").write_text("ab\n\nc\n")
    assert await search(workspace, "x*", is_expression=True) == "a\n     1: ab\n     2: \n     3: c"


async def test_a_hostile_expression_is_ended_and_what_was_found_stays(
    workspace: Workspace, new_children: Children
) -> None:
    (workspace.folder / "a").write_text("aaa")
    (workspace.folder / "b").write_text(BAIT)
    (workspace.folder / "c").write_text("aaa")
    output = await search(workspace, HOSTILE, is_expression=True, seconds=3)
    assert output.startswith("a\n     1: aaa\n[Stopped after 3 s in b;")
    assert not new_children()


async def test_stop_ends_the_search(workspace: Workspace, new_children: Children) -> None:
    (workspace.folder / "b").write_text(BAIT)
    task = asyncio.ensure_future(search(workspace, HOSTILE, is_expression=True))
    async with asyncio.timeout(PATIENCE):
        while not new_children():
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not new_children()


async def test_binary_large_and_hidden_files_are_passed_over(workspace: Workspace) -> None:
    (workspace.folder / "binary").write_bytes(b"needle\0")
    (workspace.folder / ".hidden").write_text("needle")
    with (workspace.folder / "large").open("wb") as file:
        file.write(b"needle")
        file.truncate(10_000_001)
    assert await search(workspace, "needle") == "[No match in 0 text files. 1 file above 10 MB not looked at.]"


async def test_only_so_many_matches_and_so_much_of_a_line(workspace: Workspace) -> None:
    (workspace.folder / "a").write_text("needle\n" * 500)
    *lines, note = (await search(workspace, "needle")).split("\n")
    assert len(lines) == MAX_MATCHES + 1
    assert note == "[Stopped after 200 matches; make the search narrower to see others.]"
    (workspace.folder / "a").write_text("x" * 5_000 + "needle" + "y" * 5_000)
    output = await search(workspace, "needle")
    assert "needle" in output
    assert len(output) < 400


async def test_what_cannot_be_looked_for_says_why(workspace: Workspace) -> None:
    for pattern in ("(", "a{99999999999}", "(" * 499 + ")" * 499):
        with pytest.raises(ToolFailed, match="cannot be read"):
            await search(workspace, pattern, is_expression=True)
    with pytest.raises(ToolFailed, match="There is no"):
        await search(workspace, "x", path="none")
    with pytest.raises(OutsideWorkspace):
        await search(workspace, "x", path="..")
    with pytest.raises(ToolFailed, match="pattern of names"):
        await search(workspace, "x", names="*" * 30)
    with pytest.raises(ToolInputInvalid):
        await search(workspace, "")


async def test_a_name_with_a_line_end_is_one_line(workspace: Workspace) -> None:
    (workspace.folder / "a\n     1: fake").write_text("needle")
    assert len((await search(workspace, "needle")).split("\n")) == 2


async def test_the_process_gets_nothing_of_the_environment(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, new_children: Children
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "x")
    (workspace.folder / "b").write_text(BAIT)
    task = asyncio.ensure_future(search(workspace, HOSTILE, is_expression=True))
    async with asyncio.timeout(PATIENCE):
        while not (children := new_children()) or "--child" not in children[0].cmdline():
            await asyncio.sleep(0.01)
    assert set(children[0].environ()) <= {"PATH", "SYSTEMROOT", "LC_CTYPE"}
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_search_asks_only_about_its_folder(workspace: Workspace) -> None:
    tool = search_files(workspace)
    assert tool.subjects
    assert await tool.subjects(tool.checked({"pattern": "x"})) == (PathSubject(workspace.folder.as_posix()),)
