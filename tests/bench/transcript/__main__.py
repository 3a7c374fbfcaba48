"""Runs a single case: `python -m tests.bench.transcript CASE [ARGUMENT…] [--profile]`.

It prints the figures as JSON, or a profile. Without a display it starts one.
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
"""Address space of a case: it fails before it uses up the memory of the machine."""


def main() -> int:
    """Run the case in this process, within its limits."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.transcript", description="One case")
    parser.add_argument("case")
    parser.add_argument("arguments", nargs="*")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    if os.environ.get("QT_QPA_PLATFORM") != "xcb":
        with displays.display(dict(os.environ)) as shown:
            return subprocess.call([sys.executable, "-m", "tests.bench.transcript", *sys.argv[1:]], env=shown)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    # A thread that needs no interpreter ends the process, even when a call into C never returns.
    faulthandler.dump_traceback_later(options.limit, exit=True)
    case = import_case(options.case)
    if options.profile:
        profile = cProfile.Profile()
        profile.runcall(case, *options.arguments)
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)
    else:
        print(json.dumps(case(*options.arguments)))
    return 0


def import_case(name: str) -> Callable[..., dict[str, Any]]:
    """Return a case, with the garbage collector set as in `ui.__main__`: it ignores the objects of imported modules."""
    gc.disable()
    from ui.bridge.event_loop import set_thresholds

    case = case_of(name)
    gc.freeze()
    set_thresholds()
    gc.enable()
    return case


if __name__ == "__main__":
    sys.exit(main())
