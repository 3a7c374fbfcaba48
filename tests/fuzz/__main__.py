"""Feeds every dialect with broken streams: `python -m tests.fuzz`, or `make fuzz ARGS=…`.

Each stream must end in canonical events or in a typed error, with everything that `tests.fuzz.judge` asks for, within
bounded memory and time. The same seed makes the same streams. What fails is printed with the command that repeats it,
and its bytes are kept in the folder `fuzz`. Two processes work at a time.
"""

import argparse
import asyncio
import faulthandler
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.fuzz import memory
from tests.fuzz.judge import Judge, check_cut
from tests.fuzz.mutate import DIALECTS, Case, case, cut

KEPT = Path(__file__).parents[2] / "fuzz"
STREAMS = 200_000
SLICE = 5_000
PATIENCE = 60.0
"""Seconds for a few streams; what takes longer hangs."""
_WATCHED_AT_ONCE = 20


@dataclass
class Report:
    """What one slice of the numbers gave. `endings` counts how streams ended; `faults` are by number."""

    dialect: str
    streams: int = 0
    endings: Counter[str] = field(default_factory=Counter[str])
    faults: dict[int, str] = field(default_factory=dict[int, str])
    memory: float = 0.0
    slowest: tuple[float, int] = (0.0, 0)


async def tried(judge: Judge, one: Case, number: int) -> str:
    """How one stream ends, cut in two ways. Raises Fault, and whatever escapes."""
    outcome = await judge.judged(one.chunks, limit=one.limit)
    await judge.judged_again(cut(Random(number), one.data), outcome, limit=one.limit)
    if one.whole:
        check_cut(await judge.judged(one.whole), outcome)
    return "done" if outcome.error is None else outcome.error.kind


async def worked(dialect: str, seed: int, numbers: Iterable[int], place: int | None = None) -> Report:
    """Try these numbers. `place` is a file that each is written to first: a process that dies says where it was."""
    judge, report = Judge(dialect), Report(dialect)
    for number in numbers:
        if place is not None:
            os.pwrite(place, b"%-12d" % number, 0)
        if place is not None and number % _WATCHED_AT_ONCE == 0:
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
        one = case(dialect, seed, number)
        began, size = time.process_time(), len(one.data)
        try:
            with memory.Watermark(size) as used:
                report.endings[await tried(judge, one, number)] += 1
            report.memory = max(report.memory, used.over_size)
        except Exception as error:
            report.faults[number] = f"{type(error).__name__}: {error}"[:1500]
        report.slowest = max(report.slowest, (time.process_time() - began, number))
        report.streams += 1
        await asyncio.sleep(0)  # nothing else lets the loop throw its spent timers away
    faulthandler.cancel_dump_traceback_later()
    return report


def in_a_process(dialect: str, seed: int, numbers: range) -> Report:
    """The same in a process of its own, which may hang or die."""
    with tempfile.TemporaryDirectory(prefix="desktop-agent-fuzz-") as folder:
        place = Path(folder, "number")
        command = [sys.executable, "-m", "tests.fuzz", "--work", str(numbers.start), str(numbers.stop), str(place)]
        command += ["--dialect", dialect, "--seed", str(seed)]
        run = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if run.returncode == 0:
            told = json.loads(run.stdout)
            faults = {int(number): fault for number, fault in told.pop("faults").items()}
            return Report(**{**told, "endings": Counter(told["endings"]), "faults": faults})
        number = int(place.read_text()) if place.exists() and place.stat().st_size else numbers.start
        fault = f"the process ended with {run.returncode}: {run.stderr[-1500:]}"
        return Report(dialect, number - numbers.start + 1, faults={number: fault})


def keep(dialect: str, seed: int, number: int, fault: str) -> None:
    """Write the stream down, and print how to see it again."""
    KEPT.mkdir(exist_ok=True)
    file = KEPT / f"{dialect}-{seed}-{number}.sse"
    file.write_bytes(case(dialect, seed, number).data)
    file.with_suffix(".txt").write_text(fault + "\n", errors="backslashreplace")
    again = f"--dialect {dialect} --seed {seed} --number {number}"
    shown = fault.encode(errors="backslashreplace").decode()
    sys.stdout.write(f"\n{dialect} {number}: {shown}\n  again: make fuzz ARGS='{again}'\n  bytes: {file}\n")


def main() -> int:
    """Work off all slices; 0 when nothing failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Broken streams for every dialect")
    parser.add_argument("--streams", type=int, default=STREAMS, help="per dialect")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--dialect", choices=DIALECTS, action="append")
    parser.add_argument("--number", type=int, help="only this stream, in this process")
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    dialects = asked.dialect or DIALECTS
    if asked.work:
        start, stop, place = asked.work
        with Path(place).open("wb") as file:
            report = asyncio.run(worked(dialects[0], asked.seed, range(int(start), int(stop)), file.fileno()))
        sys.stdout.write(json.dumps(vars(report)))
        return 0
    if asked.number is not None:
        asyncio.run(tried(Judge(dialects[0]), case(dialects[0], asked.seed, asked.number), asked.number))
        return 0
    sys.stdout.write(f"seed {asked.seed}, {asked.streams} streams for each of {', '.join(dialects)}\n")
    return 1 if _all(dialects, asked.seed, asked.streams) else 0


def _all(dialects: list[str], seed: int, streams: int) -> int:
    """How many faults there are."""
    slices = [
        (dialect, range(start, min(start + SLICE, streams)))
        for start in range(0, streams, SLICE)
        for dialect in dialects
    ]
    sums = {dialect: Report(dialect) for dialect in dialects}
    with ThreadPoolExecutor(max_workers=2) as pool:
        for report in pool.map(lambda one: in_a_process(one[0], seed, one[1]), slices):
            total = sums[report.dialect]
            for number, fault in report.faults.items():
                if len(total.faults) < 20:
                    keep(report.dialect, seed, number, fault)
                total.faults[number] = fault
            total.streams += report.streams
            total.endings += report.endings
            total.memory = max(total.memory, report.memory)
            total.slowest = max(total.slowest, tuple(report.slowest))
    for total in sums.values():
        endings = ", ".join(f"{kind} {count}" for kind, count in total.endings.most_common())
        sys.stdout.write(
            f"\n{total.dialect}: {total.streams} streams, {len(total.faults)} faults; {endings}; memory at most "
            f"{total.memory:.0f} times the stream; slowest {total.slowest[0]:.2f} s (number {total.slowest[1]})\n"
        )
    return sum(len(total.faults) for total in sums.values())


if __name__ == "__main__":
    sys.exit(main())
