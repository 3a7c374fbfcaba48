"""An arriving answer: CPU time as a multiple of plain insertText, the longest turn of the loop, memory.

Frames follow each other without a pause, and each is painted, so a second of an answer takes less time here. The CPU
time is that of the whole process until the frame after the last one.
"""

import gc
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.transcript.sides import Ours, Plain, Sides, both_sides
from tests.bench.transcript.texts import frames_of, text_of
from tests.bench.transcript.window import Window

WARM_UP = 3_000


@dataclass(frozen=True, slots=True, order=True)
class Spent:
    """The cost of an answer: seconds of the longest turn and where it was, CPU seconds, paintings per frame."""

    longest: float
    where: str
    cpu: float
    painted: float


def streamed(size: int, *, at_once: bool, rounds: int) -> dict[str, Any]:
    """Return the figures of streaming an answer, both sides in turn."""
    frames = frames_of(text_of(size), at_once=at_once)
    with both_sides() as (window, sides):
        warm_up(window, sides)
        rounds_spent = [
            (stream_and_close(window, sides.ours(), frames), stream_and_close(window, sides.limit(), frames))
            for _ in range(rounds)
        ]
    return compare(rounds_spent)


def compare(rounds: list[tuple[Spent, Spent]]) -> dict[str, Any]:
    """Return the medians of ours, and of the ratios to the limit in each round."""
    middle = sorted(ours for ours, _ in rounds)[len(rounds) // 2]
    return {
        "ratio": round(statistics.median(ours.cpu / limit.cpu for ours, limit in rounds), 2),
        "cpu_s": round(statistics.median(ours.cpu for ours, _ in rounds), 3),
        "limit_s": round(statistics.median(limit.cpu for _, limit in rounds), 3),
        "longest_ms": round(middle.longest * 1000, 1),
        "longest_in": middle.where,
        "limit_longest_ms": round(statistics.median(limit.longest for _, limit in rounds) * 1000, 1),
        "paintings_per_frame": round(middle.painted, 2),
        "rounds": len(rounds),
    }


def stream_and_close(window: Window, shown: Ours | Plain, frames: list[str], *, to_the_end: bool = False) -> Spent:
    """Show an answer and close the side. With `to_the_end` the later work of timers and threads counts too."""
    spent = stream_answer(window, shown, frames, to_the_end=to_the_end)
    shown.close()
    return spent


def stream_answer(window: Window, shown: Ours | Plain, frames: list[str], *, to_the_end: bool) -> Spent:
    """Show an answer like `stream_and_close`, but do not close the side."""
    shown.begin()
    window.calm()
    window.paintings = 0
    cpu_began = time.process_time()
    window.drive(shown.stream(frames))
    painted = window.paintings / max(1, len(frames))
    if to_the_end:
        window.until_quiet()
    spent = time.process_time() - cpu_began
    return Spent(window.watchdog.longest, window.watchdog.where, spent, painted)


def warm_up(window: Window, sides: Sides) -> None:
    """Show a short answer, so that modules that are loaded late are loaded."""
    for shown in (sides.ours, sides.limit):
        stream_and_close(window, shown(), frames_of(text_of(WARM_UP), at_once=True), to_the_end=True)


def remembered(size: int, *, ours: bool) -> dict[str, Any]:
    """Return the megabytes above those of the empty window after an answer, when all is quiet."""
    with both_sides() as (window, sides):
        shown = sides.ours() if ours else sides.limit()
        before = memory_mb()
        stream_answer(window, shown, frames_of(text_of(size), at_once=True), to_the_end=True)
        after = memory_mb()
        shown.close()
    return {"empty_mb": round(before, 1), "more_mb": round(after - before, 1)}


def memory_mb() -> float:
    """Return the resident megabytes of this process after a collection.

    Shared pages count in full, because the number of processes that share them changes during a measurement.
    """
    gc.collect()
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    kilobytes = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
    return kilobytes / 1024
