"""How fast the conversations of other programs are indexed and found, by their number.

    python -m tests.bench.bench_found_search [conversations …]

The sessions are those of Claude Code, generated as the messages of `bench_search`: 20 messages, a quarter of them calls
and a quarter results. MB are those of the files; processor time is that of the whole process. `round` is the cost of
finding that nothing has changed. Queries search 2,000 messages of our own and all found ones; milliseconds.
"""

import asyncio
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from desktop_agent.engine.exchange.found_histories import FoundHistorySource
from desktop_agent.storage.search.index_file import FOUND_INDEX_NAME
from desktop_agent.storage.store import Store
from tests.bench.bench_search import Language, generate, query_figures

SIZES = (200, 2_000)
MESSAGES = 20
OWN_MESSAGES = 2_000
PROGRAM = "claude-code"


def entries(language: Language, session: int) -> Iterator[dict[str, Any]]:
    """Yield the entries of one session."""
    parent_id: str | None = None
    for number in range(MESSAGES):
        entry_id = f"{session:08}-{number:04}"
        is_prompt = number % 2 == 0
        text = {"type": "text", "text": language.text()}
        content: list[dict[str, Any]] = [text]
        if number % 4 == 1:
            content = [
                {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"file_path": language.name()}}
            ]
        elif number % 4 == 2:
            content = [{"type": "tool_result", "tool_use_id": f"t{number - 1}", "content": text["text"]}]
        message: dict[str, Any] = {"role": "user" if is_prompt else "assistant", "content": content}
        if not is_prompt:
            message |= {"id": f"msg_{entry_id}", "model": "model-1", "usage": {}}
        yield {
            "parentUuid": parent_id,
            "isSidechain": False,
            "cwd": "/home/ann/app",
            "sessionId": f"{session:08}",
            "type": message["role"],
            "message": message,
            "uuid": entry_id,
            "timestamp": f"2026-{1 + session % 9:02}-{1 + session % 28:02}T10:00:{number:02}.000Z",
        }
        parent_id = entry_id


def write_sessions(home: Path, count: int, language: Language) -> int:
    """Write the files; return their size in bytes."""
    size = 0
    for session in range(count):
        path = home / ".claude" / "projects" / f"project-{session % 20}" / f"{session:08}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(entry) + "\n" for entry in entries(language, session)))
        size += path.stat().st_size
    return size


async def measure(folder: Path, count: int) -> dict[str, Any]:
    """Return all figures for this number of conversations."""
    language = Language()
    size = write_sessions(Path(os.environ["HOME"]), count, language)
    store = await Store.open(folder)
    await store.search.index_all()
    source = FoundHistorySource((PROGRAM,))
    began, processor = time.monotonic(), time.process_time()
    if not await store.search.found.index_all(source):
        sys.exit("it could not be indexed")
    figures: dict[str, Any] = {
        "MB": size / 1e6,
        "MB/s": size / 1e6 / (time.monotonic() - began),
        "MB/s of the processor": size / 1e6 / (time.process_time() - processor),
        "index over files": (folder / FOUND_INDEX_NAME).stat().st_size / size,
    }
    began, processor = time.monotonic(), time.process_time()
    await store.search.found.index_all(source)
    figures |= {"round": time.monotonic() - began, "round, processor": time.process_time() - processor}
    figures |= await query_figures(store, language)
    await store.close()
    figures["peak MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    return figures


def run(sizes: Sequence[int] = SIZES) -> dict[str, Any]:
    """Return the figures by number of conversations."""
    figures: dict[str, Any] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="bench-found-search-") as name:
            os.environ["HOME"] = str(Path(name) / "home")
            folder = Path(name) / "data"
            folder.mkdir()
            generate(folder, OWN_MESSAGES, Language(2))
            figures[str(size)] = asyncio.run(measure(folder, size))
    return figures


if __name__ == "__main__":
    print(json.dumps(run(tuple(map(int, sys.argv[1:])) or SIZES), indent=2, ensure_ascii=False))
