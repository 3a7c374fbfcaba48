"""Compares how lines are taken apart with what a shell does: `python -m tests.shell_differential`.

Each line that is understood is run in a box (see `tests.shell_differential.box`): nothing may run, be set or be opened
there that its parsed form does not tell of. What differs is made as short as it goes and kept in the folder `fuzz`.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from desktop_agent.permissions.shell.parser import ParsedLine, parse_line
from tests.shell_differential.box import SHELLS, Box
from tests.shell_differential.compare import differences, usual_environment
from tests.shell_differential.grammar import lines

KEPT = Path(__file__).parents[2] / "fuzz"
LINES = 70_000
LOCALES = ("C.UTF-8", "C")
_BATCH = 5_000
_MAX_SHOWN = 40
_MAX_TRIES = 400


@dataclass
class Report:
    """What some lines gave. `accepted` and `of_grammar` are of the lines of the grammar alone."""

    made: int = 0
    understood: int = 0
    accepted: int = 0
    of_grammar: int = 0
    ran: int = 0
    ended: int = 0
    processes: int = 0
    commands: int = 0
    files: int = 0
    found: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    @property
    def share(self) -> float:
        """How many of the grammar's lines are understood, of those that the shell takes."""
        return self.of_grammar / max(self.accepted, 1)


class Comparison:
    """Compares lines in one box."""

    def __init__(self, box: Box) -> None:
        self._box = box
        self._usual = usual_environment(box.run("a").started)
        self.report = Report()

    def differences(self, line: str, taken_for: ParsedLine | None = None) -> tuple[str, ...]:
        """What the line does and its parsed form does not tell of."""
        return differences(taken_for or parse_line(line), self._box.run(line), self._usual, line)

    def compare(self, kind: str, line: str) -> None:
        """Count one line, and what differs in it."""
        report, found = self.report, parse_line(line)
        report.made += 1
        if not found.understood:
            if kind == "grammar":
                report.accepted += self._box.accepts(line)
            return
        report.understood += 1
        ran = self._box.run(line)
        if kind == "grammar" and ran.is_accepted:
            report.accepted += 1
            report.of_grammar += 1
        report.ran += ran.is_accepted
        report.ended += ran.is_ended
        report.processes += len(ran.started)
        report.commands += len(ran.traced)
        report.files += len(ran.opened)
        if faults := differences(found, ran, self._usual, line):
            report.found[line] = faults

    def shortened(self, line: str) -> str:
        """The shortest that still differs, by taking characters away."""
        size, tries = max(len(line) // 2, 1), 0
        while size and tries < _MAX_TRIES:
            at = 0
            while at < len(line) and tries < _MAX_TRIES:
                shorter = line[:at] + line[at + size :]
                tries += 1
                if shorter and parse_line(shorter).understood and self.differences(shorter):
                    line = shorter
                else:
                    at += size
            size //= 2
        return line


def compared(shell: str, seed: int, count: int, say: Callable[[str], None]) -> Report:
    """Compare so many lines; what differs is said, and kept."""
    source, total = lines(seed), Report()
    for start in range(0, count, _BATCH):
        with Box(shell, LOCALES[start // _BATCH % len(LOCALES)]) as box:
            comparison = Comparison(box)
            comparison.report = total
            known = len(total.found)
            for kind, line in islice(source, min(_BATCH, count - start)):
                comparison.compare(kind, line)
            for number, line in list(enumerate(total.found))[known:_MAX_SHOWN]:
                _keep(f"{shell}-{seed}-{number}", comparison, line, say)
        say(f"{total.made} lines, {total.understood} understood, {len(total.found)} differ")
    return total


def _keep(name: str, comparison: Comparison, line: str, say: Callable[[str], None]) -> None:
    shorter = comparison.shortened(line)
    faults = comparison.differences(shorter) or comparison.report.found[line]
    KEPT.mkdir(exist_ok=True)
    text = "\n".join([shorter, "", *faults, "", repr(line), ""])
    (KEPT / f"{name}.shell.txt").write_text(text, errors="backslashreplace")
    say(f"{name}: {shorter!r}: {'; '.join(faults)[:300]}")


def main() -> int:
    """Compare; 0 when nothing differs."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.shell_differential", description="Lines against a real shell"
    )
    parser.add_argument("--lines", type=int, default=LINES)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--shell", choices=SHELLS, default="bash")
    asked = parser.parse_args()
    began = time.monotonic()

    def say(text: str) -> None:
        sys.stdout.write(text.encode(errors="backslashreplace").decode() + "\n")
        sys.stdout.flush()

    report = compared(asked.shell, asked.seed, asked.lines, say)
    say(
        f"seed {asked.seed}, {asked.shell}: {report.made} lines made, {report.understood} understood "
        f"({report.share:.0%} of what the shell accepts of the grammar's), {report.ran} ran, "
        f"{report.ended} of them had to be ended; "
        f"{report.processes} processes started, {report.commands} commands traced, {report.files} files opened; "
        f"{len(report.found)} differ; {time.monotonic() - began:.0f} seconds"
    )
    return 1 if report.found else 0


if __name__ == "__main__":
    sys.exit(main())
