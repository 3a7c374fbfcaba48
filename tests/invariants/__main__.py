"""`make invariants`: many random worlds, 20,000 unless ARGS says otherwise; another seed each time."""

import argparse
import json
import logging
import random
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from tests.invariants.machine import Machine
from tests.invariants.rounds import live, trouble_of
from tests.invariants.seeded.fault import Fault
from tests.invariants.seeded.search import FAULTS, RECORDED, SEEDS, SearchResult, search

# hypothesis remembers every world that it has seen, so many rounds in processes of their own: 20,000 worlds in one
# take more than a gigabyte.
ROUND = 500

# A fault is found after some dozen worlds. A search that needs more than these is broken itself.
FOR_A_FAULT = 1_500
# Seeds are tried until one finds the fault in so few worlds, and then the best is taken.
_SOON, _TRIED = 6, 24


def main() -> int:
    arguments = _arguments()
    logging.disable(logging.CRITICAL)
    faults = [fault for fault in FAULTS if (arguments.faults or arguments.record or "") in fault.name]
    if arguments.record is not None:
        return _record(faults)
    if arguments.faults is not None:
        return _look_for(faults, arguments.seed)
    return _live(arguments)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make invariants")
    parser.add_argument("--worlds", type=int, default=20_000)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--digests", action="store_true", help="print what tells one world from another")
    part = {"nargs": "?", "const": "", "metavar": "PART_OF_A_NAME"}
    parser.add_argument("--faults", help="put each fault into the engine, and look for it", **part)
    parser.add_argument("--record", help="write down with which seed each fault is found soon", **part)
    return parser.parse_args()


def _live(arguments: argparse.Namespace) -> int:
    print(f"seed {arguments.seed}, {arguments.worlds:,} worlds of at most {arguments.steps} steps", flush=True)
    if arguments.digests:
        Machine.on_digest = print
        live(arguments.seed, arguments.worlds, arguments.steps)
        return 0
    begin, lived = time.monotonic(), 0
    starts = range(0, arguments.worlds, ROUND)
    with ProcessPoolExecutor(max_tasks_per_child=1, mp_context=get_context("spawn")) as pool:
        rounds = {
            pool.submit(trouble_of, arguments.seed + start, worlds, arguments.steps): worlds
            for start in starts
            for worlds in [min(ROUND, arguments.worlds - start)]
        }
        for done in as_completed(rounds):
            if (trouble := done.result()) is not None:
                pool.shutdown(wait=False, cancel_futures=True)
                print(trouble)
                return 1
            lived += rounds[done]
            print(f"{lived:,} worlds, no invariant was broken, {time.monotonic() - begin:.0f} s", flush=True)
    return 0


def _look_for(faults: list[Fault], begin: int) -> int:
    print(f"seed {begin}, at most {FOR_A_FAULT:,} worlds for each of {len(faults)} faults")
    missed = 0
    for fault in faults:
        since = time.process_time()
        result = search(fault, FOR_A_FAULT, begin)
        missed += not result.is_as_stated(fault)
        _print(fault, result, time.process_time() - since)
    print("every fault was found as stated" if not missed else f"{missed} were not found as stated")
    return int(missed > 0)


def _record(faults: list[Fault]) -> int:
    seeds = json.loads(SEEDS.read_text(encoding="utf-8")) if SEEDS.exists() else {}
    for fault in faults:
        best = min(_tries(fault), key=lambda attempt: attempt[1].worlds, default=None)
        if best is None:
            print(f"no seed finds “{fault.name}” soon", file=sys.stderr)
            continue
        seeds[fault.name] = best[0]
        _print(fault, best[1], 0.0)
    known = {fault.name: seeds[fault.name] for fault in FAULTS if fault.name in seeds}
    SEEDS.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
    return 0


def _tries(fault: Fault) -> Iterator[tuple[int, SearchResult]]:
    """Yield seeds that find the fault, up to the first that finds it soon."""
    for begin in range(_TRIED):
        result = search(fault, RECORDED, begin)
        if result.is_as_stated(fault):
            yield begin, result
            if result.worlds <= _SOON:
                return


def _print(fault: Fault, result: SearchResult, seconds: float) -> None:
    number = result.broken.number if result.broken is not None else "-"
    sign = " " if result.is_as_stated(fault) else "!"
    print(f"{sign} {fault.name:58} {number!s:>3} {result.worlds:6,} worlds {seconds:6.1f} s", flush=True)
    if sign == "!":
        print(f"  stated {fault.breaks}, found: {result}")


if __name__ == "__main__":
    sys.exit(main())
