"""Runs the benchmarks: `python -m tests.bench [NAME…]`.

Each module of this folder with a function `run() -> dict[str, Any]` is one, and runs in a process of its own. Its
result is JSON: figures by name, nested as it likes. `GOALS: dict[str, float]`, by dotted name, says what a figure may
reach at most; what exceeds it is marked, and makes the whole command fail. `DISPLAY = True` asks for a real window on
a private screen; otherwise Qt draws offscreen. All results go to bench.json.
"""

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.frame import displays

HERE = Path(__file__).parent
RESULTS = HERE.parents[1] / "bench.json"
LIMIT = 900.0
"""Seconds for one benchmark."""


@dataclass
class Outcome:
    """What one benchmark gave; `error` is empty when it ran to its end."""

    name: str
    figures: dict[str, Any] = field(default_factory=dict)
    goals: dict[str, float] = field(default_factory=dict)
    error: str = ""

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Name, figure, verdict."""
        for name, value in flat(self.figures):
            goal = self.goals.get(name)
            verdict = "" if goal is None else f"{'ok' if value <= goal else 'MISSED'}, goal {goal:g}"
            yield f"{self.name}.{name}", shown(value), verdict
        for name in self.goals.keys() - {name for name, _ in flat(self.figures)}:
            yield f"{self.name}.{name}", "not measured", "MISSED"
        if self.error:
            yield self.name, "failed", self.error.strip().splitlines()[-1]

    @property
    def succeeded(self) -> bool:
        """Ran, and reached its goals."""
        return not self.error and not any("MISSED" in verdict for _, _, verdict in self.rows())


def flat(figures: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested names joined by dots."""
    for name, value in figures.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def shown(value: Any) -> str:
    """A figure with three digits that matter."""
    return f"{value:.3g}" if isinstance(value, float) and abs(value) < 1000 else str(value)


def table(outcomes: list[Outcome]) -> str:
    """Columns."""
    rows = [row for outcome in outcomes for row in outcome.rows()]
    widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    return "\n".join(f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c}".rstrip() for a, b, c in rows)


def names() -> list[str]:
    """Modules that define `run`; others are their parts."""
    return sorted(file.stem for file in HERE.glob("*.py") if "\ndef run(" in file.read_text(encoding="utf-8"))


def measure(name: str, environment: dict[str, str]) -> Outcome:
    """Run one in its own process."""
    with tempfile.TemporaryDirectory(prefix="desktop-agent-bench-") as home:
        answer = Path(home, "answer.json")
        command = [sys.executable, "-m", "tests.bench", "--into", str(answer), name]
        own = {**environment, **{f"XDG_{part}_HOME": f"{home}/{part}" for part in ("DATA", "CONFIG", "STATE", "CACHE")}}
        try:
            run = subprocess.run(
                command, env=own, capture_output=True, text=True, timeout=LIMIT, check=False, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            return Outcome(name, error=f"took more than {LIMIT:.0f} s")
        if run.returncode != 0 or not answer.exists():
            sys.stderr.write(run.stderr)
            return Outcome(name, error=run.stderr or f"ended with {run.returncode}")
        told = json.loads(answer.read_text())
        return Outcome(name, told["figures"], told["goals"])


def measure_here(name: str, into: Path) -> None:
    """The other side of `measure`."""
    module = importlib.import_module(f"tests.bench.{name}")
    into.write_text(json.dumps({"figures": module.run(), "goals": getattr(module, "GOALS", {})}))


def wants_display(name: str) -> bool:
    """Asked of the text: importing a benchmark may be slow or need what only its own process has."""
    return "\nDISPLAY = True" in (HERE / f"{name}.py").read_text(encoding="utf-8")


def main() -> int:
    """Run what was asked for, one after the other, and write bench.json."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names()))
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.into:
        measure_here(arguments.names[0], arguments.into)
        return 0
    unknown = set(arguments.names) - set(names())
    if unknown:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(names())}")
    wanted = arguments.names or names()
    offscreen = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    outcomes: list[Outcome] = []
    with ExitStack() as stack:
        shown_on = None
        for name in wanted:
            if wants_display(name) and shown_on is None:
                shown_on = stack.enter_context(displays.display(dict(os.environ)))
            sys.stderr.write(f"{name}…\n")
            outcomes.append(measure(name, shown_on if wants_display(name) and shown_on else offscreen))
    machine = {"python": platform.python_version(), "system": platform.platform(), "cores": os.cpu_count()}
    results = {outcome.name: {"figures": outcome.figures, "error": outcome.error} for outcome in outcomes}
    RESULTS.write_text(json.dumps({"machine": machine, "results": results}, indent=2) + "\n")
    sys.stdout.write(table(outcomes) + "\n")
    return 0 if all(outcome.succeeded for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
