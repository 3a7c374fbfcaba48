"""The parts of the benchmark: each case is a process, and each figure has a name."""

import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.bench.transcript.cases import LIMIT, run_case
from tests.bench.transcript.hostile_texts import NAMES

WAYS = ("at_once", "paced")
COUNTS = (10, 100, 1_000, 10_000, 100_000)
ENOUGH = 860.0
"""Seconds for all cases: the benchmark must report its figures before it is ended."""


@dataclass(frozen=True, slots=True)
class Size:
    """The length of an answer in characters, how often it is measured at 200 deltas a second and all at once, and the
    longest time in seconds."""

    characters: int
    rounds: int = 5
    rounds_at_once: int = 5
    limit: float = LIMIT


SIZES = {
    "1k": Size(1_000),
    "10k": Size(10_000),
    "50k": Size(50_000, limit=120.0),
    "200k": Size(200_000, rounds=2, limit=180.0),
    "1M": Size(1_000_000, rounds=1, rounds_at_once=3, limit=300.0),
}

_began = time.monotonic()


def case(name: str, *arguments: object, limit: float = LIMIT) -> dict[str, Any]:
    """Run a case if there is still time."""
    remaining = _began + ENOUGH - time.monotonic()
    if remaining < LIMIT:
        return {"ended": "not begun: the time of the benchmark was over"}
    return run_case(name, *map(str, arguments), limit=min(limit, remaining))


def realtime() -> dict[str, Any]:
    """Return the milliseconds of an answer of ten seconds."""
    return case("realtime")


def streaming() -> dict[str, Any]:
    """Return the CPU time by size, and how it grows."""
    return {way: _streamed(way) for way in WAYS}


def _streamed(way: str) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name, size in SIZES.items():
        rounds = size.rounds_at_once if way == "at_once" else size.rounds
        figures[name] = case("streamed", size.characters, way, rounds, limit=size.limit)
    exponents = {
        "exponent": growth(_points(figures, "cpu_s")),
        "limit_exponent": growth(_points(figures, "limit_s")),
    }
    return figures | {name: exponent for name, exponent in exponents.items() if exponent is not None}


def _points(figures: Mapping[str, dict[str, Any]], what: str) -> dict[float, float]:
    """Return a figure by size, without the smallest size, for which constant costs would still count."""
    sizes = {name: size.characters for name, size in SIZES.items() if size.characters >= 10_000}
    return {sizes[name]: figures[name][what] for name in sizes if what in figures[name]}


def growth(points: Mapping[float, float]) -> float | None:
    """Return the exponent, the slope of a line through the logarithms; None if there are fewer than three points."""
    if len(points) < 3:
        return None
    slope, _ = statistics.linear_regression([math.log(x) for x in points], [math.log(y) for y in points.values()])
    return round(slope, 3)


def memory() -> dict[str, Any]:
    """Return the megabytes above those of the empty window, ours and the limit's."""
    figures: dict[str, Any] = {}
    for name, size in SIZES.items():
        sides = {side: case("remembered", size.characters, side) for side in ("ours", "limit")}
        figures[name] = {side: values.get("more_mb", values.get("ended")) for side, values in sides.items()}
        figures[name]["empty"] = sides["ours"].get("empty_mb")
    return figures


def conversations() -> dict[str, Any]:
    """Return the figures of opening conversations and moving in them."""
    figures: dict[str, Any] = {"first_paint": case("first_paints")}
    return figures | {str(count): case("moved", count) for count in COUNTS}


def hostile() -> dict[str, Any]:
    """Return the figures of each hostile text, streamed and opened."""
    return {name: {way: case(f"hostile_{way}", name) for way in ("streamed", "opened")} for name in NAMES}


# The longest part is last: it is left out when time is short.
PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "realtime": realtime,
    "conversations": conversations,
    "hostile": hostile,
    "memory": memory,
    "streaming": streaming,
}


def goals() -> dict[str, float]:
    """Return the maximum of each figure."""
    longest = 33.0
    maximums = {
        "realtime.ticks.p99_over_idle": 1.2,
        "realtime.ticks.longest": longest,
        "realtime.frames.longest": longest,
        "realtime.to_paint.first": 25.0,
        "conversations.first_paint.10000_over_10": 1.5,
        "conversations.first_paint.100000_over_10": 1.5,
        "conversations.10000.memory.more_mb": 15.0,
        "conversations.100000.memory.view_mb": 15.0,
    }
    for way in WAYS:
        maximums |= {f"streaming.{way}.{name}.ratio": 1.5 for name in ("50k", "200k", "1M")}
        maximums |= {f"streaming.{way}.{name}.longest_ms": longest for name in SIZES}
        maximums |= {f"streaming.{way}.10k.ratio": 2.0, f"streaming.{way}.exponent": 1.05}
    for count in COUNTS:
        moves = {"wheel": (5.0, 12.0), "page": (5.0, 12.0)}
        for move, (p50, p99) in moves.items():
            maximums |= {f"conversations.{count}.{move}.p50": p50, f"conversations.{count}.{move}.p99": p99}
        maximums[f"conversations.{count}.resize.p50"] = 25.0
    for name in NAMES:
        maximums[f"hostile.{name}.streamed.ratio"] = 1.5
        maximums |= {f"hostile.{name}.{way}.longest_ms": longest for way in ("streamed", "opened")}
        maximums[f"hostile.{name}.opened.walk_longest_ms"] = longest
        maximums[f"hostile.{name}.opened.walk_blank"] = 0
    return maximums
