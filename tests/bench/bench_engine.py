"""What the engine costs: for each event of the model, before a tool starts, and with the length of the history.

`python -m tests.bench.bench_engine [flood | latency | growth]` measures one of them; `growth profile` prints where the
time of turns behind a long history goes.
"""

import json
import sys
from typing import Any

from tests.bench.engine import flood, growth, latency

PARTS = {"flood": flood.measured, "latency": latency.measured, "growth": growth.measured}

# The work of a turn grows with the history that is sent, and no faster.
GOALS = {"growth.exponent": 1.1, "growth.exponent_of_the_longest": 1.1}


def run() -> dict[str, Any]:
    """Events per second of CPU beside their floors; milliseconds before a start; milliseconds per turn and shares."""
    return {name: part() for name, part in PARTS.items()}


if __name__ == "__main__":
    wanted = sys.argv[1:]
    if "profile" in wanted:
        growth.profile().sort_stats("tottime").print_stats(30)
    else:
        names = wanted or list(PARTS)
        print(json.dumps({name: PARTS[name]() for name in names}, indent=1))
