"""Choose a sandbox that works here, bubblewrap or Landlock or none, and build its command line."""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from pathlib import Path

from desktop_agent.sandbox.child_command import child_command
from desktop_agent.sandbox.environment import PROXY_PORT
from desktop_agent.sandbox.expected_mounts import ExpectedMount, expect_mount, to_words
from desktop_agent.sandbox.kernel_limits import counts_per_namespace
from desktop_agent.sandbox.policy import SandboxPolicy, build_policy, is_inside
from desktop_agent.types.errors import Sentence, join_remedy

PART = "confined"
_MODULE = "desktop_agent.sandbox.launcher"
_MACHINES = frozenset({"x86_64", "aarch64"})
# For commands that run without a question: bytes of each process and of each file, and threads in all.
_LIMITS = {"DATA": 2_000_000_000, "FSIZE": 1_000_000_000, "CORE": 0}
_NAMESPACE_LIMITS = {"NPROC": 1024}


def is_landlock_supported() -> bool:
    """Return whether Landlock may work here; only a trial can show that it does."""
    return sys.platform == "linux" and platform.machine() in _MACHINES


def namespace_command(
    argv: Sequence[str], policy: SandboxPolicy, places: Sequence[str], mounts: Sequence[ExpectedMount] = ()
) -> list[str]:
    """Return the words that start a program where namespaces restrict the files already.

    It may use internet sockets and no others, and writes only in the writable folders and these `places`: a read-only
    mount does not stop a program from writing into a pipe. If the policy has a `channel`, a socket inherited under that
    number, the launcher sends over it one that listens where the program's proxy is. It starts nothing unless these
    `mounts` are as they were recorded.
    """
    listener = {} if policy.channel is None else {"listener": (policy.channel, PROXY_PORT)}
    writes = [*map(str, policy.writable[-1:] if policy.is_read_only else policy.writable), *places]
    limits = {**_LIMITS, **(_NAMESPACE_LIMITS if counts_per_namespace() else {})} if policy.is_read_only else {}
    checked = to_words(mounts)
    spec = {"network": True, "writes": writes, "limits": limits, "mounts": len(checked), **listener}
    return child_command(PART, _MODULE, json.dumps(spec), *checked, *argv)


def supervised_command(argv: Sequence[str], policy: SandboxPolicy) -> list[str]:
    """Return the words that start a program without a sandbox, in a supervisor that ends what it leaves running.

    The number of these processes will be in `left_running_file`, if there were any.
    """
    return child_command(PART, _MODULE, json.dumps({"count_in": str(left_running_file(policy))}), *argv)


def supervised_command_from_socket(descriptor: int) -> list[str]:
    """Return the words that start a supervisor which is told over a socket what to start.

    See `sandbox.launcher.start_from_socket`; the socket is inherited under that number.
    """
    return child_command(PART, _MODULE, json.dumps({"channel": descriptor}))


def landlock_command(argv: Sequence[str], policy: SandboxPolicy) -> list[str]:
    """Return the words that start a program in the current folder, under Landlock."""
    spec = {
        "writable": [str(path) for folder in policy.writable for path in policy.writable_in(folder)],
        "readable": [str(path) for path in (*policy.readable, *policy.writable)],
        "hidden": [str(path) for path in policy.hidden],
        "network": policy.network,
        # Without a namespace, the person's other processes would count too.
        "limits": _LIMITS if policy.is_read_only else {},
    }
    return child_command(PART, _MODULE, json.dumps(spec), *argv)


# Not the person's PATH, which may name a workspace.
_SEARCH_PATH = "/usr/bin:/bin:/usr/local/bin"
# Folders of the command's own, in memory.
_EMPTY_FOLDERS = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - closed, not used
# What root may write in /proc although it concerns the whole machine.
_KERNEL_FILES = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi")


def find_bubblewrap() -> str | None:
    """Return the path of the program `bwrap`, None where it is not installed."""
    return shutil.which("bwrap", path=_SEARCH_PATH)


