"""The examples of the README are whole programs: each runs as it stands there, against the demo."""

import asyncio
import json
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
PRINTED = {
    "query": ("demo model",),
    "client with a tool": ("I will call `calculate`.", "`calculate` **succeeded**", "6 * 7 = 42", "output_tokens="),
    "by hand": ("I will call `calculate`.", "`calculate` **succeeded**", "6 * 7 = 42"),
    "stop": ("Text\ncancelled interrupted",),
    "approvals and hooks": ("asked about write_file It writes.", "`write_file` **succeeded**", "['notes/hello.txt']"),
    "two phases": ("I will call `calculate`.", "`calculate` answered", "42"),
    "specialist": ("demo model", "19 * 21 = 399"),
}


def test_all_examples_were_found() -> None:
    assert len(EXAMPLES) == len(PRINTED)


# Each as a program of its own in one process: to load the library for each would take ten times as long as to run them.
RUN_ALL = """
import json, sys
for code in json.load(sys.stdin):
    exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})
    print(chr(0), flush=True)
"""


async def printed(*codes: str) -> list[str]:
    """What each of them prints, one after the other in one process, which must have nothing to complain about."""
    async with demo(speed=20) as served:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-W", "error", "-c", RUN_ALL),
            cwd=ROOT,
            env={
                **os.environ,
                "DESKTOP_AGENT_BASE_URL": served.base_url,
                "DESKTOP_AGENT_MODEL": "demo",
                "PYTHONIOENCODING": "utf-8",
            },
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(LIMIT * 3):
                out, err = await process.communicate(json.dumps(codes).encode())
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    assert (err.decode(), process.returncode) == ("", 0)
    *outputs, _ = out.decode().split("\0")
    return outputs


async def test_the_examples_run_as_they_stand() -> None:
    for (name, words), text in zip(PRINTED.items(), await printed(*EXAMPLES), strict=True):
        assert [word for word in words if word not in text] == [], name


@pytest.mark.exhaustive("test_the_examples_run_as_they_stand, one after the other")
@pytest.mark.parametrize("number", range(len(PRINTED)), ids=list(PRINTED))
async def test_an_example_runs_in_a_process_of_its_own(number: int) -> None:
    (text,) = await printed(EXAMPLES[number])
    assert [word for word in list(PRINTED.values())[number] if word not in text] == []
