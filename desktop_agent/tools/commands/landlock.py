"""How a program is started with Landlock: a small part of this one closes itself in, becomes the program, and waits."""

import json
import platform
import sys
from collections.abc import Sequence

from desktop_agent.tools.commands.bounds import Bounds
from desktop_agent.tools.processes.own_part import part_command

PART = "confined"
_MODULE = "desktop_agent.tools.commands.launcher"
_MACHINES = frozenset({"x86_64", "aarch64"})


def is_known() -> bool:
    """Whether it may work here; only trying tells for sure."""
    return sys.platform == "linux" and platform.machine() in _MACHINES


def without_services(argv: Sequence[str], *, network: bool) -> list[str]:
    """The words that start a program which may use no socket of a service, and others only with the `network`."""
    return part_command(PART, _MODULE, json.dumps({"network": network}), *argv)


def command(argv: Sequence[str], bounds: Bounds) -> list[str]:
    """The words that start a program in the current folder, within the bounds."""
    wanted = {
        "writable": [str(each) for each in bounds.writable],
        "hidden": [str(each) for each in bounds.hidden],
        "network": bounds.network,
    }
    return part_command(PART, _MODULE, json.dumps(wanted), *argv)
