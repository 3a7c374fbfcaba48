"""The whole path of a streamed token, from socket to pixels: the program with its window, and a bare QTextEdit.

A server process writes one answer in pieces of five characters, 200 a second. The program reads it from a real socket,
journals it and paints its Markdown. The limit inserts the same pieces into a QTextEdit, those of a frame together, and
reads no socket. Both run as processes, in turn; the figure is the CPU time of the process with all its threads.

`python -m tests.bench.bench_window [PIECES [ROUNDS]]` measures a shorter answer.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from desktop_agent.engine.engine import Engine
from desktop_agent.types.providers import Endpoint
from tests.bench.window.server import LENGTH, RATE, served

DISPLAY = True
GOALS = {"ratio": 2.0}
PIECES, ROUNDS = 9_000, 5
_PATIENCE = 30.0


def run(pieces: int = PIECES, rounds: int = ROUNDS) -> dict[str, Any]:
    """Return the medians of the CPU seconds of both, and the median of the ratios of each round."""
    cpu_seconds: dict[str, list[float]] = {"ours": [], "bare": []}
    with served(pieces) as port:
        for _ in range(rounds):
            with tempfile.TemporaryDirectory(prefix="desktop-agent-window-") as folder:
                asyncio.run(fill(Path(folder), port))
                cpu_seconds["ours"].append(float(figures_of("ours", folder, pieces=pieces)["cpu_s"]))
            cpu_seconds["bare"].append(float(figures_of("bare", str(pieces), pieces=pieces)["cpu_s"]))
    ratios = [ours / limit for ours, limit in zip(cpu_seconds["ours"], cpu_seconds["bare"], strict=True)]
    return {
        "pieces": pieces,
        "ratio": round(statistics.median(ratios), 2),
        "spread": f"{min(ratios):.2f}–{max(ratios):.2f}",
        "cpu_s": {name: round(statistics.median(seconds), 2) for name, seconds in cpu_seconds.items()},
    }


async def fill(folder: Path, port: int) -> None:
    """Write a data folder that has the server in its settings."""
    engine = await Engine.open(folder)
    server = Endpoint(id="paced", title="Paced", base_url=f"http://127.0.0.1:{port}/v1")
    providers = engine.preferences.providers.model_copy(
        update={"endpoints": (server,), "endpoint_id": server.id, "model": "m"}
    )
    await engine.change_preferences(engine.preferences.model_copy(update={"providers": providers}))
    await engine.close()


def figures_of(side: str, *arguments: str, pieces: int) -> dict[str, Any]:
    """Run one side, and return the figures that it prints at its end."""
    # The first start writes bytecode, so that the next starts need not compile again.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
    command = [sys.executable, "-m", f"tests.bench.window.{side}", *arguments]
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
        timeout=pieces / RATE + _PATIENCE,
    )
    figures: dict[str, Any] = json.loads(done.stdout)
    if figures["characters"] < pieces * LENGTH - 2:
        raise RuntimeError(f"{side} shows {figures['characters']} characters only")
    return figures


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(*map(int, sys.argv[1:])), indent=1, ensure_ascii=False) + "\n")
