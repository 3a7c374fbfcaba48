"""How fast messages are indexed and found, by their number.

    python -m tests.bench.bench_search [messages …]

The messages are generated: words by Zipf's law, code, Chinese, results of tools; about 1.8 kB each. Query figures are
milliseconds from the call to the results, snippets included, and processor time, which other programs of the machine
disturb less. `first` is the first search of the window: the results that there are after 25 ms. `growth` is the
exponent of the processor time from the smallest size to the largest: 1 means proportional to the number of messages.
"""

import asyncio
import gc
import itertools
import json
import math
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from desktop_agent.storage.records import message_to_json
from desktop_agent.storage.search.index_file import INDEX_NAME
from desktop_agent.storage.store import Store
from desktop_agent.types.blocks import Text, ToolResult, ToolUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.search import SearchQuery
from ui.bridge.search import FIRST_SECONDS

SIZES = (10_000, 100_000)
PER_CONVERSATION = 10
QUERIES = 200
"""Queries of each kind."""
GOALS = {"100000.processor p99 of all": 50.0}


class Language:
    """Words, identifiers and Chinese, with the frequencies of real texts."""

    def __init__(self, seed: int = 1) -> None:
        self.random = random.Random(seed)
        self.words = list(dict.fromkeys(self._word() for _ in range(80_000)))
        self._weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(self.words))))
        self.han = [chr(0x4E00 + number) for number in range(3000)]
        self.random.shuffle(self.han)
        self._han_weights = list(itertools.accumulate(1 / (rank + 5) for rank in range(len(self.han))))
        self.sentences = [f"{self._some_words(6, 18).capitalize()}. " for _ in range(20_000)]
        self.chinese = [self._chinese() for _ in range(5_000)]
        self.code = [f"    {self.name()} = {self.name()}({self.name()})\n" for _ in range(20_000)]

    def _word(self) -> str:
        pick = self.random.choice
        length = pick((1, 2, 2, 2, 3, 3, 4))
        return "".join(pick("bcdfghjklmnprstvwz") + pick("aeiou") + pick(("", "", *"nrst")) for _ in range(length))

    def _some_words(self, minimum: int, maximum: int) -> str:
        count = self.random.randint(minimum, maximum)
        return " ".join(self.random.choices(self.words, cum_weights=self._weights, k=count))

    def _chinese(self) -> str:
        count = self.random.randint(8, 25)
        return "".join(self.random.choices(self.han, cum_weights=self._han_weights, k=count)) + "。"

    def name(self) -> str:
        parts = self.random.choices(self.words[200:20_000], k=self.random.randint(2, 3))
        camel = parts[0] + "".join(part.capitalize() for part in parts[1:])
        return self.random.choice(("_".join(parts), camel, "/".join(parts) + ".py"))

    def text(self) -> str:
        kind = self.random.random()
        if kind < 0.12:
            return "".join(self.random.choices(self.chinese, k=self.random.randint(4, 16)))
        if kind < 0.45:
            return self._prose(1, 8) + "".join(self.random.choices(self.code, k=self.random.randint(10, 60)))
        return self._prose(2, 36)

    def _prose(self, minimum: int, maximum: int) -> str:
        return "".join(self.random.choices(self.sentences, k=self.random.randint(minimum, maximum)))


def bodies(language: Language, size: int) -> Iterator[tuple[str, str]]:
    """Yield role and JSON of each message; every fourth is a call, and the next one its result."""
    placeholder = json.dumps("@@")
    shapes = [
        ("user", Message.user("@@")),
        ("assistant", Message.assistant("@@").model_copy(update={"model": "model-1"})),
        ("assistant", Message(role=Role.ASSISTANT, blocks=[ToolUse(id="1", name="read_file", input={"path": "@@"})])),
        ("tool", Message.tool_results([ToolResult(tool_use_id="1", content=[Text(text="@@")])])),
    ]
    templates = [(role, message_to_json(message.model_copy(update={"id": "ID"}))) for role, message in shapes]
    for number in range(size):
        role, template = templates[number % len(templates)]
        text = language.name() if number % len(templates) == 2 else f"{language.text()} m{number:07d}"
        body = template.replace('"ID"', json.dumps(message_id(number)))
        yield role, body.replace(placeholder, json.dumps(text, ensure_ascii=False))


