"""An answer that arrives: CPU as a multiple of plain insertText, the longest turn of the loop, memory.

Frames follow each other without pause, each painted, so a second of an answer takes less than one here; what is
measured is the CPU time of the whole process until the frame after the last one.
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
    """On one answer: seconds of the longest turn and where it was, seconds of CPU, paintings for each frame."""

    longest: float
    where: str
    cpu: float
    painted: float


def streamed(size: int, *, at_once: bool, rounds: int) -> dict[str, Any]:
    """Both sides in turn."""
    frames = frames_of(text_of(size), at_once=at_once)
    with both_sides() as (window, sides):
        warm_up(window, sides)
        found = [(driven(window, sides.ours(), frames), driven(window, sides.limit(), frames)) for _ in range(rounds)]
    return compared(found)


def compared(found: list[tuple[Spent, Spent]]) -> dict[str, Any]:
    """Medians of ours, and the ratio to the limit, round by round."""
    middle = sorted(ours for ours, _ in found)[len(found) // 2]
    return {
        "ratio": round(statistics.median(ours.cpu / limit.cpu for ours, limit in found), 2),
        "cpu_s": round(statistics.median(ours.cpu for ours, _ in found), 3),
        "limit_s": round(statistics.median(limit.cpu for _, limit in found), 3),
        "longest_ms": round(middle.longest * 1000, 1),
        "longest_in": middle.where,
        "limit_longest_ms": round(statistics.median(limit.longest for _, limit in found) * 1000, 1),
        "paintings_per_frame": round(middle.painted, 2),
        "rounds": len(found),
    }


def driven(window: Window, shown: Ours | Plain, frames: list[str], *, to_the_end: bool = False) -> Spent:
    """One answer; with `to_the_end` what timers and threads do after it counts too. The side is closed."""
    spent = filled(window, shown, frames, to_the_end=to_the_end)
    shown.close()
    return spent


def filled(window: Window, shown: Ours | Plain, frames: list[str], *, to_the_end: bool) -> Spent:
    """The same, and the side stays."""
    shown.begin()
    window.calm()
    window.paintings = 0
    before = time.process_time()
    window.drive(shown.stream(frames))
    painted = window.paintings / max(1, len(frames))
    if to_the_end:
        window.until_quiet()
    spent = time.process_time() - before
    return Spent(window.watchdog.longest, window.watchdog.where, spent, painted)


def warm_up(window: Window, sides: Sides) -> None:
    """Load what is loaded late."""
    for shown in (sides.ours, sides.limit):
        driven(window, shown(), frames_of(text_of(WARM_UP), at_once=True), to_the_end=True)


def remembered(size: int, *, ours: bool) -> dict[str, Any]:
    """Megabytes over those of the empty window, when an answer is there and all is quiet."""
    with both_sides() as (window, sides):
        shown = sides.ours() if ours else sides.limit()
        before = memory_mb()
        filled(window, shown, frames_of(text_of(size), at_once=True), to_the_end=True)
        after = memory_mb()
        shown.close()
    return {"empty_mb": round(before, 1), "more_mb": round(after - before, 1)}


def memory_mb() -> float:
    """Megabytes of this process that are resident, after a collection.

    Shared pages count whole: how many others share them changes while something is measured.
    """
    gc.collect()
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    kilobytes = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
    return kilobytes / 1024
