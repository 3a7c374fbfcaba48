"""A filter of system calls (seccomp, Documentation/userspace-api/seccomp_filter.rst) for the making of sockets.

Landlock closes TCP. UDP, and the sockets of services of this session, through which a command could ask somebody else
to do what it may not, are closed by not letting it make such sockets.
"""

import ctypes
import errno
import os
import platform
import struct

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
# The architecture as audit.h names it, and the number of socket(2).
_MACHINES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
# Makes sockets past every filter.
_IO_URING_SETUP = 425
# Numbers of the x32 way into an x86-64 kernel.
_X32 = 0x40000000
_INET, _INET6, _NETLINK = 2, 10, 16
_SET_SECCOMP, _FILTER = 22, 2


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def install_socket_filter(libc: ctypes.CDLL, *, network: bool) -> None:
    """For this process and all that come of it, for good. Raises OSError."""
    steps = b"".join(_steps(platform.machine(), network=network))
    kept = ctypes.create_string_buffer(steps)
    program = _Program(len(steps) // 8, ctypes.addressof(kept))
    if libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(program)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _steps(machine: str, *, network: bool) -> list[bytes]:
    if machine not in _MACHINES:
        raise OSError(f"no filter is known for {machine}")
    architecture, socket = _MACHINES[machine]
    families = (_INET, _INET6, _NETLINK) if network else ()
    refused = _step(_RETURN, _REFUSE | errno.EACCES)
    absent = _step(_RETURN, _REFUSE | errno.ENOSYS)
    return [
        _step(_LOAD, _ARCHITECTURE),
        _step(_EQUAL, architecture, then=1),
        refused,
        _step(_LOAD, _NUMBER),
        _step(_AT_LEAST, _X32, otherwise=1),
        absent,
        _step(_EQUAL, _IO_URING_SETUP, otherwise=1),
        absent,
        _step(_EQUAL, socket, then=1),
        _step(_RETURN, _ALLOW),
        _step(_LOAD, _FIRST_ARGUMENT),
        *(_step(_EQUAL, family, then=len(families) - at) for at, family in enumerate(families)),
        refused,
        _step(_RETURN, _ALLOW),
    ]


def _step(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    """One instruction; `then` and `otherwise` are how many to leap over."""
    return struct.pack("HBBI", code, then, otherwise, value)
