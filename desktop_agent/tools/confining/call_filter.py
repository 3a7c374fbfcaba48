"""Filters of system calls (seccomp, Documentation/userspace-api/seccomp_filter.rst), as the kernel reads them."""

import ctypes
import struct

from desktop_agent.tools.confining.landlock import check_syscall

ALLOW, REFUSE = 0x7FFF0000, 0x00050000
"""What may come of a call; the number of the error is added to a refusal."""

X32 = 0x40000000
"""Numbers of the x32 way into an x86-64 kernel begin here."""

LOAD, EQUAL, AT_LEAST, RETURN, KEEP_BITS = 0x20, 0x15, 0x35, 0x06, 0x54
NUMBER, ARCHITECTURE, FIRST_ARGUMENT, SECOND_ARGUMENT = 0, 4, 16, 24
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""As audit.h names them. A number means another call on each."""

_SET_SECCOMP, _FILTER = 22, 2


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def install_filter(libc: ctypes.CDLL, steps: list[bytes]) -> None:
    """For this process and all that come of it, for good. Raises OSError."""
    kept = ctypes.create_string_buffer(b"".join(steps))
    program = _Program(len(steps), ctypes.addressof(kept))
    check_syscall(libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(program)))


def instruction(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    """One instruction; `then` and `otherwise` are how many to leap over."""
    return struct.pack("HBBI", code, then, otherwise, value)
