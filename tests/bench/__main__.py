"""Runs the benchmarks: `python -m tests.bench [TOOL_NAME [PART_LENGTH…]…]`.

Each module of this folder with a function `run() -> dict[str, Any]` is one, and runs in a process of its own. Its
result is JSON: figures by name, nested as it likes. `GOALS: dict[str, float]`, by dotted name, says what a figure may
reach at most; what exceeds it is marked, and makes the whole command fail. `DISPLAY = True` asks for a real window on
a private screen; otherwise Qt draws offscreen. `PARTS: dict[str, Callable[[], Any]]` says which of its figures can be
had by themselves: those that are named after it. All results go to bench.json.
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
            if isinstance(value, str):
                yield f"{self.name}.{name}", "", value
                continue
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


def measure(name: str, parts: list[str], environment: dict[str, str]) -> Outcome:
    """Run one, or some parts of it, in its own process."""
    with tempfile.TemporaryDirectory(prefix="desktop-agent-bench-") as home:
        answer = Path(home, "answer.json")
        command = [sys.executable, "-m", "tests.bench", "--into", str(answer), name, *parts]
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


def measure_here(name: str, parts: list[str], into: Path) -> None:
    """The other side of `measure`."""
    module = importlib.import_module(f"tests.bench.{name}")
    known, goals = getattr(module, "PARTS", {}), getattr(module, "GOALS", {})
    if unknown := sorted(set(parts) - set(known)):
        raise SystemExit(f"{name} has no part {', '.join(unknown)}; it has {', '.join(known) or 'none'}")
    figures = {part: known[part]() for part in parts} if parts else module.run()
    goals = {goal: value for goal, value in goals.items() if not parts or goal.partition(".")[0] in parts}
    into.write_text(json.dumps({"figures": figures, "goals": goals}))


def asked_for(words: list[str]) -> list[tuple[str, list[str]]]:
    """Benchmarks, each with the parts that are named after it. Raises ValueError for a word before any benchmark."""
    known = names()
    wanted: list[tuple[str, list[str]]] = []
    for word in words:
        if word in known:
            wanted.append((word, []))
        elif wanted:
            wanted[-1][1].append(word)
        else:
            raise ValueError(f"no such benchmark: {word}; there are {', '.join(known)}")
    return wanted or [(name, []) for name in known]


def wants_display(name: str) -> bool:
    """Asked of the text: importing a benchmark may be slow or need what only its own process has."""
    return "\nDISPLAY = True" in (HERE / f"{name}.py").read_text(encoding="utf-8")


def main() -> int:
    """Run what was asked for, one after the other, and write bench.json."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME [PART…]", help=", ".join(names()))
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.into:
        measure_here(arguments.names[0], arguments.names[1:], arguments.into)
        return 0
    try:
        wanted = asked_for(arguments.names)
    except ValueError as error:
        parser.error(str(error))
    offscreen = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    outcomes: list[Outcome] = []
    with ExitStack() as stack:
        shown_on = None
        for name, parts in wanted:
            if wants_display(name) and shown_on is None:
                shown_on = stack.enter_context(displays.display(dict(os.environ)))
            sys.stderr.write(f"{name}…\n")
            outcomes.append(measure(name, parts, shown_on if wants_display(name) and shown_on else offscreen))
    machine = {"python": platform.python_version(), "system": platform.platform(), "cores": os.cpu_count()}
    results = {outcome.name: {"figures": outcome.figures, "error": outcome.error} for outcome in outcomes}
    RESULTS.write_text(json.dumps({"machine": machine, "results": results}, indent=2) + "\n")
    sys.stdout.write(table(outcomes) + "\n")
    return 0 if all(outcome.succeeded for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
