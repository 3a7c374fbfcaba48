"""What the engine costs: for each event of the model, before a tool starts, and by the length of the history.

`python -m tests.bench.bench_engine [flood | latency | growth]` measures one of these; `growth profile` prints where
turns after a long history spend their time.
"""

import json
import sys
from typing import Any

from tests.bench.engine import flood, growth, latency

PARTS = {"flood": flood.measured, "latency": latency.measured, "growth": growth.measured}

# The cost of a turn must grow no faster than the history that is sent.
GOALS = {"growth.exponent": 1.1, "growth.exponent_of_the_longest": 1.1}


def run() -> dict[str, Any]:
    """Return events per CPU second and ratios; milliseconds before a start; milliseconds per turn and shares."""
    return {name: part() for name, part in PARTS.items()}


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if "profile" in arguments:
        growth.profile().sort_stats("tottime").print_stats(30)
    else:
        names = arguments or list(PARTS)
        print(json.dumps({name: PARTS[name]() for name in names}, indent=1))
