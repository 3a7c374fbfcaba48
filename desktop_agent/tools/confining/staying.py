"""A process that stays around a program, and ends what that leaves running when it has ended.

Whoever lost its parent becomes a child of the nearest one above that asked for it (prctl(2), PR_SET_CHILD_SUBREAPER),
in whatever session it is and whatever its environment holds.
"""

import ctypes
import os
import resource
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from desktop_agent.tools.confining.landlock import check_syscall

_SET_CHILD_SUBREAPER = 36
# For those who are asked to end, and for what is born while it is killed, in seconds.
_GRACE = 1.0
_KILL_SECONDS = 5.0
_POLL_SECONDS = 0.005


def fork_supervisor(
    libc: ctypes.CDLL, count_file: str | None = None, release: Callable[[], None] = lambda: None
) -> None:
    """Fork: comes back in the child, which goes on. The parent never does. Raises OSError.

    `left_running_file` is a file that will hold how many processes were left running, if any were. The parent calls
    `on_nested_end`.
    """
    check_syscall(libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
    # Who is asked to end asks all: the program ends by itself, or is killed. A function, as a child inherits no such.
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, lambda _number, _frame: None)
    child = os.fork()
    if child:
        release()
        _exit_like(_wait_for_all(child, count_file))
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_DFL)
    # A signal to all of its group is not for the one that waits.
    os.setpgid(0, 0)


def read_left_running(count_file: Path) -> int:
    """What the process that stayed has written there."""
    try:
        return int(count_file.read_bytes()[:20])
    except (OSError, ValueError):
        return 0


def _wait_for_all(child: int, count_file: str | None) -> int:
    """How the program ended, when all that came of it has too."""
    while True:
        ended, status = os.wait()
        if ended == child:
            break
    # Held back, the end of a child can be waited for, and not only so long.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    if not _has_children():
        return status
    left = _signal_descendants(signal.SIGTERM)
    if left and count_file is not None:
        _write_count(count_file, left)
    _until_gone(_GRACE)
    _until_gone(_KILL_SECONDS, lambda: _signal_descendants(signal.SIGKILL))
    return status


def _until_gone(seconds: float, again: Callable[[], object] = lambda: None) -> None:
    until = time.monotonic() + seconds
    while _has_children() and time.monotonic() < until:
        again()
        signal.sigtimedwait({signal.SIGCHLD}, _POLL_SECONDS)


def _has_children() -> bool:
    """Whether anybody is left whose parent this is by now; those that have ended are let go."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    return False


def _signal_descendants(what: signal.Signals) -> int:
    """Of all that came of this process; whose parent ends becomes its child with that. How many there were."""
    told = _descendants(os.getpid())
    for each in told:
        with suppress(OSError):
            os.kill(each, what)
    return len(told)


def _descendants(of: int) -> list[int]:
    """By what the system says of each process: its list of children is not in every kernel. Not those that ended."""
    children: dict[int, list[int]] = {}
    ended: set[int] = set()
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            with suppress(OSError, IndexError):
                # The name may have spaces and brackets in it.
                state, parent = (each / "stat").read_bytes().rpartition(b")")[2].split()[:2]
                children.setdefault(int(parent), []).append(int(each.name))
                if state == b"Z":
                    ended.add(int(each.name))
    found = children.get(of, [])[:]
    for each in found:
        # Grows while it is walked: theirs come behind them.
        found += children.get(each, ())
    return [each for each in found if each not in ended]


def _write_count(place: str, count: int) -> None:
    """Nowhere else, though somebody put a link there."""
    with suppress(OSError):
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        os.write(descriptor, str(count).encode())
        os.close(descriptor)


def _exit_like(status: int) -> None:
    """End as the program did."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError, ValueError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)
