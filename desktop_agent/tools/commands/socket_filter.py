"""A filter of system calls (seccomp, Documentation/userspace-api/seccomp_filter.rst) for the making of sockets.

Landlock closes TCP. UDP, and the sockets of services of this session, through which a command could ask somebody else
to do what it may not, are closed by not letting it make such sockets. Of the pairs that come connected a datagram one
can be turned to whatever has a path (unix(7)), those of streams cannot.
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
    KEEP_BITS,
    LOAD,
    NUMBER,
    REFUSE,
    RETURN,
    SECOND_ARGUMENT,
    X32,
    install,
    step,
)

# The numbers of socket(2) and socketpair(2).
_SOCKET = {"x86_64": 41, "aarch64": 198}
_PAIR = {"x86_64": 53, "aarch64": 199}
# Makes sockets past every filter.
_IO_URING_SETUP = 425
_INET, _INET6, _NETLINK = 2, 10, 16
_STREAM, _SEQUENCE = 1, 5
# Above are SOCK_NONBLOCK and SOCK_CLOEXEC.
_TYPE_BITS = 0xF


def install_socket_filter(libc: ctypes.CDLL, *, internet: bool) -> None:
    """For this process and all that come of it, for good. `internet`: its sockets may be made. Raises OSError."""
    install(libc, steps(platform.machine(), internet=internet))


def steps(machine: str, *, internet: bool) -> list[bytes]:
    """What the filter asks of each call. Raises OSError for a machine whose calls are not known."""
    if machine not in _SOCKET:
        raise OSError(f"no filter is known for {machine}")
    families = (_INET, _INET6, _NETLINK) if internet else ()
    # As where a kernel has none of these: programs know what to do then.
    unknown = step(RETURN, REFUSE | errno.EAFNOSUPPORT)
    absent = step(RETURN, REFUSE | errno.ENOSYS)
    return [
        step(LOAD, ARCHITECTURE),
        step(EQUAL, ARCHITECTURES[machine], then=1),
        step(RETURN, REFUSE | errno.EACCES),
        step(LOAD, NUMBER),
        step(AT_LEAST, X32, otherwise=1),
        absent,
        step(EQUAL, _IO_URING_SETUP, otherwise=1),
        absent,
        step(EQUAL, _PAIR[machine], otherwise=6),
        step(LOAD, SECOND_ARGUMENT),
        step(KEEP_BITS, _TYPE_BITS),
        step(EQUAL, _STREAM, then=2),
        step(EQUAL, _SEQUENCE, then=1),
        unknown,
        step(RETURN, ALLOW),
        step(EQUAL, _SOCKET[machine], then=1),
        step(RETURN, ALLOW),
        step(LOAD, FIRST_ARGUMENT),
        *(step(EQUAL, family, then=len(families) - at) for at, family in enumerate(families)),
        unknown,
        step(RETURN, ALLOW),
    ]
