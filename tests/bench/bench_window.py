"""The whole way of a streamed token: the program with its window, socket to pixels, beside a bare QTextEdit.

A server process writes one answer in pieces of five characters, 200 a second. The program reads it from a real socket,
journals it and paints its Markdown; the limit inserts the same pieces into a QTextEdit, those of a frame together, and
reads no socket. Both are processes of their own, in turn; what counts is the CPU time of the process, all threads
together.

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
    """CPU seconds of both, medians; the ratio round by round."""
    found: dict[str, list[float]] = {"ours": [], "bare": []}
    with served(pieces) as port:
        for _ in range(rounds):
            with tempfile.TemporaryDirectory(prefix="desktop-agent-window-") as folder:
                asyncio.run(fill(Path(folder), port))
                found["ours"].append(float(figures_of("ours", folder, pieces=pieces)["cpu_s"]))
            found["bare"].append(float(figures_of("bare", str(pieces), pieces=pieces)["cpu_s"]))
    ratios = [ours / limit for ours, limit in zip(found["ours"], found["bare"], strict=True)]
    return {
        "pieces": pieces,
        "ratio": round(statistics.median(ratios), 2),
        "spread": f"{min(ratios):.2f}–{max(ratios):.2f}",
        "cpu_s": {name: round(statistics.median(seconds), 2) for name, seconds in found.items()},
    }


async def fill(folder: Path, port: int) -> None:
    """A data folder with the server."""
    engine = await Engine.open(folder)
    server = Endpoint(id="paced", title="Paced", base_url=f"http://127.0.0.1:{port}/v1")
    providers = engine.preferences.providers.model_copy(
        update={"endpoints": (server,), "endpoint_id": server.id, "model": "m"}
    )
    await engine.change_preferences(engine.preferences.model_copy(update={"providers": providers}))
    await engine.close()


def figures_of(side: str, *arguments: str, pieces: int) -> dict[str, Any]:
    """What one side prints at its end."""
    # Bytecode is written by the first start, so that the next ones do not compile all over again.
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