def bubblewrap_command(program: str, argv: Sequence[str], folder: Path, policy: SandboxPolicy) -> list[str]:
    """Return the words that start a program in `folder`, under bubblewrap."""
    options = ["--die-with-parent", "--unshare-all", "--cap-drop", "ALL", "--dev", "/dev", "--proc", "/proc"]
    if os.geteuid() == 0:
        for name in _KERNEL_FILES:
            options += ["--ro-bind-try", f"/proc/{name}", f"/proc/{name}"]
    for place in _EMPTY_FOLDERS:
        options += ["--tmpfs", place]
    for link in policy.links:
        options += ["--symlink", str(link.readlink()), str(link)]
    copies = dict(policy.copies)
    places = {*policy.readable, *policy.hidden, *policy.writable, *copies}
    mounts: list[ExpectedMount] = []
    for place in sorted(places, key=lambda path: len(path.parts)):
        if place in policy.writable:
            options += _writable_mounts(policy, place, mounts)
        elif place in policy.hidden:
            options += _hidden_mount(place)
        else:
            options += ["--ro-bind", str(copies.get(place, place)), str(place)]
    options += ["--dir", str(Path.home())] if Path.home().is_dir() else []
    # The root folder, and what was created in it on the way to these places, are in memory.
    options += ["--remount-ro", "/"]
    # A namespace does not close sockets that have a path. Its only network is its own 127.0.0.1, which nobody else
    # reaches; the proxy to the granted hosts is there.
    # A rule for a folder is one for the workspace in it.
    command_folders = policy.writable[0].parents if policy.is_read_only else ()
    own_folders = (name for name in ("/dev", "/proc", *_EMPTY_FOLDERS) if Path(name) not in command_folders)
    started = namespace_command(argv, policy, tuple(own_folders), mounts)
    return [program, *options, "--chdir", str(folder), "--", *started]


def _writable_mounts(policy: SandboxPolicy, writable: Path, mounts: list[ExpectedMount]) -> list[str]:
    # If nothing in it may be written, it is still mounted: it may lie where everything else is closed.
    paths = policy.writable_in(writable)
    if paths == (writable,):
        return [*_own_mount(writable, mounts), *_protected_mounts(policy, writable, mounts)]
    options = _own_mount(writable, mounts, is_read_only=True)
    for path in paths:
        options += ["--bind-try", str(path), str(path), *_protected_mounts(policy, path, mounts)]
    return options


def _protected_mounts(policy: SandboxPolicy, writable: Path, mounts: list[ExpectedMount]) -> list[str]:
    """Mount paths by themselves: a mount point cannot be renamed, nor replaced (rename(2), EBUSY).

    What is in a hidden folder does not exist for the command: the mount that hides the folder covers it.
    """
    options: list[str] = []
    hidden = policy.hidden_below(writable)
    for path in policy.pinned:
        options += _own_mount(path, mounts) if writable in path.parents and not is_inside(path, hidden) else []
    for path in policy.read_only:
        if writable not in (path, *path.parents) or is_inside(path, hidden):
            continue
        if path.exists():
            options += _own_mount(path, mounts, is_read_only=True)
        else:
            mounts.append(expect_mount(path, is_read_only=True, is_empty=True))
            options += ["--tmpfs", str(path), "--remount-ro", str(path)]
    return options


def _own_mount(path: Path, mounts: list[ExpectedMount], *, is_read_only: bool = False) -> list[str]:
    mounts.append(expect_mount(path, is_read_only=is_read_only))
    return ["--ro-bind" if is_read_only else "--bind", str(path), str(path)]


def _hidden_mount(place: Path) -> list[str]:
    return ["--tmpfs", str(place)] if place.is_dir() else ["--ro-bind", "/dev/null", str(place)]


# How long the trial may take, in seconds.
_TRIAL_SECONDS = 20.0
_WRITES = Sentence("The command can write only in the workspace and in a temporary folder of its own.")
_READS = Sentence(
    "It can read those, the system, and your development tools with their caches and settings, but no other file of "
    "yours."
)
_READS_HOME = Sentence(
    "The workspace contains your home folder: the command can read all of that, except the usual places of keys, "
    "passwords, mail and browsers."
)
_OFFLINE = Sentence("It has no network access.")
_ONLINE_ANYWHERE = Sentence(
    "The command can use the whole network and the services of this computer: this system cannot limit it to the "
    "hosts that it names."
)
_LANDLOCK_NOTE = Sentence(
    "It can still change the permissions and dates of your other files, and what git and other programs run by "
    "themselves, without confinement, in the workspace; you are told if it did."
)
_BUBBLEWRAP_NOTE = Sentence(
    "It cannot change the hooks and settings of git that are in the workspace now, nor what other programs run by "
    "themselves there, but for the files that it names and those that git checks out."
)
_UNCONFINED = Sentence("Not confined: the command can read, change and send whatever you can.")
_ROOT = Sentence(
    "Not confined: this program runs as root, and no confinement holds root. Run it as an ordinary user, so that "
    "commands are confined."
)


