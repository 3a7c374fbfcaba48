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
from desktop_agent.tools.commands.bounds import SandboxPolicy, build_policy

# How long the one try may take, in seconds.
_TRIAL_SECONDS = 20.0
_WRITES = "It can write only in the workspace and in a temporary folder of its own."
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
_LANDLOCK_NOTE = (
    "It can still change the permissions and dates of your other files, and what git and other programs run by "
    "themselves, without confinement, in the workspace; you are told if it did."
)
_BUBBLEWRAP_NOTE = (
    "It cannot change the hooks and settings of git that are in the workspace now, nor what other programs run by "
    "themselves there, but for the files that it names and those that git checks out."
)
_UNCONFINED = "Not confined: it can read, change and send whatever you can."
_ROOT = (
    "Not confined: this program runs as root, and no confinement holds root. Run it as an ordinary user, so that "
    "commands are confined."
)


@dataclass(frozen=True, slots=True)
class Sandbox:
    """One way to keep a command in its bounds, by its name; without one nothing does. `note` is what to know besides.

    `holds`: everything that the title claims is held. Not for root: the bounds are set, and root has ways around them.
    `command` makes the words that start a program in a folder, within bounds. `ends_descendants`: what the program
    leaves
    running ends with it, and nobody learns how much it was. `extra_processes` are its own, around the program; one that
    `stays` is the outermost, adopts who lost its parent, and ends when all of them have. `has_own_network`: it is
    alone in a network, so that a proxy holds it to the hosts that are granted.
    """

    name: str
    command: Callable[[Sequence[str], Path, SandboxPolicy], list[str]]
    note: str = ""
    is_enforced: bool = False
    ends_descendants: bool = False
    extra_processes: int = 0
    is_supervised: bool = False
    has_own_network: bool = False

    def title(self, hosts: Sequence[str], *, around_home: bool = False) -> str:
        """What the person is told before a command runs that names these hosts.

        `around_home`: their home folder is in the workspace.
        """
        online = _ONLINE.format(hosts=", ".join(hosts)) if self.has_own_network else _ONLINE_ANYWHERE
        if not self.name:
            return " ".join(filter(None, (_UNCONFINED, online if hosts else "", self.note)))
        if not self.is_enforced:
            return _ROOT
        said = (_WRITES, _READS_HOME if around_home else _READS, online if hosts else _OFFLINE, self.note)
        return " ".join((f"Confined by {self.name}.", *said)).strip()


def bubblewrap_sandbox(program: str) -> Sandbox:
    """Namespaces: what is closed is not there."""
    command = partial(bubblewrap.bubblewrap_command, program)
    # One watches from outside, one is the first process inside.
    holds = _is_ordinary_user()
    return Sandbox(
        "bubblewrap", command, _BUBBLEWRAP_NOTE, holds, ends_descendants=True, extra_processes=2, has_own_network=True
    )


def landlock_sandbox() -> Sandbox:
    """Rules of the kernel: what is closed is there and cannot be opened."""
    # Landlock has no rule for chmod(2) and the like (Documentation/userspace-api/landlock.rst, "Current limitations").
    # One stays around the program, and ends what that leaves running.
    holds = _is_ordinary_user()
    return Sandbox(
        "Landlock", _landlock_argv, _LANDLOCK_NOTE, holds, ends_descendants=True, extra_processes=1, is_supervised=True
    )


def _is_ordinary_user() -> bool:
    """Whether this is not root, whom namespaces and rules leave ways around them."""
    return sys.platform != "win32" and os.geteuid() != 0


def _landlock_argv(argv: Sequence[str], _folder: Path, policy: SandboxPolicy) -> list[str]:
    return landlock.landlock_command(argv, policy)


def no_sandbox(why: str) -> Sandbox:
    """Nothing keeps it. `why` is a sentence for the person, with a remedy if there is one."""
    if sys.platform != "linux":
        return Sandbox("", lambda argv, _folder, _bounds: list(argv), why)
    return Sandbox("", _supervised_argv, why, extra_processes=1, is_supervised=True)


def _supervised_argv(argv: Sequence[str], _folder: Path, policy: SandboxPolicy) -> list[str]:
    return landlock.supervised_command(argv, left_running_file(policy))


def left_running_file(policy: SandboxPolicy) -> Path:
    """The file in which stands how many processes a command without bounds had left running."""
    return policy.writable[-1] / ".left-running"


@lru_cache(maxsize=1)
def available_sandbox() -> Sandbox:
    """What works here, tried once for real. Starts programs and waits for them: call it in a thread."""
    if sys.platform != "linux":
        return no_sandbox("This system offers nothing to confine it with.")
    program = bubblewrap.find_bubblewrap()
    candidates = [
        *([bubblewrap_sandbox(program)] if program else []),
        *([landlock_sandbox()] if landlock.is_landlock_supported() else []),
    ]
    for sandbox in candidates:
        if is_working(sandbox):
            return sandbox
    if program:
        return no_sandbox("This system does not let bubblewrap work, and has no Landlock of version 4 or later.")
    return no_sandbox("Install bubblewrap to confine commands.")


def is_working(sandbox: Sandbox) -> bool:
    """Whether a program that does nothing comes to its end in there, and one that writes outside fails."""
    with tempfile.TemporaryDirectory(prefix="desktop-agent-") as name, tempfile.TemporaryDirectory() as outside:
        inside = Path(name).resolve()
        policy = build_policy(inside, inside, (), network=False)
        line = '! ( : >"$1/out" ) 2>/dev/null && : >in'
        argv = sandbox.command(("/bin/sh", "-c", line, "sh", outside), inside, policy)
        try:
            ended = subprocess.run(  # noqa: S603 - words of our own
                argv, cwd=name, env={"PATH": "/usr/bin:/bin"}, capture_output=True, timeout=_TRIAL_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return ended.returncode == 0 and (inside / "in").exists() and not (Path(outside) / "out").exists()