def message_id(number: int) -> str:
    """Return the id of the message with this number, counted from 0."""
    return f"m{number:031d}"


def generate(folder: Path, size: int, language: Language) -> int:
    """Fill the database; return the number of bytes of its messages."""
    asyncio.run(_create(folder))
    begin = datetime(2024, 1, 1, tzinfo=UTC)
    count, written = size // PER_CONVERSATION, 0

    def rows() -> Iterator[tuple[Any, ...]]:
        nonlocal written
        for number, (role, body) in enumerate(bodies(language, size)):
            written += len(body.encode())
            conversation, position = divmod(number, PER_CONVERSATION)
            created_at = (begin + timedelta(minutes=number)).isoformat()
            parent = number if position else None
            yield number + 1, conversation + 1, message_id(number), parent, position + 1, role, created_at, body

    with closing(sqlite3.connect(folder / "conversations.sqlite3")) as db, db:
        db.executemany(
            "INSERT INTO conversations (number, id, title, title_is_automatic, created_at, updated_at, head,"
            " message_count) VALUES (?, ?, ?, 1, ?, ?, ?, ?)",
            (
                (
                    number,
                    f"c{number:031d}",
                    language.sentences[number % len(language.sentences)][:60],
                    number * 10**6,
                    number * 10**6,
                    number * PER_CONVERSATION,
                    PER_CONVERSATION,
                )
                for number in range(1, count + 1)
            ),
        )
        db.executemany(
            "INSERT INTO messages (number, conversation, id, parent, position, role, state, created_at, body)"
            " VALUES (?, ?, ?, ?, ?, ?, 'complete', ?, ?)",
            rows(),
        )
    return written


async def _create(folder: Path) -> None:
    await (await Store.open(folder)).close()


def kinds(language: Language) -> dict[str, Callable[[], str]]:
    """Return makers of queries by kind; each call makes another query."""
    pick, number, words = language.random.choice, language.random.randint, language.words

    def chinese(length: int) -> str:
        sentence = pick(language.chinese)
        begin = number(0, len(sentence) - length - 1)
        return sentence[begin : begin + length]

    def phrase() -> str:
        sentence = pick(language.sentences).strip(". ").split()
        begin = number(0, len(sentence) - 3)
        return f'"{" ".join(sentence[begin : begin + 3])}"'

    return {
        "common word": lambda: f"{words[number(0, 50)]} ",
        "word": lambda: f"{words[number(50, 5_000)]} ",
        "rare word": lambda: f"{words[number(5_000, 60_000)]} ",
        "unknown word": lambda: "qqqqqq ",
        "two words": lambda: f"{words[number(0, 300)]} {words[number(0, 3_000)]} ",
        "three words": lambda: " ".join(words[number(0, 300)] for _ in range(3)) + " ",
        "prefix of 1": lambda: pick(words)[:1],
        "prefix of 2": lambda: pick(words[:3_000])[:2],
        "prefix of 3": lambda: pick(words[:3_000])[:3],
        "prefix of 5": lambda: pick(words[:10_000])[:5],
        "word and prefix of 1": lambda: f"{words[number(0, 5_000)]} {pick(words)[:1]}",
        "word and prefix of 2": lambda: f"{words[number(0, 5_000)]} {pick(words)[:2]}",
        "word and prefix of 3": lambda: f"{words[number(0, 5_000)]} {pick(words[:3_000])[:3]}",
        "CJK, 1 character": lambda: pick(language.han[:500]),
        "CJK, 2 characters": lambda: chinese(2),
        "CJK, 4 characters": lambda: chinese(4),
        "identifier": language.name,
        "phrase": phrase,
        "message number": lambda: f"m{number(0, 9_999):07d}",
    }


