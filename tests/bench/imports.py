"""How long the imports of each part take, each in a fresh interpreter."""

import statistics
import subprocess
import sys
from typing import Any

ROUNDS = 5
CODE = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"
PARTS = {
    "nothing": "pass",
    "qt widgets": "import PySide6.QtWidgets",
    "httpx": "import httpx",
    "pydantic": "import pydantic",
    "event types": "import desktop_agent.types.engine_events",
    "ask": "import desktop_agent.api.command_line",
}


def run() -> dict[str, Any]:
    """Return milliseconds: medians of five rounds with all parts in turn."""
    times: dict[str, list[float]] = {name: [] for name in PARTS}
    for _ in range(ROUNDS):
        for name, statement in PARTS.items():
            command = [sys.executable, "-c", CODE.format(statement)]
            output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            times[name].append(float(output) * 1000)
    return {name: round(statistics.median(values), 1) for name, values in times.items()}
