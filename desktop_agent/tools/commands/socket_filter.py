"""A filter of system calls (seccomp, Documentation/userspace-api/seccomp_filter.rst) for the making of sockets.

Landlock closes TCP. UDP, and the sockets of services of this session, through which a command could ask somebody else
to do what it may not, are closed by not letting it make such sockets.
"""

import ctypes
import errno
import platform

from desktop_agent.tools.confining.call_filter import (
    ALLOW,
    ARCHITECTURE,
    ARCHITECTURES,
    AT_LEAST,
    EQUAL,
    FIRST_ARGUMENT,
    LOAD,
    NUMBER,
    REFUSE,
    RETURN,
    X32,
    install,
    step,
)

# The number of socket(2).
_SOCKET = {"x86_64": 41, "aarch64": 198}
# Makes sockets past every filter.
_IO_URING_SETUP = 425
_INET, _INET6, _NETLINK = 2, 10, 16


def install_socket_filter(libc: ctypes.CDLL, *, network: bool) -> None:
    """For this process and all that come of it, for good. Raises OSError."""
    install(libc, _steps(platform.machine(), network=network))


def _steps(machine: str, *, network: bool) -> list[bytes]:
    if machine not in _SOCKET:
        raise OSError(f"no filter is known for {machine}")
    families = (_INET, _INET6, _NETLINK) if network else ()
    refused = step(RETURN, REFUSE | errno.EACCES)
    absent = step(RETURN, REFUSE | errno.ENOSYS)
    return [
        step(LOAD, ARCHITECTURE),
        step(EQUAL, ARCHITECTURES[machine], then=1),
        refused,
        step(LOAD, NUMBER),
        step(AT_LEAST, X32, otherwise=1),
        absent,
        step(EQUAL, _IO_URING_SETUP, otherwise=1),
        absent,
        step(EQUAL, _SOCKET[machine], then=1),
        step(RETURN, ALLOW),
        step(LOAD, FIRST_ARGUMENT),
        *(step(EQUAL, family, then=len(families) - at) for at, family in enumerate(families)),
        refused,
        step(RETURN, ALLOW),
    ]