def measured(size: int) -> dict[str, Any]:
    """Return all figures of one size."""
    language = Language()
    with tempfile.TemporaryDirectory(prefix="bench-search-") as name:
        folder = Path(name)
        written = generate(folder, size, language)
        return asyncio.run(_figures(folder, written, language))


async def _figures(folder: Path, written: int, language: Language) -> dict[str, Any]:
    store = await Store.open(folder)
    began, processor = time.perf_counter(), time.process_time()
    assert await store.search.index_all()
    seconds, processor = time.perf_counter() - began, time.process_time() - processor
    size = index_size(folder)
    figures: dict[str, Any] = {
        "messages, MB": round(written / 1e6, 1),
        "indexing, MB/s": round(written / 1e6 / seconds, 2),
        "indexing, MB/s of processor time": round(written / 1e6 / processor, 2),
        "index over text": round(size / written, 3),
    }
    # The words of the generator must not count for the measurement.
    gc.collect()
    gc.freeze()
    figures |= await query_figures(store, language)
    await store.close()
    return figures


async def query_figures(store: Store, language: Language) -> dict[str, Any]:
    """Search QUERIES times for each kind, and return the times."""
    figures: dict[str, Any] = {}
    everything: list[float] = []
    all_first: list[float] = []
    all_processors: list[float] = []
    for kind, make in kinds(language).items():
        times: list[float] = []
        first: list[float] = []
        processors: list[float] = []
        result_count = 0
        for _ in range(QUERIES):
            query = SearchQuery(make())
            began = time.perf_counter()
            await store.search.find(query, seconds=FIRST_SECONDS)
            first.append((time.perf_counter() - began) * 1000)
            began, processor = time.perf_counter(), time.process_time()
            results = await store.search.find(query)
            times.append((time.perf_counter() - began) * 1000)
            processors.append((time.process_time() - processor) * 1000)
            assert results is not None
            result_count += len(results.conversations)
        everything += times
        all_first += first
        all_processors += processors
        figures[kind] = {
            "p50": quantile(times, 0.5),
            "p99": quantile(times, 0.99),
            "first p50": quantile(first, 0.5),
            "first p99": quantile(first, 0.99),
            "processor p50": quantile(processors, 0.5),
            "processor p99": quantile(processors, 0.99),
            "found": result_count / QUERIES,
        }
    figures["first p99 of all"] = quantile(all_first, 0.99)
    figures["p99 of all"] = quantile(everything, 0.99)
    figures["processor p99 of all"] = quantile(all_processors, 0.99)
    return figures


def index_size(folder: Path) -> int:
    """Return the bytes of the index and its log."""
    return sum(file.stat().st_size for file in folder.glob(f"{INDEX_NAME}*"))


def quantile(values: list[float], share: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed."""
    return round(sorted(values)[max(0, math.ceil(len(values) * share) - 1)], 2)


def run(sizes: tuple[int, ...] = SIZES) -> dict[str, Any]:
    """Return the figures by number of messages, and how they grow."""
    figures: dict[str, Any] = {str(size): measured(size) for size in sizes}
    smallest, largest = figures[str(min(sizes))], figures[str(max(sizes))]
    if len(sizes) > 1:
        ratio = math.log(max(sizes) / min(sizes))
        figures["growth"] = {
            kind: round(math.log(largest[kind]["processor p50"] / smallest[kind]["processor p50"]) / ratio, 2)
            for kind in largest
            if isinstance(largest[kind], dict)
        }
    return figures


if __name__ == "__main__":
    print(json.dumps(run(tuple(map(int, sys.argv[1:])) or SIZES), indent=2, ensure_ascii=False))
