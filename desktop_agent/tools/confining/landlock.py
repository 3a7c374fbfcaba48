"""Rules of the kernel for what a process may open, connect to and signal.

Source: Linux, Documentation/userspace-api/landlock.rst and include/uapi/linux/landlock.h.
"""

import ctypes
import os

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
TRUNCATE, IOCTL = 1 << 14, 1 << 15
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38
# Rights to files that each version came to know, as how many bits there are.
_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
_TCP = 0b11
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def no_new_privileges(libc: ctypes.CDLL) -> None:
    """What the kernel wants of a process before it closes itself in. Raises OSError."""
    check_syscall(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))


def landlock_version(libc: ctypes.CDLL) -> int:
    """Which Landlock this kernel has. Raises OSError where it has none."""
    return check_syscall(libc.syscall(_CREATE, None, 0, _VERSION_FLAG))


def all_rights(version: int) -> int:
    """Every right to files that a version knows."""
    return (1 << max(bits for since, bits in _RIGHTS.items() if since <= version)) - 1


class LandlockRules:
    """Nothing of files, TCP, signals and sockets without a path, as far as the version knows them, but what is allowed.

    Each method raises OSError.
    """

    def __init__(self, libc: ctypes.CDLL, version: int, *, network: bool) -> None:
        scoped = _ABSTRACT_SOCKETS_AND_SIGNALS if version >= 6 else 0
        ruleset = _Ruleset(all_rights(version), 0 if network or version < 4 else _TCP, scoped)
        # Older kernels refuse fields that they do not know.
        size = 24 if version >= 6 else 16 if version >= 4 else 8
        self._libc = libc
        self._rules = check_syscall(libc.syscall(_CREATE, ctypes.byref(ruleset), size, 0))

    def allow(self, place: int, allowed: int) -> None:
        """Rights to what an open file is, and to all that is in it."""
        beneath = _Beneath(allowed, place)
        check_syscall(self._libc.syscall(_ADD, self._rules, _PATH_BENEATH, ctypes.byref(beneath), 0))

    def enforce(self) -> None:
        """From now on, this process and all that come of it."""
        check_syscall(self._libc.syscall(_RESTRICT, self._rules, 0))
        os.close(self._rules)


def check_syscall(answer: int) -> int:
    """What the kernel answered. Raises OSError for a refusal."""
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return answer
