"""Pages are read in a process that ends, whatever is in them."""

import asyncio
import sys

import pytest

from desktop_agent.tools.web import page_process
from desktop_agent.tools.web.pages import WebPageReader
from desktop_agent.types.errors import ToolFailed
from tests.desktop_agent.tools.web.page_set import PAGES
from tests.desktop_agent.tools.web.pages import STYLES
from tests.frame.patience import PATIENCE
from tests.frame.selection import few

ADDRESS = "https://docs.example.org/lib/page.html"


async def test_the_same_as_without_a_process():
    for html, expected in STYLES.values():
        assert (await WebPageReader().read(html, ADDRESS)).text == expected
    for page in PAGES.values():
        assert (await WebPageReader().read(page.html, ADDRESS)).text == page_process.read_page(page.html, ADDRESS)[
            "text"
        ]


N = 50_000
HOSTILE = {
    "nested tables": "<table><tr><td>" * (N // 15) + "x",
    "nested": "<div>" * N + "x",
    "nested lists": "<ul><li>" * (N // 8) + "x",
    "open ends": "<p>" * N + "x",
    "large text": "word " * 2_000_000 + "x",
    "laughs": '<!DOCTYPE l [<!ENTITY a "lol"><!ENTITY b "&a;&a;">' + "&b;" * 1000 + "]><p>x",
    "long references": "&#" + "9" * 100_000 + ";x",
    "many references": "&amp;" * N + "x",
    "attributes": "<a " + "a=b " * N + ">x",
    "long attribute": f"<a href='/{'y' * N}'>x</a>",
    "long name": f"<{'y' * N}>x",
    "marks": f"<pre>{'`' * N}</pre>x",
    "spaces": "<p>" + " " * N + "x",
    "wide table": "<table><tr>" + "<td>y" * 50_000 + "</table>x",
    "broken tags": "<a " * 300_000 + ">x",
    "broken comments": "<!--" * 300_000 + "-->x",
    "broken attributes": '<a b="' * 200_000 + '">x',
    "beside": "<nav>y</nav><p>y" * (N // 5) + "x",
    "lists beside": "<ul>" + "<li>y</li>" * (N // 5) + "<ul><li>y</li></ul>" * (N // 5) + "</ul>x",
    "long list": "<ol>" + "<li>y" * N + "</ol>x",
    "numbered code": "<pre>" + "<span class=linenos>1</span>y\n" * N + "</pre>x",
    "spans": "<table><tr>" + "<td colspan=999>y" * 1_000 + "<tr><td>z</table>x",
    "tall": "<table>" + "<tr><td rowspan=9999 colspan=999>y" * 1_000 + "</table>x",
}


@pytest.mark.parametrize("name", few(HOSTILE, 3, "each is a process of its own; every eighth on a push"))
async def test_hostile_pages_are_read_all_the_same(name):
    html = HOSTILE[name]
    # The limit of processor time still holds.
    patient = WebPageReader(timeout=PATIENCE)
    page = await patient.read(html, ADDRESS)
    assert (
        page.cut
        if len(html) > page_process.MAX_ANSWER_LENGTH
        else page.text.rstrip().rstrip(")").endswith(("x", f"{'y' * 10}"))
    )


# Each start tag searches all open elements for one that it would close.
FOR_EVER = "<div>" * 400_000


@pytest.mark.parametrize("html", [FOR_EVER, "<b><p>" * 100_000])
async def test_what_takes_for_ever_is_ended(html, new_children):
    reader = WebPageReader()
    impatient = WebPageReader(reader.command, timeout=1.0)
    with pytest.raises(ToolFailed, match="took longer than 1 seconds"):
        await impatient.read(html, ADDRESS)
    assert not new_children()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
async def test_what_uses_up_its_time_of_the_processor_is_said_to_be_slow() -> None:
    *words, program = confined("while True: pass").command
    patched = (
        "limits = worker_process.WorkerLimits\n"
        "worker_process.WorkerLimits = lambda **given: limits(**{**given, 'seconds': 1.0})\n"
    )
    quick = program.replace("page_process.read_page = read\n", f"page_process.read_page = read\n{patched}")
    with pytest.raises(ToolFailed, match="took longer than 15 seconds"):
        await WebPageReader((*words, quick)).read("y", ADDRESS)


async def test_a_cancel_ends_the_process(new_children):
    task = asyncio.create_task(WebPageReader().read(FOR_EVER, ADDRESS))
    while not new_children():
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not new_children()


def confined(code: str) -> WebPageReader:
    """Return a reader with the real child, which runs this code for a page."""
    program = (
        f"import sys; sys.path.insert(0, {str(page_process.__file__).partition('/desktop_agent/')[0]!r})\n"
        "from desktop_agent.processes import worker_process\n"
        "from desktop_agent.tools.web import page_process\n"
        "true = page_process.read_page\n"
        "def read(html, base):\n"
        "    if html == page_process.WARM_UP_PAGE: return true(html, base)\n"
        f"    {code}\n"
        "page_process.read_page = read\n"
        "sys.exit(worker_process.main())\n"
    )
    return WebPageReader((sys.executable, "-I", "-B", "-c", program))


@pytest.mark.parametrize(
    "code",
    [
        "x = bytearray(3_000_000_000)",
        "open('/etc/hostname').read()",
        "import socket; socket.create_connection(('127.0.0.1', 1))",
        "import os; os.system('true')",
        "import os; os.remove('/nothing')",
        "raise RecursionError",
    ],
)
async def test_the_process_is_confined(code):
    if "3_000" in code and sys.platform == "win32":
        pytest.skip("Windows has no such limit")
    with pytest.raises(ToolFailed, match="could not be read"):
        await confined(code + "; return {'title': '', 'text': 'out', 'hidden': 0, 'cut': False}").read("y", ADDRESS)


async def test_the_confined_child_of_these_tests_works():
    reader = confined("return {'title': '', 'text': 'out', 'hidden': 0, 'cut': False}")
    assert (await reader.read("y", ADDRESS)).text == "out"


WHOLE = '{"title": "", "text": "", "hidden": 0, "cut": false}'


@pytest.mark.parametrize("code", ["print('nonsense')", "pass", "print('{}')", f"print({WHOLE!r}); exit(1)"])
async def test_a_child_that_says_nothing_of_use(code):
    with pytest.raises(ToolFailed, match="could not be read"):
        await WebPageReader((sys.executable, "-c", code)).read("x", ADDRESS)
