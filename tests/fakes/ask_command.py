"""`ask` in a test: in this process with captured output, or as a child."""

import asyncio
import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.__main__ import main
from tests.fakes.http_server import Loopback
from tests.frame.patience import PATIENCE

ROOT = Path(__file__).parents[2]
LIMIT = PATIENCE
"""Seconds until a child that does not end fails its test."""


@dataclass(frozen=True)
class Asked:
    """The exit code and the output of one `ask`."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        """The lines of --jsonl."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def conversation(self) -> str:
        """The id of the conversation, which a later `ask` can continue."""
        return next(line.split()[1] for line in self.err.splitlines() if line.startswith("conversation "))


@contextmanager
def serving(server: Loopback) -> Iterator[Loopback]:
    """Run the server on an event loop of its own, in a thread: `ask` starts its own loop."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="server")
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(LIMIT)
        try:
            yield server
        finally:
            asyncio.run_coroutine_threadsafe(server.__aexit__(), loop).result(LIMIT)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class Asker:
    """Runs `ask` with a data folder of its own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def words(self, *words: str, server: Loopback | None = None) -> list[str]:
        address = ["--base-url", server.url, "--model", "m"] if server else []
        return ["ask", "--data-dir", str(self.folder), *address, *words]

    def __call__(self, *words: str, server: Loopback | None = None) -> Asked:
        """Run `ask` in this process. The SystemExit of wrong arguments becomes an exit code too."""
        self._capsys.readouterr()
        try:
            code = main(self.words(*words, server=server))
        except SystemExit as end:
            code = int(end.code or 0)
        out, err = self._capsys.readouterr()
        return Asked(code, out, err)

    async def child(
        self,
        *words: str,
        server: Loopback | None = None,
        stdin: bytes | None = None,
        environment: dict[str, str] | None = None,
    ) -> Asked:
        """Run `ask` in a process of its own, and wait for its end."""
        process = await self.start(*words, server=server, stdin=stdin is not None, environment=environment)
        return await finished(process, stdin)

    async def start(
        self,
        *words: str,
        server: Loopback | None = None,
        stdin: bool = False,
        environment: dict[str, str] | None = None,
        stdout: int = asyncio.subprocess.PIPE,
    ) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "desktop_agent",
            *self.words(*words, server=server),
            cwd=ROOT,
            env={**os.environ, "PYTHONWARNINGS": "error", **(environment or {})},
            stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
            stdout=stdout,
            stderr=asyncio.subprocess.PIPE,
        )


async def finished(process: asyncio.subprocess.Process, stdin: bytes | None = None) -> Asked:
    try:
        async with asyncio.timeout(LIMIT):
            out, err = await process.communicate(stdin)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Asked(process.returncode or 0, (out or b"").decode(), err.decode())
