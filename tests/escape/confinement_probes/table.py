"""What came of the probes in one confinement."""

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
    """Of one confinement: claim and name of each probe, and the names of those that got out."""

    name: str
    tried: list[tuple[str, str]]
    got_out: list[str]

    @property
    def broken(self) -> list[str]:
        """Those that got out though it is claimed that they cannot."""
        kept = tables()["not_claimed"].get(self.name.removeprefix("root "), ())
        return [each for each in self.got_out if each not in kept]


def run(name: str) -> Outcome:
    """Run all probes, in several arenas at once. `name` as in `ALL`, or none."""
    way = {"root": "bubblewrap", "root Landlock": "Landlock"}.get(name, name)
    words = [sys.executable, "-m", "tests.escape.confinement_probes.stage", way]
    who = "root" if name.startswith("root") else "ordinary"
    started = [
        subprocess.Popen([*words, who, str(part), str(_PARTS)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for part in range(_PARTS)
    ]
    told = [json.loads(each.communicate(timeout=_PATIENCE)[0].splitlines()[-1]) for each in started]
    tried = [(claim, probe) for part in told for claim, probe in part["tried"]]
    return Outcome(name, tried, [probe for part in told for probe in part["got_out"]])


def table(outcome: Outcome) -> str:
    """As text: claim, probes, held, and the names of those that got out; in brackets what is not claimed."""
    lines = [f"{outcome.name}: {len(outcome.tried)} probes, {len(outcome.got_out)} got out"]
    for claim, words in WORDS.items():
        mine = [name for group, name in outcome.tried if group == claim]
        out = [name for name in mine if name in outcome.got_out]
        shown = ", ".join(name if name in outcome.broken else f"({name})" for name in out)
        lines.append(f"  {words:60} {len(mine):4} {len(mine) - len(out):4}  {shown}")
    return "\n".join(lines)
