"""The part of the program that closes itself in and then becomes another program.

Landlock (Linux, Documentation/userspace-api/landlock.rst) for files, TCP and signals; a filter of system calls for what
Landlock knows nothing of. Whatever of it fails, the program is not started.
"""

import ctypes
import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from desktop_agent.tools.commands.bounds import around
from desktop_agent.tools.commands.socket_filter import install_socket_filter

NOT_CONFINED = 125
_CANNOT_RUN = 126
# TCP can be closed since version 4; files can be cut short past the rules before version 3.
_OLDEST = 4

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_ALL = (1 << 15) - 1
_ALL_WITH_IOCTL = (1 << 16) - 1
_TCP = 0b11
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def main() -> int:
    """The words are bounds as JSON, a program, and its arguments. Comes back only when it was not started."""
    words = sys.argv[3:]
    try:
        _close_in(json.loads(words[0]))
    except (OSError, ValueError, LookupError, TypeError) as error:
        sys.stderr.write(f"The command could not be confined and was not started ({error}).\n")
        return NOT_CONFINED
    try:
        os.execve(words[1], list(words[1:]), _environment())  # noqa: S606 - that is what it is for
    except OSError as error:
        sys.stderr.write(f"“{words[1]}” could not be started: {error.strerror}.\n")
        return _CANNOT_RUN


def _environment() -> dict[str, str]:
    """Without what a frozen program adds for itself."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("LD_LIBRARY_PATH", "_PYI"))}


def _close_in(wanted: dict[str, Any]) -> None:
    """Without `writable` only sockets are closed. Raises OSError, LookupError."""
    libc, network = ctypes.CDLL(None, use_errno=True), bool(wanted["network"])
    _told(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    if "writable" in wanted:
        places = (tuple(map(Path, wanted[name])) for name in ("writable", "hidden"))
        _close_files(libc, *places, network=network)
    install_socket_filter(libc, network=network)


def _close_files(libc: ctypes.CDLL, writable: tuple[Path, ...], hidden: tuple[Path, ...], *, network: bool) -> None:
    version = _told(libc.syscall(_CREATE, None, 0, _VERSION_FLAG))
    if version < _OLDEST:
        raise OSError(f"Landlock is of version {version}")
    files = _ALL_WITH_IOCTL if version >= 5 else _ALL
    ruleset = _Ruleset(files, 0 if network else _TCP, _ABSTRACT_SOCKETS_AND_SIGNALS if version >= 6 else 0)
    # Older kernels refuse fields that they do not know.
    size = 24 if version >= 6 else 16
    rules = _told(libc.syscall(_CREATE, ctypes.byref(ruleset), size, 0))
    for path, allowed in _allowed(writable, hidden, files):
        _allow(libc, rules, path, allowed)
    _told(libc.syscall(_RESTRICT, rules, 0))
    os.close(rules)


def _allowed(writable: tuple[Path, ...], hidden: tuple[Path, ...], everything: int) -> Iterator[tuple[Path, int]]:
    for path in around(Path("/"), hidden):
        yield path, _READ
    for name in _DEVICES:
        yield Path("/dev", name), (_READ_FILE | _READ_DIR | _WRITE_FILE | _TRUNCATE | _IOCTL) & everything
    for folder in writable:
        for path in around(folder, tuple(each for each in hidden if folder in each.parents)):
            yield path, everything


def _allow(libc: ctypes.CDLL, rules: int, path: Path, allowed: int) -> None:
    """What is gone, or not ours to look at, needs no rule."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            allowed &= _OF_FILES
        beneath = _Beneath(allowed, descriptor)
        _told(libc.syscall(_ADD, rules, _PATH_BENEATH, ctypes.byref(beneath), 0))
    finally:
        os.close(descriptor)


def _told(answer: int) -> int:
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return answer
