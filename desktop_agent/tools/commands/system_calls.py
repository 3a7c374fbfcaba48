"""The filter of system calls (seccomp, Documentation/userspace-api/seccomp_filter.rst) around a confined command.

Sockets: Landlock closes TCP. UDP, and the sockets of services of this session, through which a command could ask
somebody else to do what it may not, are closed by not letting it make such sockets. Of the pairs that come connected a
datagram one can be turned to whatever has a path (unix(7)), those of streams cannot.

Namespaces, keys, parts of the kernel and input of terminals: refused by number (system_calls.toml), or by an argument.
"""

import ctypes
import errno
import platform
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

from desktop_agent.tools.confining.call_filter import (
    ALLOW,
    ARCHITECTURE,
    ARCHITECTURES,
    AT_LEAST,
    EQUAL,
    FIRST_ARGUMENT,
    KEEP_BITS,
    LOAD,
    NUMBER,
    REFUSE,
    RETURN,
    SECOND_ARGUMENT,
    X32,
    install_filter,
    instruction,
)

_MACHINES = ("x86_64", "aarch64")
_SOCKET, _PAIR = (41, 198), (53, 199)
_CLONE, _UNSHARE, _IOCTL = (56, 220), (272, 97), (16, 29)
_PRLIMIT, _SET_PRIORITY, _SET_IO_PRIORITY = (302, 261), (141, 140), (251, 30)
_INET, _INET6, _NETLINK = 2, 10, 16
_STREAM, _SEQUENCE = 1, 5
# Above are SOCK_NONBLOCK and SOCK_CLOEXEC.
_TYPE_BITS = 0xF
# CLONE_NEWNS, -CGROUP, -UTS, -IPC, -USER, -PID, -NET.
_NAMESPACES = 0x7E020000
# TIOCSTI types into a terminal, TIOCLINUX pastes there (ioctl_tty(2)).
_TERMINAL_INPUT = (0x5412, 0x541C)
# PRIO_USER and IOPRIO_WHO_USER: all processes of the user.
_WHOLE_USER, _WHOLE_USER_IO = 2, 3


def install_command_filter(libc: ctypes.CDLL, *, internet: bool, in_namespaces: bool) -> None:
    """For this process and all that come of it, for good. `internet`: its sockets may be made. Raises OSError.

    `in_namespaces`: what other programs share with this one lies in namespaces of its own.
    """
    install_filter(libc, command_filter(platform.machine(), internet=internet, in_namespaces=in_namespaces))


def command_filter(machine: str, *, internet: bool, in_namespaces: bool) -> list[bytes]:
    """What the filter asks of each call. Raises OSError for a machine whose calls are not known."""
    if machine not in _MACHINES:
        raise OSError(f"no filter is known for {machine}")
    column, tables = _MACHINES.index(machine), _tables()
    refused = [tables["refused"], *([] if in_namespaces else [tables["without_namespaces"]])]
    made = [
        instruction(LOAD, ARCHITECTURE),
        instruction(EQUAL, ARCHITECTURES[machine], then=1),
        instruction(RETURN, REFUSE | errno.EACCES),
        instruction(LOAD, NUMBER),
        instruction(AT_LEAST, X32, otherwise=1),
        instruction(RETURN, REFUSE | errno.ENOSYS),
    ]
    for error, calls in (pair for table in refused for pair in table.items()):
        for numbers in calls.values():
            if numbers[column] >= 0:
                made += _when(numbers[column], [instruction(RETURN, REFUSE | getattr(errno, error))])
    made += _when(_SOCKET[column], _unless_one_of((_INET, _INET6, _NETLINK) if internet else (), FIRST_ARGUMENT))
    made += _when(_PAIR[column], _unless_one_of((_STREAM, _SEQUENCE), SECOND_ARGUMENT, _TYPE_BITS))
    for call in (_CLONE, _UNSHARE):
        made += _when(call[column], [*_unless(0, FIRST_ARGUMENT, _NAMESPACES), instruction(RETURN, ALLOW)])
    made += _when(_IOCTL[column], [*_if_one_of(_TERMINAL_INPUT, SECOND_ARGUMENT), instruction(RETURN, ALLOW)])
    if not in_namespaces:
        made += _when(_PRLIMIT[column], [*_unless(0, FIRST_ARGUMENT), instruction(RETURN, ALLOW)])
        for call, of_all in ((_SET_PRIORITY, _WHOLE_USER), (_SET_IO_PRIORITY, _WHOLE_USER_IO)):
            only_own = [
                *_if_one_of((of_all,), FIRST_ARGUMENT),
                *_unless(0, SECOND_ARGUMENT),
                instruction(RETURN, ALLOW),
            ]
            made += _when(call[column], only_own)
    return [*made, instruction(RETURN, ALLOW)]


@lru_cache(maxsize=1)
def _tables() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _when(call: int, then: list[bytes]) -> list[bytes]:
    """Steps for one call, which end in an answer."""
    return [instruction(EQUAL, call, otherwise=len(then)), *then]


def _unless_one_of(values: tuple[int, ...], argument: int, bits: int = 0xFFFFFFFF) -> list[bytes]:
    """Refused as where a kernel has none of these: programs know what to do then."""
    asked = [instruction(EQUAL, value, then=len(values) - at) for at, value in enumerate(values)]
    refused = instruction(RETURN, REFUSE | errno.EAFNOSUPPORT)
    return [instruction(LOAD, argument), instruction(KEEP_BITS, bits), *asked, refused, instruction(RETURN, ALLOW)]


def _unless(value: int, argument: int, bits: int = 0xFFFFFFFF) -> list[bytes]:
    refused = instruction(RETURN, REFUSE | errno.EPERM)
    return [instruction(LOAD, argument), instruction(KEEP_BITS, bits), instruction(EQUAL, value, then=1), refused]


def _if_one_of(values: tuple[int, ...], argument: int) -> list[bytes]:
    refused = instruction(RETURN, REFUSE | errno.EPERM)
    asked = [part for value in values for part in (instruction(EQUAL, value, otherwise=1), refused)]
    return [instruction(LOAD, argument), *asked]
