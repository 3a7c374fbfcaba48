"""The official suite (https://github.com/modelcontextprotocol/conformance), its client half, run once for all tests."""

import asyncio
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance.client import act
from tests.desktop_agent.mcp.reference_servers import node_package
from tests.frame.node import NODE
from tests.frame.patience import PATIENCE

VERSION = "0.1.16"
HERE = Path(__file__).parent
WHOLE = 800
"""Seconds until all of it is given up."""


_TIME = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z$")


@dataclass(frozen=True)
class Outcome:
    """Of one scenario: what failed, in the suite's words, and what our side says of it."""

    failed: tuple[str, ...]
    passed: int
    told: str


async def outcomes(folder: Path) -> dict[str, Outcome]:
    """Of all scenarios. Skips the test where the suite cannot be had."""
    script = node_package(f"@modelcontextprotocol/conformance@{VERSION}") / "dist/index.js"
    told: dict[str, str] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        scenario, url, context = [(await reader.readline()).decode().strip() for _ in range(3)]
        told[scenario] = await _acted(scenario, url, json.loads(context), folder / scenario.replace("/", "-"))
        writer.write(told[scenario].encode())
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    end = folder / "end"
    async with await asyncio.start_unix_server(serve, end):
        command = f"{sys.executable} -S -E {HERE / 'relay.py'} {end}"
        words = ["client", "--command", command, "--suite", "all", "--timeout", str(int(PATIENCE * 1000))]
        process = await asyncio.create_subprocess_exec(
            *(NODE, "--import", str(HERE / "old_node.mjs"), str(script), *words, "-o", str(folder / "out")),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=folder,
        )
        try:
            async with asyncio.timeout(WHOLE):
                said, _ = await process.communicate()
        except TimeoutError:
            process.kill()
            said, _ = await process.communicate()
    out = folder / "out"
    paths = {_name(path, out): path for path in out.rglob("checks.json")}
    found = {name: _outcome(path, told.get(name, "")) for name, path in paths.items()}
    assert found, said.decode()[-3_000:]
    return found


async def _acted(scenario: str, url: str, context: Any, folder: Path) -> str:
    await asyncio.to_thread(folder.mkdir)
    try:
        async with asyncio.timeout(PATIENCE - 2):
            await act(scenario, url, context, folder)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "done"


def _name(path: Path, out: Path) -> str:
    """Folders are named after the scenario, with the time at the end."""
    return _TIME.sub("", path.parent.relative_to(out).as_posix())


def _outcome(path: Path, told: str) -> Outcome:
    checks = json.loads(path.read_text())
    failed = tuple(
        f"{each['id']}: {each.get('errorMessage') or each['description']}"
        for each in checks
        if each["status"] in ("FAILURE", "WARNING") and not _is_of_a_busy_machine(each)
    )
    return Outcome(failed, sum(each["status"] == "SUCCESS" for each in checks), told)


def _is_of_a_busy_machine(check: dict[str, Any]) -> bool:
    """Return whether all that is said is that something came late; what comes too early is our fault."""
    return check["id"] == "client-sse-retry-timing" and " late (" in check.get("errorMessage", "")
