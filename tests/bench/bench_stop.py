"""How long Stop takes, from the press to RunFinished, in every state of an agent, by loop and by thread.

    python -m tests.bench.bench_stop

Figures are the slowest of some rounds, in milliseconds. A run in which no tool works ends at once. A tool first gets a
grace period, and only a tool whose processes ignore SIGTERM needs it.
"""

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from desktop_agent.agent.run import STOP_GRACE
from tests.desktop_agent.engine.stop_stand import WAYS, stopped
from tests.desktop_agent.engine.stop_states import STATES, State

AT_ONCE = 200.0
"""Milliseconds that Stop may take in addition to the grace period of tools."""
ROUNDS = 3


def limit_of(state: State) -> float:
    """Return the longest time that Stop may take in this state, in milliseconds."""
    return AT_ONCE + STOP_GRACE * 1000 * state.works


GOALS = {f"{state.name}.{way}": limit_of(state) for state in STATES for way in WAYS}


def run(rounds: int = ROUNDS) -> dict[str, Any]:
    """Return the slowest round of each state and way, in milliseconds."""
    return {state.name: {way: _slowest(state, way, rounds) for way in WAYS} for state in STATES}


def _slowest(state: State, way: Any, rounds: int) -> float:
    times: list[float] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="bench-stop-") as name:
            measured = asyncio.run(stopped(state, way, Path(name)))
        times.append(measured.to_the_end * 1000)
    return round(max(times), 1)


if __name__ == "__main__":
    print(json.dumps(run(*map(int, sys.argv[1:2])), indent=2))
