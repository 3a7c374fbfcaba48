"""How the costs of a data folder grow up to a million messages in 100,000 conversations.

    python -m tests.bench.history_growth [--folder PLACE] [messages …]

Ten messages a conversation, of about 1.8 kB each (tests/bench/bench_search.py): 2 GB, and half as much for the index.
Each size is measured in a separate process. Times are milliseconds. `exponents` are from each size to the next, of
processor time where it was measured; 1 means proportional to the number of messages. The index is made as in the
background, but at full speed. Memory is by how much the process grew since before the folder was opened.
"""

import argparse
import asyncio
import gc
import json
import math
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from desktop_agent.storage.store import Store
from desktop_agent.types.messages import Message
from tests.bench.bench_search import PER_CONVERSATION, Language, generate, index_size, quantile, query_figures
from ui.bridge.conversation_listing import PAGE

SIZES = (10_000, 100_000, 1_000_000)
ROUNDS = 50
GOAL_P99 = 50.0
_RESIDENT_FIELD = 1


def measure_size(size: int, folder: Path) -> dict[str, Any]:
    """Return all figures of one size, measured in this process."""
    language = Language()
    began = time.perf_counter()
    written = generate(folder, size, language)
    seconds = time.perf_counter() - began
    gc.collect()
    gc.freeze()
    print(f"{size} messages, {written / 1e6:.0f} MB, written in {seconds:.0f} s", file=sys.stderr, flush=True)
    return asyncio.run(_figures(folder, size, written, language))


async def _figures(folder: Path, size: int, written: int, language: Language) -> dict[str, Any]:
    before = resident_megabytes()
    began = time.perf_counter()
    store = await Store.open(folder)
    figures: dict[str, Any] = {"messages, MB": round(written / 1e6, 1), "start": _milliseconds(began)}
    figures |= await _list_figures(store)
    figures |= await _conversation_figures(store, size)
    figures["memory before the search, MB"] = round(resident_megabytes() - before, 1)
    began, processor = time.perf_counter(), time.process_time()
    assert await store.search.index_all()
    seconds, processor = time.perf_counter() - began, time.process_time() - processor
    figures["indexing, MB/s"] = round(written / 1e6 / seconds, 2)
    figures["indexing, MB/s of processor time"] = round(written / 1e6 / processor, 2)
    figures["index over text"] = round(index_size(folder) / written, 3)
    figures["memory after indexing, MB"] = round(resident_megabytes() - before, 1)
    figures |= await query_figures(store, language)
    figures |= {f"{name}, with an index": value for name, value in (await _append_figures(store, size)).items()}
    figures["memory after all, MB"] = round(resident_megabytes() - before, 1)
    figures["most memory, MB"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before, 1)
    await store.close()
    return figures


async def _list_figures(store: Store) -> dict[str, Any]:
    first = await _timed(lambda _: store.list_page(PAGE), 7)
    pages: list[float] = []
    _, following = await store.list_page(PAGE)
    while following is not None:
        began = time.perf_counter()
        _, following = await store.list_page(PAGE, following)
        pages.append(_milliseconds(began))
    further = {"list, a further page": {"p50": quantile(pages, 0.5), "p99": quantile(pages, 0.99)}} if pages else {}
    return {"list, the first page": first, **further}


async def _conversation_figures(store: Store, size: int) -> dict[str, Any]:
    chance = random.Random(2)
    ids = [_conversation_id(chance.randint(1, size // PER_CONVERSATION)) for _ in range(ROUNDS)]
    return {
        "open": await _timed(lambda number: store.load(ids[number])),
        "open with all branches": await _timed(lambda number: store.load_tree(ids[number])),
        **await _append_figures(store, size),
    }


async def _append_figures(store: Store, size: int) -> dict[str, Any]:
    chance = random.Random(3)
    ids = [_conversation_id(chance.randint(1, size // PER_CONVERSATION)) for _ in range(ROUNDS)]
    return {"append": await _timed(lambda number: store.commit(ids[number], Message.user("One more. " * 50)))}


def _conversation_id(number: int) -> str:
    return f"c{number:031d}"


async def _timed(call: Callable[[int], Awaitable[Any]], rounds: int = ROUNDS) -> dict[str, float]:
    times: list[float] = []
    for number in range(rounds):
        began = time.perf_counter()
        await call(number)
        times.append(_milliseconds(began))
    return {"p50": quantile(times, 0.5), "p99": quantile(times, 0.99)}


def _milliseconds(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 2)


def resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[_RESIDENT_FIELD])
    return pages * resource.getpagesize() / 2**20


def exponents(figures: dict[int, dict[str, Any]]) -> dict[str, list[float]]:
    """Return the exponents of each time's growth, from each size to the next."""
    sizes = sorted(figures)
    growth: dict[str, list[float]] = {}
    for name, value in figures[sizes[-1]].items():
        if isinstance(value, dict) and all(name in figures[size] for size in sizes):
            measured = "processor p50" if "processor p50" in value else "p50"
            times = [max(figures[size][name][measured], 0.01) for size in sizes]
            pairs = zip(zip(sizes, times, strict=True), zip(sizes[1:], times[1:], strict=True), strict=False)
            growth[name] = [
                round(math.log(time_after / time_before) / math.log(larger / smaller), 2)
                for (smaller, time_before), (larger, time_after) in pairs
            ]
    return growth


def main() -> int:
    """Print all figures; return 1 if a hundredth of the searches takes more processor time than the goal."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.history_growth", description="A growing data folder")
    parser.add_argument("sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--one", action="store_true", help="one size, in this process")
    arguments = parser.parse_args()
    if arguments.one:
        with tempfile.TemporaryDirectory(prefix="history-growth-", dir=arguments.folder) as name:
            print(json.dumps(measure_size(arguments.sizes[0], Path(name))))
        return 0
    figures: dict[int, dict[str, Any]] = {}
    for size in arguments.sizes:
        command = [
            sys.executable,
            "-m",
            "tests.bench.history_growth",
            "--one",
            "--folder",
            str(arguments.folder),
            str(size),
        ]
        figures[size] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        print(json.dumps({str(size): figures[size]}, indent=1, ensure_ascii=False), flush=True)
    if len(figures) > 1:
        print(json.dumps({"exponents": exponents(figures)}, indent=1, ensure_ascii=False))
    return int(figures[max(figures)]["processor p99 of all"] > GOAL_P99)


if __name__ == "__main__":
    sys.exit(main())
