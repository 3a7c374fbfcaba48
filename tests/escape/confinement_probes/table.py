"""The results of the probes in one confinement."""

import json
import subprocess
import sys
from dataclasses import dataclass

from tests.escape.confinement_probes.arena import tables
from tests.frame.unprivileged import ROOT

ALL = ("bubblewrap", "Landlock", "root", "root Landlock")
WORDS = {
    "reads": "reads no file of yours but the workspace, tools and caches",
    "writes": "writes only in the workspace and its temporary folder",
    "network": "has no network",
    "services": "asks no service of the system, also with the network",
    "programs": "reaches no other program",
    "kernel": "changes no setting and reaches no part of the kernel",
    "user": "becomes nobody else",
    "end": "leaves nothing running",
}
_PATIENCE = 900.0
_PARTS = 4


@dataclass(frozen=True, slots=True)
class Outcome:
    """The claim and name of each probe that was run in one confinement, and the names of those that escaped."""

    name: str
    tried: list[tuple[str, str]]
    got_out: list[str]

    @property
    def broken(self) -> list[str]:
        """Return the escaped probes that disprove a claim."""
        not_claimed = tables()["not_claimed"].get(self.name.removeprefix("root "), ())
        return [name for name in self.got_out if name not in not_claimed]


def run(name: str) -> Outcome:
    """Run all probes in several arenas at once. `name` is one of `ALL`, or "none" for no confinement."""
    confinement = {"root": "bubblewrap", "root Landlock": "Landlock"}.get(name, name)
    command = [sys.executable, "-m", "tests.escape.confinement_probes.stage", confinement]
    who = "root" if name.startswith("root") else "ordinary"
    started = [
        subprocess.Popen([*command, who, str(part), str(_PARTS)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for part in range(_PARTS)
    ]
    reports = [json.loads(process.communicate(timeout=_PATIENCE)[0].splitlines()[-1]) for process in started]
    tried = [(claim, probe) for report in reports for claim, probe in report["tried"]]
    return Outcome(name, tried, [probe for report in reports for probe in report["got_out"]])


def table(outcome: Outcome) -> str:
    """Return lines with claim, number of probes, number held, and the escaped probes; unclaimed ones in brackets."""
    lines = [f"{outcome.name}: {len(outcome.tried)} probes, {len(outcome.got_out)} got out"]
    for claim, sentence in WORDS.items():
        mine = [name for group, name in outcome.tried if group == claim]
        out = [name for name in mine if name in outcome.got_out]
        names = ", ".join(name if name in outcome.broken else f"({name})" for name in out)
        lines.append(f"  {sentence:60} {len(mine):4} {len(mine) - len(out):4}  {names}")
    return "\n".join(lines)
