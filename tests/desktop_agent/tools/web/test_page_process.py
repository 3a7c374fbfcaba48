"""The kernel confines the process that reads a page, whatever native code in it tries."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from desktop_agent.tools.web import page_process
from desktop_agent.tools.web.pages import _ENCODINGS, WebPageReader
from desktop_agent.types.errors import ToolFailed
from tests.desktop_agent.tools.commands.sandboxes import working_sandbox
from tests.desktop_agent.tools.web.native import DEEDS, reader_with_deeds
from tests.desktop_agent.tools.web.page_set import PAGES

ADDRESS = "https://docs.example.org/lib/page.html"
LOOSE = "kernel_limits.confine_worker = lambda **_: None"
NO_FILTER = "def refuse(*_): raise OSError\nkernel_limits.install_filter = refuse"
NO_LANDLOCK = "def refuse(*_): raise OSError\nkernel_limits.landlock_version = refuse"
EXECUTE = "libc.execve(words[0], words, None); return {'title': '', 'text': 'refused', 'hidden': 0, 'cut': False}"
# A container may refuse these to everybody.
RARE = {"trace", "memory", "ring", "key"}


@pytest.fixture(autouse=True)
def _can_be_held() -> None:  # pyright: ignore[reportUnusedFunction]
    working_sandbox("Landlock")


@pytest.fixture
def victim() -> Iterator[int]:
    """A process of the same person."""
    with subprocess.Popen(["/bin/sleep", "60"]) as process:
        yield process.pid
        process.kill()


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def deed_results(reader: WebPageReader) -> dict[str, int]:
    return json.loads((await reader.read("y", ADDRESS)).text)


async def test_code_in_c_can_open_connect_and_signal_nothing(tmp_path: Path, victim: int):
    results = await deed_results(reader_with_deeds(tmp_path, victim))
    assert results == dict.fromkeys(DEEDS, -1)
    assert names_in(tmp_path) == ["other", "there", "third"]


async def test_without_confinement_all_of_this_is_done(tmp_path: Path, victim: int):
    results = await deed_results(reader_with_deeds(tmp_path, victim, before=LOOSE))
    assert {name for name, answer in results.items() if answer < 0} <= RARE
    assert names_in(tmp_path) == ["moved", "new", "there"]


@pytest.mark.parametrize(("before", "text"), [("", "refused"), (LOOSE, "it was run")])
async def test_no_program_is_executed(tmp_path: Path, before: str, text: str):
    assert (await reader_with_deeds(tmp_path, 0, before=before, deed=EXECUTE).read("y", ADDRESS)).text == text


@pytest.mark.parametrize(
    ("before", "refused"), [(NO_FILTER, {"open", "create", "list", "remove"}), (NO_LANDLOCK, set(DEEDS))]
)
async def test_each_of_the_two_holds_alone(tmp_path: Path, victim: int, before: str, refused: set[str]):
    results = await deed_results(reader_with_deeds(tmp_path, victim, before=before))
    assert {name for name, answer in results.items() if answer < 0} >= refused


async def test_where_the_kernel_has_neither_python_refuses(tmp_path: Path, victim: int):
    neither = "def refuse(*_): raise OSError\nkernel_limits.landlock_version = kernel_limits.install_filter = refuse"
    assert (await deed_results(reader_with_deeds(tmp_path, victim, before=neither)))["open"] >= 0
    with pytest.raises(ToolFailed, match="could not be read"):
        await reader_with_deeds(tmp_path, 0, before=neither, deed="open(there)").read("y", ADDRESS)


# Markup for which Python and the libraries load code late: codecs, international host names, numeric addresses.
ODD = "".join(f"<meta charset='{each}'><p>x" for each in sorted(_ENCODINGS)) + (
    "<base href='http://[::1]:80/'><a href='http://bücher.example/ä?ö#ü'>a</a><a href='http://[v1.x]/'>b</a>"
    "<a href='http://℀.example/'>c</a><a href='http://[::ffff:1.2.3.4'>d</a><img alt=é src='//xn--bcher-kva.example'>"
    "<ol start=٣><li>e</ol><p>\N{ZERO WIDTH JOINER}\ud7ff\U0010ffff&nvlt;&#x80;"
)


async def test_nothing_is_loaded_once_it_is_closed_in(tmp_path: Path):
    before = (
        "late, closed = [], []\n"
        "sys.addaudithook(lambda event, given: closed and event == 'import' and late.append(given[0]))"
    )
    deed = (
        "closed.append(1)\n"
        "    found = [true(each, base)['text'] for each in json.loads(html)]\n"
        "    return {'title': '', 'text': json.dumps([late, *found]), 'hidden': 0, 'cut': False}"
    )
    pages = [ODD, *(page.html for page in PAGES.values())]
    result = await reader_with_deeds(tmp_path, 0, before=before, deed=deed).read(json.dumps(pages), ADDRESS)
    late, *texts = json.loads(result.text)
    assert late == []
    assert texts == [page_process.read_page(html, ADDRESS)["text"] for html in pages]
