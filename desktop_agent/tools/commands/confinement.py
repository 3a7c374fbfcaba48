"""Which confinement this system offers to commands: bubblewrap, or Landlock with a filter of system calls, or none."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from desktop_agent.tools.commands import bubblewrap, landlock
from desktop_agent.tools.commands.bounds import Bounds, bounds_for

# How long the one try may take, in seconds.
_PATIENCE = 20.0
_KEPT = "It can write only in the workspace and in a temporary folder of its own."
_READS = (
    "It can read those, the system, and your development tools with their caches and settings, but no other file of "
    "yours."
)
_READS_HOME = (
    "The workspace has your home folder in it: it can read all of that, except the usual places of keys, passwords, "
    "mail and browsers."
)
_OFFLINE = "It has no network."
_ONLINE = "It can reach only {hosts}."
_ONLINE_ANYWHERE = (
    "It may use the whole network, and services of this machine: this system cannot limit it to the hosts that it "
    "names."
)
_LOOSE = (
    "It can still change the permissions and dates of your other files, and what git and other programs run by "
    "themselves, without confinement, in the workspace; you are told if it did."
)
_KEPT_THERE = (
    "It cannot change the hooks and settings of git that are in the workspace now, nor what other programs run by "
    "themselves there, but for the files that it names and those that git checks out."
)
_FREE = "Not confined: it can read, change and send whatever you can."
_ROOT = (
    "Not confined: this program runs as root, and no confinement holds root. Run it as an ordinary user, so that "
    "commands are confined."
)


@dataclass(frozen=True, slots=True)
class Confinement:
    """One way to keep a command in its bounds, by its name; without one nothing does. `note` is what to know besides.

    `holds`: everything that the title claims is held. Not for root: the bounds are set, and root has ways around them.
    `command` makes the words that start a program in a folder, within bounds. `ends_all`: what the program leaves
    running ends with it, and nobody learns how much it was. `own_processes` are its own, around the program; one that
    `stays` is the outermost, adopts who lost its parent, and ends when all of them have. `own_network`: it is alone in
    a network, so that a proxy holds it to the hosts that are granted.
    """

    name: str
    command: Callable[[Sequence[str], Path, Bounds], list[str]]
    note: str = ""
    holds: bool = False
    ends_all: bool = False
    own_processes: int = 0
    stays: bool = False
    own_network: bool = False

    def title(self, hosts: Sequence[str], *, around_home: bool = False) -> str:
        """What the person is told before a command runs that names these hosts.

        `around_home`: their home folder is in the workspace.
        """
        online = _ONLINE.format(hosts=", ".join(hosts)) if self.own_network else _ONLINE_ANYWHERE
        if not self.name:
            return " ".join(filter(None, (_FREE, online if hosts else "", self.note)))
        if not self.holds:
            return _ROOT
        said = (_KEPT, _READS_HOME if around_home else _READS, online if hosts else _OFFLINE, self.note)
        return " ".join((f"Confined by {self.name}.", *said)).strip()


def bubblewrapped(program: str) -> Confinement:
    """Namespaces: what is closed is not there."""
    command = partial(bubblewrap.command, program)
    # One watches from outside, one is the first process inside.
    holds = _is_ordinary_user()
    return Confinement("bubblewrap", command, _KEPT_THERE, holds, ends_all=True, own_processes=2, own_network=True)


def landlocked() -> Confinement:
    """Rules of the kernel: what is closed is there and cannot be opened."""
    # Landlock has no rule for chmod(2) and the like (Documentation/userspace-api/landlock.rst, "Current limitations").
    # One stays around the program, and ends what that leaves running.
    holds = _is_ordinary_user()
    return Confinement("Landlock", _by_landlock, _LOOSE, holds, ends_all=True, own_processes=1, stays=True)


def _is_ordinary_user() -> bool:
    """Whether this is not root, whom namespaces and rules leave ways around them."""
    return sys.platform != "win32" and os.geteuid() != 0


def _by_landlock(argv: Sequence[str], _folder: Path, bounds: Bounds) -> list[str]:
    return landlock.command(argv, bounds)


def unconfined(why: str) -> Confinement:
    """Nothing keeps it. `why` is a sentence for the person, with a remedy if there is one."""
    if sys.platform != "linux":
        return Confinement("", lambda argv, _folder, _bounds: list(argv), why)
    return Confinement("", _stayed_with, why, own_processes=1, stays=True)


def _stayed_with(argv: Sequence[str], _folder: Path, bounds: Bounds) -> list[str]:
    return landlock.stayed_with(argv, count_in(bounds))


def count_in(bounds: Bounds) -> Path:
    """The file in which stands how many processes a command without bounds had left running."""
    return bounds.writable[-1] / ".left-running"


@lru_cache(maxsize=1)
def offered() -> Confinement:
    """What works here, tried once for real. Starts programs and waits for them: call it in a thread."""
    if sys.platform != "linux":
        return unconfined("This system offers nothing to confine it with.")
    program = bubblewrap.installed()
    ways = [*([bubblewrapped(program)] if program else []), *([landlocked()] if landlock.is_known() else [])]
    for way in ways:
        if works(way):
            return way
    if program:
        return unconfined("This system does not let bubblewrap work, and has no Landlock of version 4 or later.")
    return unconfined("Install bubblewrap to confine commands.")


def works(way: Confinement) -> bool:
    """Whether a program that does nothing comes to its end in there, and one that writes outside fails."""
    with tempfile.TemporaryDirectory(prefix="desktop-agent-") as name, tempfile.TemporaryDirectory() as outside:
        inside = Path(name).resolve()
        bounds = bounds_for(inside, inside, (), network=False)
        line = '! ( : >"$1/out" ) 2>/dev/null && : >in'
        argv = way.command(("/bin/sh", "-c", line, "sh", outside), inside, bounds)
        try:
            ended = subprocess.run(  # noqa: S603 - words of our own
                argv, cwd=name, env={"PATH": "/usr/bin:/bin"}, capture_output=True, timeout=_PATIENCE, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return ended.returncode == 0 and (inside / "in").exists() and not (Path(outside) / "out").exists()
