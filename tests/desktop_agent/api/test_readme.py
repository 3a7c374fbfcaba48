"""The examples of the README are whole programs: each runs as it stands there, against the demo."""

import asyncio
import os
import re
import sys

import pytest

from tests.fakes.ask_command import ROOT
from tests.fakes.demo_server import demo
from tests.fakes.library import LIMIT

SECTION = re.search(
    r"^## As a library$(.*?)^## ", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)
EXAMPLES: list[str] = re.findall(
    r"^```python\n(.*?)^```$", SECTION.group(1) if SECTION else "", re.MULTILINE | re.DOTALL
)
# What each prints, in the order in which they stand there.
SAID = {
    "query": ("demo model",),
    "client with a tool": ("I will call `calculate`.", "`calculate` **succeeded**", "6 * 7 = 42", "output_tokens="),
    "by hand": ("I will call `calculate`.", "`calculate` **succeeded**", "6 * 7 = 42"),
    "stop": ("Text\ncancelled interrupted",),
    "approvals and hooks": ("asked about write_file It writes.", "`write_file` **succeeded**", "['notes/hello.txt']"),
    "two phases": ("I will call `calculate`.", "`calculate` answered", "42"),
    "specialist": ("demo model", "19 * 21 = 399"),
}


def test_all_examples_were_found() -> None:
    assert len(EXAMPLES) == len(SAID)


@pytest.mark.parametrize("number", range(len(SAID)), ids=list(SAID))
async def test_an_example_runs_as_it_stands(number: int) -> None:
    async with demo(speed=20) as served:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-W", "error", "-c", EXAMPLES[number]),
            cwd=ROOT,
            env={
                **os.environ,
                "DESKTOP_AGENT_BASE_URL": served.base_url,
                "DESKTOP_AGENT_MODEL": "demo",
                "PYTHONIOENCODING": "utf-8",
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(LIMIT * 3):
                out, err = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    assert (err.decode(), process.returncode) == ("", 0)
    for words in list(SAID.values())[number]:
        assert words in out.decode()
