"""The part of the program that closes itself in and then becomes another program.

Landlock (Linux, Documentation/userspace-api/landlock.rst) for files, TCP and signals; a filter of system calls for what
Landlock knows nothing of. Whatever of it fails, the program is not started.
"""

import ctypes
import json
import os
import signal
import socket
import stat
import sys
from pathlib import Path
from typing import Any

from desktop_agent.tools.commands.bounds import paths_except
from desktop_agent.tools.commands.environment import PROXY_PORT
from desktop_agent.tools.commands.system_calls import install_command_filter
from desktop_agent.tools.confining.handed_over import restore_signals, start_from_socket
from desktop_agent.tools.confining.landlock import (
    EXECUTE,
    IOCTL,
    READ_DIR,
    READ_FILE,
    TRUNCATE,
    WRITE_FILE,
    LandlockRules,
    all_rights,
    check_syscall,
    landlock_version,
    no_new_privileges,
)
from desktop_agent.tools.confining.limits import limit_process
from desktop_agent.tools.confining.staying import fork_supervisor
from desktop_agent.tools.processes.own_part import original_environment

NOT_CONFINED = 125
_CANNOT_RUN = 126
# TCP can be closed since version 4; files can be cut short past the rules before version 3.
_MIN_LANDLOCK = 4
# Before, files cannot be moved from one folder to another, whatever is allowed.
_MIN_LANDLOCK_FOR_MOVES = 2

_READ = EXECUTE | READ_FILE | READ_DIR
_FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL
# Numbers of capabilities(7) and prctl(2).
_READ_BOUNDING, _DROP_BOUNDING, _AMBIENT, _CLEAR_AMBIENT = 23, 24, 47, 4
_CAPABILITY_VERSION = 0x20080522
# Not pts: the person's other terminals are in there.
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


def main() -> int:
    """The words are bounds as JSON, a program, and its arguments. Comes back only when it was not started.

    Where no namespace ends what the program leaves running, a process stays outside of the bounds to do that. It is all
    there is around a program without bounds, and then says in the file `left_running_file` how many it ended; and
    around one that is told over the socket `channel`.
    """
    words = sys.argv[3:]
    try:
        spec = json.loads(words[0])
        if "channel" in spec:
            start_from_socket(ctypes.CDLL(None, use_errno=True), spec["channel"])
        if "writable" in spec or "count_in" in spec:
            fork_supervisor(ctypes.CDLL(None, use_errno=True), spec.get("count_in"))
        if "count_in" not in spec:
            _confine(spec)
    except (OSError, ValueError, LookupError, TypeError) as error:
        sys.stderr.write(f"The command could not be confined and was not started ({error}).\n")
        return NOT_CONFINED
    restore_signals()
    if spec.get("limits"):
        # So that a program says of a file that it gets too large, and does not just end.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        os.execve(words[1], list(words[1:]), original_environment())  # noqa: S606 - that is what it is for
    except OSError as error:
        sys.stderr.write(f"“{words[1]}” could not be started: {error.strerror}.\n")
        return _CANNOT_RUN


def _confine(spec: dict[str, Any]) -> None:
    """Without `writable` namespaces hold the files, and only system calls are closed. Raises OSError, LookupError."""
    if "listener" in spec:
        _send_listener(spec["listener"])
    libc, internet = ctypes.CDLL(None, use_errno=True), bool(spec["network"])
    no_new_privileges(libc)
    _drop_capabilities(libc)
    if "writable" in spec:
        places = (tuple(map(Path, spec[name])) for name in ("writable", "readable", "hidden"))
        _restrict_files(libc, *places, network=internet)
    else:
        _restrict_writes(libc, spec["writes"])
    limit_process(for_good=True, **spec["limits"])
    install_command_filter(libc, internet=internet, in_namespaces="writable" not in spec)


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("process", ctypes.c_int))


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Give up all rights of root for good, also those that a program started later would get. Raises OSError."""
    check_syscall(libc.prctl(_AMBIENT, _CLEAR_AMBIENT, 0, 0, 0))
    each = 0
    # Who may not drop them has none to give, and gets none by a program (no_new_privileges).
    while libc.prctl(_READ_BOUNDING, each, 0, 0, 0) >= 0:
        libc.prctl(_DROP_BOUNDING, each, 0, 0, 0)
        each += 1
    nothing = (ctypes.c_uint32 * 6)()
    check_syscall(libc.capset(ctypes.byref(_Header(_CAPABILITY_VERSION, 0)), nothing))


def _send_listener(channel: int) -> None:
    """Send a socket over `channel` on which somebody outside answers what connects in here.

    A socket stays in the network in which it was made. The program gets neither of the two.
    """
    with socket.socket(fileno=channel) as there, socket.create_server(("127.0.0.1", PROXY_PORT)) as listening:
        socket.send_fds(there, [b"."], [listening.fileno()])


def _restrict_files(
    libc: ctypes.CDLL,
    writable: tuple[Path, ...],
    readable: tuple[Path, ...],
    hidden: tuple[Path, ...],
    *,
    network: bool,
) -> None:
    version = landlock_version(libc)
    if version < _MIN_LANDLOCK:
        raise OSError(f"Landlock is of version {version}")
    rules, everything = LandlockRules(libc, version, network=network), all_rights(version)
    for place in (Path("/proc"), *readable):
        for path in paths_except(place, tuple(each for each in hidden if place in each.parents)):
            _allow(rules, path, _READ)
    for name in _DEVICES:
        _allow(rules, Path("/dev", name), (READ_FILE | WRITE_FILE | TRUNCATE | IOCTL) & everything)
    for folder in writable:
        for path in paths_except(folder, tuple(each for each in hidden if folder in each.parents)):
            _allow(rules, path, everything)
    rules.enforce()


def _restrict_writes(libc: ctypes.CDLL, writes: list[str]) -> None:
    """Writing is for these places alone. What is no file or folder can be written though its mount is read-only."""
    try:
        version = landlock_version(libc)
    except OSError:
        return
    if version < _MIN_LANDLOCK_FOR_MOVES:
        return
    rules = LandlockRules(libc, version, network=True)
    _allow(rules, Path("/"), _READ)
    for place in writes:
        _allow(rules, Path(place), all_rights(version))
    rules.enforce()


def _allow(rules: LandlockRules, path: Path, allowed: int) -> None:
    """What is gone, or not ours to look at, needs no rule."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            allowed &= _FILE_RIGHTS
        rules.allow(descriptor, allowed)
    finally:
        os.close(descriptor)
