"""How a program is started by bubblewrap (bwrap(1)): in namespaces of its own, in which what is closed is not there."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from desktop_agent.tools.commands.bounds import SandboxPolicy
from desktop_agent.tools.commands.landlock import namespace_command

# Not by the person's path, in which a workspace may stand.
_SEARCH_PATH = "/usr/bin:/bin:/usr/local/bin"
# Folders of the command's own, in memory.
_EMPTY_FOLDERS = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - closed, not used
# What root may write in /proc though it is of the whole machine.
_KERNEL_FILES = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi")


def find_bubblewrap() -> str | None:
    """Where it is."""
    return shutil.which("bwrap", path=_SEARCH_PATH)


def bubblewrap_command(program: str, argv: Sequence[str], folder: Path, policy: SandboxPolicy) -> list[str]:
    """The words that start a program in `folder`, within the bounds."""
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
    for place in sorted(places, key=lambda each: len(each.parts)):
        if place in policy.writable:
            options += _writable_mounts(policy, place)
        elif place in policy.hidden:
            options += _hidden_mount(place)
        else:
            options += ["--ro-bind", str(copies.get(place, place)), str(place)]
    options += ["--dir", str(Path.home())] if Path.home().is_dir() else []
    # The root is in memory, and what was made in it on the way to these places.
    options += ["--remount-ro", "/"]
    # A namespace keeps no socket away that has a path. Of the internet it has its own 127.0.0.1, which nobody else
    # reaches, and there the proxy to the hosts that are granted.
    # A rule for a folder is one for the workspace in it.
    held = policy.writable[0].parents if policy.is_read_only else ()
    own = (each for each in ("/dev", "/proc", *_EMPTY_FOLDERS) if Path(each) not in held)
    started = namespace_command(argv, policy, tuple(own))
    return [program, *options, "--chdir", str(folder), "--", *started]


def _writable_mounts(policy: SandboxPolicy, writable: Path) -> list[str]:
    # Where nothing in it may be written it is seen all the same: it may lie where all else is closed.
    inside = policy.writable_in(writable)
    if inside == (writable,):
        return ["--bind", str(writable), str(writable), *_protected_mounts(policy, writable)]
    options = ["--ro-bind", str(writable), str(writable)]
    for each in inside:
        options += ["--bind-try", str(each), str(each), *_protected_mounts(policy, each)]
    return options


def _protected_mounts(policy: SandboxPolicy, writable: Path) -> list[str]:
    """A place of its own among the mounts cannot be renamed, nor be replaced by something else (rename(2), EBUSY)."""
    options: list[str] = []
    for each in policy.pinned:
        options += ["--bind", str(each), str(each)] if writable in each.parents else []
    for each in policy.read_only:
        if writable not in (each, *each.parents):
            continue
        there = ["--ro-bind", str(each), str(each)]
        options += there if each.exists() else ["--tmpfs", str(each), "--remount-ro", str(each)]
    return options


def _hidden_mount(place: Path) -> list[str]:
    return ["--tmpfs", str(place)] if place.is_dir() else ["--ro-bind", "/dev/null", str(place)]
