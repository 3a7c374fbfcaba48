"""One case by itself: `python -m tests.bench.transcript CASE [ARGUMENT…] [--profile]`.

It prints its figures as JSON, or where its time goes. Without a display it starts one.
"""

import argparse
import cProfile
import faulthandler
import gc
import json
import os
import pstats
import resource
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from tests.bench.transcript.cases import LIMIT, case_of
from tests.frame import displays

MOST_BYTES = 6 << 30
"""Of addresses: a case fails instead of taking the machine with it."""


def main() -> int:
    """Run it here, within its limits."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.transcript", description="One case")
    parser.add_argument("case")
    parser.add_argument("arguments", nargs="*")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds")
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    if os.environ.get("QT_QPA_PLATFORM") != "xcb":
        with displays.display(dict(os.environ)) as shown:
            return subprocess.call([sys.executable, "-m", "tests.bench.transcript", *sys.argv[1:]], env=shown)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    # By a thread of its own that needs no interpreter: it ends also what never comes back from C.
    faulthandler.dump_traceback_later(given.limit, exit=True)
    case = imported_for_good(given.case)
    if given.profile:
        profile = cProfile.Profile()
        profile.runcall(case, *given.arguments)
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)
    else:
        print(json.dumps(case(*given.arguments)))
    return 0


def imported_for_good(name: str) -> Callable[..., dict[str, Any]]:
    """A case, with what modules hold kept from the garbage collector, as `ui.__main__` keeps it, and what is old."""
    gc.disable()
    from ui.bridge.event_loop import set_thresholds

    case = case_of(name)
    gc.freeze()
    set_thresholds()
    gc.enable()
    return case


if __name__ == "__main__":
    sys.exit(main())
