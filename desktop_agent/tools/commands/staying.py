"""A process that stays around a confined program, and ends what that leaves running when it has ended.

Whoever lost its parent becomes a child of the nearest one above that asked for it (prctl(2), PR_SET_CHILD_SUBREAPER),
in whatever session it is and whatever its environment holds.
"""

import ctypes
import os
import resource
import signal
import time
from contextlib import suppress
from pathlib import Path

from desktop_agent.tools.confining.landlock import told

_SET_CHILD_SUBREAPER = 36
# For what is born while it is ended, in seconds.
_PATIENCE = 5.0
_BREATH = 0.005


def stay_around(libc: ctypes.CDLL) -> None:
    """Fork: comes back in the child, which goes on. The parent never does. Raises OSError."""
    told(libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
    # Who is asked to end asks all: the program ends by itself, or is killed. A function, as a child inherits no such.
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, lambda _number, _frame: None)
    child = os.fork()
    if child:
        _leave_as(_waited(child))
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_DFL)
    # A signal to all of its group is not for the one that waits.
    os.setpgid(0, 0)


def _waited(child: int) -> int:
    """How the program ended, when all that came of it has too."""
    while True:
        ended, status = os.wait()
        if ended == child:
            break
    # Held back, the end of a child can be waited for, and not only so long.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until and _end_children():
        signal.sigtimedwait({signal.SIGCHLD}, _BREATH)
    return status


def _end_children() -> bool:
    """Kill all that are there, whose own become children with that; whether there were any."""
    for each in _children():
        with suppress(OSError):
            os.kill(each, signal.SIGKILL)
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    return False


def _children() -> list[int]:
    """By what the system says of each process: its list of children is not in every kernel."""
    own, found = str(os.getpid()), list[int]()
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            with suppress(OSError, IndexError):
                # The name may have spaces and brackets in it.
                said = (each / "stat").read_bytes().rpartition(b")")[2].split()
                if said[1].decode() == own:
                    found.append(int(each.name))
    return found


def _leave_as(status: int) -> None:
    """End as the program did."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError, ValueError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)
