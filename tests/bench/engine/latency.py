"""The time from the last byte of a call to the start of its tool: over a socket, through a dialect, journalled."""

import asyncio
import contextlib
import sqlite3
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from desktop_agent.processes.worker_threads import WorkerThread
from desktop_agent.providers.provider import make_provider
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.storage.store import Store
from tests.bench.engine.calling_server import served
from tests.bench.engine.sessions import Noting, say, set_up, stored_session

CALLS = 400
PER_SESSION = 20


def measured() -> dict[str, Any]:
    """Return milliseconds, and multiples of the least possible: a durable commit by another thread, between calls."""
    bare: list[float] = []
    with served() as port:
        started = asyncio.run(_started(port, bare))
    figures = {"tool_start_ms": _spread(started), "one_commit_ms": _spread(bare)}
    medians = (statistics.median(started), statistics.median(bare))
    return {
        "calls": len(started),
        **figures,
        "median_over_one_commit": round(medians[0] / medians[1], 2),
        "p99_over_p99_of_one_commit": round(_p99(started) / _p99(bare), 2),
    }


async def _started(port: int, bare: list[float]) -> list[float]:
    noting = Noting(time.monotonic)
    http = HttpClient()
    provider = make_provider("openai-chat", f"http://127.0.0.1:{port}/v1", None, http)
    with _OneCommit() as commit:
        try:
            for session in range(CALLS // PER_SESSION + 1):
                async with stored_session(set_up(provider, noting.tool)) as stored:
                    for _ in range(PER_SESSION):
                        await say(stored)
                        bare.append(await commit.seconds())
                if session == 0:
                    # The first calls import modules that are loaded late.
                    noting.seconds.clear()
                    bare.clear()
        finally:
            await provider.aclose()
            await http.aclose()
    return noting.seconds


class _OneCommit:
    """Makes one row durable in another thread, as the store does, with one message to the thread and one back."""

    def __enter__(self) -> Self:
        self._folder = TemporaryDirectory(prefix="bench-commit-")
        self._worker = WorkerThread("commit")
        self._worker.submit(self._open).result()
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.submit(self._connection.close).result()
        self._worker.stop()
        self._folder.cleanup()

    async def seconds(self) -> float:
        began = time.perf_counter()
        await self._worker.run(self._write)
        return time.perf_counter() - began

    def _open(self) -> None:
        asyncio.run(_create_database(Path(self._folder.name)))
        file = next(Path(self._folder.name).glob("*.sqlite3"))
        self._connection = sqlite3.connect(file, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("CREATE TABLE bare (row TEXT)")

    def _write(self) -> None:
        self._connection.execute("INSERT INTO bare VALUES (?)", ("x" * 200,))


async def _create_database(folder: Path) -> None:
    with contextlib.suppress(FileExistsError):
        await (await Store.open(folder)).close()


def _spread(seconds: list[float]) -> dict[str, float]:
    return {"median": round(statistics.median(seconds) * 1000, 3), "p99": round(_p99(seconds) * 1000, 3)}


def _p99(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=100)[-1]
