"""Runs the benchmarks: `python -m tests.bench [TOOL_NAME [PART_LENGTH…]…]`.

Each module of this folder with a function `run() -> dict[str, Any]` is a benchmark, and runs in a separate process. Its
result is JSON: figures by name, which may be nested. `GOALS: dict[str, float]` has the maximum of figures, by dotted
name; a figure above it is marked, and makes the whole command fail. With `DISPLAY = True` it gets a real window on a
private screen; otherwise Qt draws offscreen. `PARTS: dict[str, Callable[[], Any]]` has the figures that can be measured
alone, when they are named after the benchmark. All results go to bench.json.
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
    """The result of a benchmark; `error` is empty when it ran to its end."""

    name: str
    figures: dict[str, Any] = field(default_factory=dict)
    goals: dict[str, float] = field(default_factory=dict)
    error: str = ""

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Yield name, figure and verdict."""
        for name, value in flattened(self.figures):
            if isinstance(value, str):
                yield f"{self.name}.{name}", "", value
                continue
            goal = self.goals.get(name)
            verdict = "" if goal is None else f"{'ok' if value <= goal else 'MISSED'}, goal {goal:g}"
            yield f"{self.name}.{name}", shown(value), verdict
        for name in self.goals.keys() - {name for name, _ in flattened(self.figures)}:
            yield f"{self.name}.{name}", "not measured", "MISSED"
        if self.error:
            yield self.name, "failed", self.error.strip().splitlines()[-1]

    @property
    def succeeded(self) -> bool:
        """Whether it ran and reached its goals."""
        return not self.error and not any("MISSED" in verdict for _, _, verdict in self.rows())


def flattened(figures: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all figures, with nested names joined by dots."""
    for name, value in figures.items():
        if isinstance(value, dict):
            yield from flattened(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def shown(value: Any) -> str:
    """Return a figure with three significant digits."""
    return f"{value:.3g}" if isinstance(value, float) and abs(value) < 1000 else str(value)


def table(outcomes: list[Outcome]) -> str:
    """Return the rows of all outcomes in aligned columns."""
    rows = [row for outcome in outcomes for row in outcome.rows()]
    widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    return "\n".join(f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c}".rstrip() for a, b, c in rows)


def names() -> list[str]:
    """Return the modules that define `run`; the others are helpers of them."""
    return sorted(file.stem for file in HERE.glob("*.py") if "\ndef run(" in file.read_text(encoding="utf-8"))


def measure(name: str, parts: list[str], environment: dict[str, str]) -> Outcome:
    """Run a benchmark, or some parts of it, in its own process."""
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
        result = json.loads(answer.read_text())
        return Outcome(name, result["figures"], result["goals"])


def measure_here(name: str, parts: list[str], into: Path) -> None:
    """Run a benchmark in this process, which `measure` has started, and write its result to a file."""
    module = importlib.import_module(f"tests.bench.{name}")
    known, goals = getattr(module, "PARTS", {}), getattr(module, "GOALS", {})
    if unknown := sorted(set(parts) - set(known)):
        raise SystemExit(f"{name} has no part {', '.join(unknown)}; it has {', '.join(known) or 'none'}")
    figures = {part: known[part]() for part in parts} if parts else module.run()
    goals = {goal: value for goal, value in goals.items() if not parts or goal.partition(".")[0] in parts}
    into.write_text(json.dumps({"figures": figures, "goals": goals}))


def parse_words(words: list[str]) -> list[tuple[str, list[str]]]:
    """Return the benchmarks, each with the parts named after it. Raises ValueError for a word before any benchmark."""
    known = names()
    chosen: list[tuple[str, list[str]]] = []
    for word in words:
        if word in known:
            chosen.append((word, []))
        elif chosen:
            chosen[-1][1].append(word)
        else:
            raise ValueError(f"no such benchmark: {word}; there are {', '.join(known)}")
    return chosen or [(name, []) for name in known]


def wants_display(name: str) -> bool:
    """Read from the source text: importing a benchmark may be slow or need what only its own process has."""
    return "\nDISPLAY = True" in (HERE / f"{name}.py").read_text(encoding="utf-8")


def main() -> int:
    """Run the chosen benchmarks, one after the other, and write bench.json."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME [PART…]", help=", ".join(names()))
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.into:
        measure_here(arguments.names[0], arguments.names[1:], arguments.into)
        return 0
    try:
        chosen = parse_words(arguments.names)
    except ValueError as error:
        parser.error(str(error))
    offscreen = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    outcomes: list[Outcome] = []
    with ExitStack() as stack:
        shown_on = None
        for name, parts in chosen:
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