@dataclass(frozen=True, slots=True)
class Sandbox:
    """One way to confine a command, by its name; no name means no sandbox. `note` adds to the title.

    `is_enforced`: everything that the title claims is enforced. Not for root, who has ways around a sandbox. `command`
    makes the words that start a program in a folder, under a policy. `ends_descendants`: what the program leaves
    running ends with it, and nobody learns how much it was. `extra_processes` are the sandbox's own, around the
    program; if `is_supervised`, the outermost adopts every process that lost its parent, and ends after all of them.
    `has_own_network`: the program is alone in a network, so that a proxy holds it to the hosts that are granted.
    """

    name: str
    command: Callable[[Sequence[str], Path, SandboxPolicy], list[str]]
    note: Sentence | None = None
    is_enforced: bool = False
    ends_descendants: bool = False
    extra_processes: int = 0
    is_supervised: bool = False
    has_own_network: bool = False

    def title(self, hosts: Sequence[str], *, around_home: bool = False) -> Sentence:
        """Return what the person is told before a command runs that names these hosts.

        `around_home`: their home folder is in the workspace.
        """
        only = Sentence("The command can reach only {hosts}.", {"hosts": ", ".join(hosts)})
        online = only if self.has_own_network else _ONLINE_ANYWHERE
        if not self.name:
            return _join(_UNCONFINED, online if hosts else None, self.note)
        if not self.is_enforced:
            return _ROOT
        confined = Sentence("Confined by {name}.", {"name": self.name})
        reads = _READS_HOME if around_home else _READS
        return _join(confined, _WRITES, reads, online if hosts else _OFFLINE, self.note)


def _join(*sentences: Sentence | None) -> Sentence:
    return reduce(join_remedy, [sentence for sentence in sentences if sentence is not None])


def bubblewrap_sandbox(program: str) -> Sandbox:
    """Return the sandbox of namespaces: what is closed does not exist in it."""
    # One watches from outside, one is the first process inside.
    return Sandbox(
        "bubblewrap",
        partial(bubblewrap_command, program),
        _BUBBLEWRAP_NOTE,
        _is_ordinary_user(),
        ends_descendants=True,
        extra_processes=2,
        has_own_network=True,
    )


def landlock_sandbox() -> Sandbox:
    """Return the sandbox of kernel rules: what is closed exists and cannot be opened."""
    # Landlock has no rule for chmod(2) and the like (Documentation/userspace-api/landlock.rst, "Current limitations").
    # The supervisor ends what the program leaves running.
    return Sandbox(
        "Landlock",
        lambda argv, _folder, policy: landlock_command(argv, policy),
        _LANDLOCK_NOTE,
        _is_ordinary_user(),
        ends_descendants=True,
        extra_processes=1,
        is_supervised=True,
    )


def _is_ordinary_user() -> bool:
    """Return whether this is not root, who has ways around namespaces and rules."""
    return sys.platform != "win32" and os.geteuid() != 0


def no_sandbox(why: Sentence | None = None) -> Sandbox:
    """Return the absence of a sandbox. `why` is for the person, with a remedy if there is one."""
    if sys.platform != "linux":
        return Sandbox("", lambda argv, _folder, _policy: list(argv), why)
    return Sandbox(
        "",
        lambda argv, _folder, policy: supervised_command(argv, policy),
        why,
        extra_processes=1,
        is_supervised=True,
    )


def left_running_file(policy: SandboxPolicy) -> Path:
    """Return the file that counts the processes which a command without a sandbox had left running."""
    return policy.writable[-1] / ".left-running"


@lru_cache(maxsize=1)
def available_sandbox() -> Sandbox:
    """Return the sandbox that works here, after one real trial. Starts programs and waits: call it in a thread."""
    if sys.platform != "linux":
        return no_sandbox(Sentence("This system has no sandbox that can confine commands."))
    program = find_bubblewrap()
    candidates = [
        *([bubblewrap_sandbox(program)] if program else []),
        *([landlock_sandbox()] if is_landlock_supported() else []),
    ]
    for sandbox in candidates:
        if is_working(sandbox):
            return sandbox
    if program:
        return no_sandbox(
            Sentence("This system does not let bubblewrap work, and has no Landlock of version 4 or later.")
        )
    return no_sandbox(Sentence("Install bubblewrap to confine commands."))


def is_working(sandbox: Sandbox) -> bool:
    """Return whether a program that does nothing ends well in the sandbox, and one that writes outside fails."""
    with tempfile.TemporaryDirectory(prefix="desktop-agent-") as name, tempfile.TemporaryDirectory() as outside:
        folder = Path(name).resolve()
        policy = build_policy(folder, folder, (), network=False)
        line = '! ( : >"$1/out" ) 2>/dev/null && : >in'
        argv = sandbox.command(("/bin/sh", "-c", line, "sh", outside), folder, policy)
        try:
            finished = subprocess.run(  # noqa: S603 - words of our own
                argv, cwd=name, env={"PATH": "/usr/bin:/bin"}, capture_output=True, timeout=_TRIAL_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return finished.returncode == 0 and (folder / "in").exists() and not (Path(outside) / "out").exists()
