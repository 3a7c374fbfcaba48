"""How long it takes to read, show and scroll the list of conversations, by their number.

    python -m tests.bench.bench_list [conversations …]

Figures are medians in milliseconds, of a real store and a real sidebar without a screen. The slowest page is what a
person notices who scrolls to the end.
"""

import asyncio
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication

from desktop_agent.storage.store import Store
from ui.bridge.conversation_listing import PAGE
from ui.sidebar.conversation_list import ConversationList
from ui.style.theme import ThemeSource

SIZES = (10_000, 100_000)
ROUNDS = 7
NEWEST = 1_790_000_000
"""When the newest conversation was written, in seconds since 1970; the others are half an hour apart."""


def run(sizes: tuple[int, ...] = SIZES) -> dict[str, dict[str, float]]:
    """Return the figures by number of conversations."""
    return {str(size): _measured(size) for size in sizes}


def _measured(size: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="bench-list-") as name:
        folder = Path(name)
        asyncio.run(_generate(folder, size))
        return asyncio.run(_figures(folder))


async def _generate(folder: Path, size: int) -> None:
    await (await Store.open(folder)).close()
    parameters, state = json.dumps({"temperature": 0.5, "system": "Be brief. " * 20}), json.dumps({"queue": []})
    with closing(sqlite3.connect(folder / "conversations.sqlite3")) as db, db:
        db.executemany(
            "INSERT INTO conversations (id, title, title_is_automatic, created_at, updated_at, parameters, state)"
            " VALUES (?, ?, 1, ?, ?, ?, ?)",
            (
                (f"c{n:031d}", f"Conversation {n} about something", written_at, written_at, parameters, state)
                for n in range(size)
                for written_at in ((NEWEST - (size - n) * 1800) * 1_000_000,)
            ),
        )


async def _figures(folder: Path) -> dict[str, float]:
    store = await Store.open(folder)
    figures = {"read the first page": await _timed(lambda: store.list_page(PAGE))}
    pages: list[float] = []
    rows, following = await store.list_page(PAGE)
    while following is not None:
        start = time.perf_counter()
        page, following = await store.list_page(PAGE, following)
        pages.append(time.perf_counter() - start)
        rows += page
    figures |= {
        "read a further page": _median(pages),
        "longest further page": round(max(pages) * 1000, 2),
        "read all again": await _timed(lambda: store.list_page(len(rows))),
        "all full records, as before": await _timed(store.list_conversations),
    }
    await store.close()
    return figures | _window_figures(rows)


def _window_figures(rows: tuple[Any, ...]) -> dict[str, float]:
    app = QApplication.instance() or QApplication([])
    pane = ConversationList(ThemeSource())
    pane.resize(260, 800)
    pane.show()
    pane.set_conversations(rows[:PAGE])
    app.processEvents()
    view = pane.view
    figures = {"show the first page again": _shown(app, pane, rows[:PAGE])}
    figures["show all, one moved to the top"] = _shown(app, pane, rows)
    bar = view.verticalScrollBar()
    steps: list[float] = []
    for position in range(0, bar.maximum(), max(1, bar.maximum() // 200)):
        start = time.perf_counter()
        bar.setValue(position)
        view.viewport().grab()
        steps.append(time.perf_counter() - start)
    figures["scroll and paint, median"] = _median(steps)
    figures["scroll and paint, longest"] = round(max(steps) * 1000, 2)
    pane.deleteLater()
    return figures


def _shown(app: Any, pane: ConversationList, rows: tuple[Any, ...]) -> float:
    """Return the time of showing rows of which another one is at the top each time, as after an answer."""
    seconds: list[float] = []
    for number in range(1, ROUNDS + 1):
        changed = (rows[number], *rows[:number], *rows[number + 1 :])
        start = time.perf_counter()
        pane.set_conversations(changed)
        app.processEvents()
        seconds.append(time.perf_counter() - start)
    return _median(seconds)


async def _timed(call: Callable[[], Any]) -> float:
    seconds: list[float] = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        await call()
        seconds.append(time.perf_counter() - start)
    return _median(seconds)


def _median(seconds: list[float]) -> float:
    return round(statistics.median(seconds) * 1000, 2)


if __name__ == "__main__":
    print(json.dumps(run(tuple(map(int, sys.argv[1:])) or SIZES), indent=2))
