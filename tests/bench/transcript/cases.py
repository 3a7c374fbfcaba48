"""Runs each case in a separate process, which is ended when it takes too long or too much memory."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
LIMIT = 60.0
"""Seconds for one case."""
_GRACE = 10.0
_FRAME = re.compile(r'File "([^"]+)", line \d+ in (\S+)')


def run_case(case: str, *arguments: str, limit: float = LIMIT) -> dict[str, Any]:
    """Return the figures of a case, or `ended` with the reason why there are none."""
    command = [sys.executable, "-m", "tests.bench.transcript", case, *arguments, "--limit", str(limit)]
    try:
        run = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=limit + _GRACE,
            check=False,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return {"ended": f"after {limit:.0f} s"}
    if run.returncode:
        return {"ended": ending(run.stderr, limit)}
    figures: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return figures


def ending(errors: str, limit: float) -> str:
    """Return why a case gave no figures: its time was over, and where in the code it was, or an error."""
    stack = errors.rpartition("(most recent call first):")[2]
    if "Timeout (" in errors:
        own = [(file, name) for file, name in _FRAME.findall(stack) if "/tests/bench/" not in file]
        inner = [f"{Path(file).name}:{name}" for file, name in own if not file.startswith("<")]
        return f"after {limit:.0f} s in {' < '.join(inner[:4])}"
    return (errors.strip().splitlines() or ["without a word"])[-1]


def case_of(name: str) -> Callable[..., dict[str, Any]]:
    """Return the function of a case. The modules are imported late, so that their objects do not count before."""
    from tests.bench.transcript import hostile, opening, realtime, streaming

    def streamed(size: str, way: str, rounds: str) -> dict[str, Any]:
        return streaming.streamed(int(size), at_once=way == "at_once", rounds=int(rounds))

    def remembered(size: str, side: str) -> dict[str, Any]:
        return streaming.remembered(int(size), ours=side == "ours")

    def moved(count: str) -> dict[str, Any]:
        return opening.moved(int(count))

    cases: dict[str, Callable[..., dict[str, Any]]] = {
        "realtime": realtime.measured,
        "streamed": streamed,
        "remembered": remembered,
        "first_paints": opening.first_paints,
        "moved": moved,
        "hostile_streamed": hostile.streamed,
        "hostile_opened": hostile.opened,
    }
    return cases[name]
