"""How a program is started with Landlock: a small part of this one closes itself in, becomes the program, and waits."""

import json
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from desktop_agent.tools.commands.bounds import SandboxPolicy
from desktop_agent.tools.confining.limits import counts_per_namespace
from desktop_agent.tools.processes.own_part import child_command

PART = "confined"
_MODULE = "desktop_agent.tools.commands.launcher"
_MACHINES = frozenset({"x86_64", "aarch64"})
# Of a command that nobody was asked about: bytes of each process and of each file, and threads in all.
_LIMITS = {"DATA": 2_000_000_000, "FSIZE": 1_000_000_000, "CORE": 0}
_NAMESPACE_LIMITS = {"NPROC": 1024}


def is_landlock_supported() -> bool:
    """Whether it may work here; only trying tells for sure."""
    return sys.platform == "linux" and platform.machine() in _MACHINES


def namespace_command(argv: Sequence[str], policy: SandboxPolicy, places: Sequence[str]) -> list[str]:
    """The words that start a program where namespaces hold the files already.

    It may use the sockets of the internet and none of a service, and writes only in the writable folders and these
    `places`: no read-only mount keeps anybody from writing into a pipe. Where the bounds have a `channel`, a socket
    that is passed on under that number, over it comes one that listens where the program's proxy is.
    """
    listener = {} if policy.channel is None else {"listener": policy.channel}
    writes = [*map(str, policy.writable[-1:] if policy.is_read_only else policy.writable), *places]
    limits = {**_LIMITS, **(_NAMESPACE_LIMITS if counts_per_namespace() else {})} if policy.is_read_only else {}
    spec = {"network": True, "writes": writes, "limits": limits, **listener}
    return child_command(PART, _MODULE, json.dumps(spec), *argv)


def supervised_command(argv: Sequence[str], count_file: Path) -> list[str]:
    """The words that start a program in no bounds, with a process around it that ends what it leaves running.

    How many these were will be in a file of that name, if any.
    """
    return child_command(PART, _MODULE, json.dumps({"count_in": str(count_file)}), *argv)


def supervised_command_from_socket(descriptor: int) -> list[str]:
    """The words that start a program as the last function does, which and how being told over a socket.

    As in `tools.confining.handed_over`; the socket is passed on under that number.
    """
    return child_command(PART, _MODULE, json.dumps({"channel": descriptor}))


def landlock_command(argv: Sequence[str], policy: SandboxPolicy) -> list[str]:
    """The words that start a program in the current folder, within the bounds."""
    spec = {
        "writable": [str(each) for folder in policy.writable for each in policy.writable_in(folder)],
        "readable": [str(each) for each in (*policy.readable, *policy.writable)],
        "hidden": [str(each) for each in policy.hidden],
        "network": policy.network,
        # Without a namespace, processes that the person runs otherwise would count too.
        "limits": _LIMITS if policy.is_read_only else {},
    }
    return child_command(PART, _MODULE, json.dumps(spec), *argv)
