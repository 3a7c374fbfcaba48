"""How long the store takes to open, to list, to load one conversation and to append, by the number of messages.

    python -m tests.bench.bench_store [messages …]

Figures are medians in milliseconds; the database is made with plain SQL, one hundred messages to a conversation.
"""

import asyncio
import json
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from desktop_agent.storage.store import Store
from desktop_agent.types.engine_events import Envelope
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta

SIZES = (10_000, 1_000_000)
PER_CONVERSATION = 100
ROUNDS = 7
SHOWN = 200
"""Number of conversations that a sidebar reads first."""


def run(sizes: tuple[int, ...] = SIZES) -> dict[str, dict[str, float]]:
    """Return the figures by number of messages; all in milliseconds except `megabytes`."""
    return {str(size): _measured(size) for size in sizes}


def _measured(size: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="bench-store-") as name:
        folder = Path(name)
        _generate(folder, size)
        figures = asyncio.run(_figures(folder))
        return {**figures, "megabytes": (folder / "conversations.sqlite3").stat().st_size / 1e6}


def _generate(folder: Path, size: int) -> None:
    asyncio.run(_create(folder))
    count = size // PER_CONVERSATION
    text = "Some words of a message, about five hundred and fifty characters of them, as is usual. " * 6
    body = Message.assistant(text).model_dump_json()
    created_at = "2026-01-01T00:00:00+00:00"
    with closing(sqlite3.connect(folder / "conversations.sqlite3")) as db, db:
        db.executemany(
            "INSERT INTO conversations (number, id, title, title_is_automatic, created_at, updated_at, head,"
            " message_count) VALUES (?, ?, ?, 1, ?, ?, ?, ?)",
            (
                (n, f"c{n:031d}", f"Conversation {n}", n * 10**6, n * 10**6, n * PER_CONVERSATION, PER_CONVERSATION)
                for n in range(1, count + 1)
            ),
        )
        # In turn, as after long use: the messages of a conversation are not neighbours on the disk.
        db.executemany(
            "INSERT INTO messages (number, conversation, id, parent, position, role, state, created_at, body)"
            " VALUES (?, ?, ?, ?, ?, 'assistant', 'complete', ?, ?)",
            (
                (n * count + c, c, f"{n:016d}{c:016d}", (n - 1) * count + c if n else None, n + 1, created_at, body)
                for n in range(PER_CONVERSATION)
                for c in range(1, count + 1)
            ),
        )
        db.execute(
            "UPDATE conversations SET head = (SELECT max(number) FROM messages"
            " WHERE messages.number = ? * ? + conversations.number)",
            (PER_CONVERSATION - 1, count),
        )


async def _create(folder: Path) -> None:
    await (await Store.open(folder)).close()


async def _figures(folder: Path) -> dict[str, float]:
    opened: list[float] = []
    usable: list[float] = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        store = await Store.open(folder)
        opened.append(time.perf_counter() - start)
        await store.list_conversations(limit=SHOWN)
        usable.append(time.perf_counter() - start)
        await store.close()
    store = await Store.open(folder)
    records = await store.list_conversations()
    ids = [record.id for record in records[:: max(1, len(records) // ROUNDS)]][:ROUNDS]
    figures = {
        "open": _median(opened),
        "open and list 200": _median(usable),
        "list all": await _timed([store.list_conversations] * ROUNDS),
        "load a conversation of 100": await _timed([_loading(store, id_) for id_ in ids]),
        "commit one message": await _timed([_committing(store, ids[0]) for _ in range(30)]),
        "append 10 journal rows": await _timed([_appending(store, ids[0], n * 10) for n in range(30)]),
    }
    await store.close()
    return figures


def _loading(store: Store, id_: str) -> Callable[[], Awaitable[Any]]:
    return lambda: store.load(id_)


def _committing(store: Store, id_: str) -> Callable[[], Awaitable[Any]]:
    return lambda: store.commit(id_, Message.user("A new message."))


def _appending(store: Store, id_: str, first: int) -> Callable[[], Awaitable[Any]]:
    rows = [Envelope(first + n, "run", None, None, datetime.now(UTC), ContentDelta("piece ")) for n in range(10)]
    return lambda: store.append_journal(id_, rows)


async def _timed(calls: list[Callable[[], Awaitable[Any]]]) -> float:
    seconds: list[float] = []
    for call in calls:
        start = time.perf_counter()
        await call()
        seconds.append(time.perf_counter() - start)
    return _median(seconds)


def _median(seconds: list[float]) -> float:
    return round(statistics.median(seconds) * 1000, 2)


if __name__ == "__main__":
    print(json.dumps(run(tuple(map(int, sys.argv[1:])) or SIZES), indent=2))
