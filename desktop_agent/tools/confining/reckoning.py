"""Closes a process in that only reckons: it reads and writes what is open already, takes memory, and ends.

It holds the code of a library in C as well, which feels nothing of the hooks of Python.
"""

import contextlib
import ctypes
import errno
import os
import sys

from desktop_agent.tools.confining.call_filter import (
    ALLOW,
    ARCHITECTURE,
    ARCHITECTURES,
    EQUAL,
    LOAD,
    NUMBER,
    REFUSE,
    RETURN,
    install_filter,
    instruction,
)
from desktop_agent.tools.confining.landlock import LandlockRules, landlock_version, no_new_privileges

# read write close fstat lseek; mmap mprotect munmap brk mremap madvise; sigaction sigprocmask sigreturn sigaltstack;
# readv writev; sched_yield futex restart_syscall; gettimeofday clock_gettime; getpid gettid; exit exit_group; getrandom
_WORKER_CALLS = {
    "x86_64": (
        *(0, 1, 3, 5, 8, 9, 10, 11, 12, 25, 28, 13, 14, 15, 131),
        *(19, 20, 24, 202, 219, 96, 228, 39, 186, 60, 231, 318),
    ),
    "aarch64": (
        *(63, 64, 57, 80, 62, 222, 226, 215, 214, 216, 233, 134, 135, 139, 132),
        *(65, 66, 124, 98, 128, 169, 113, 172, 178, 93, 94, 278),
    ),
}


def confine_worker() -> None:
    """No file, socket, program or other process from now on, where the system can hold to that. Never fails."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    # Each stands alone: a container may allow the one and not the other.
    with contextlib.suppress(OSError):
        no_new_privileges(libc)
        LandlockRules(libc, landlock_version(libc), network=False).enforce()
    with contextlib.suppress(OSError):
        install_filter(libc, _worker_filter(os.uname().machine))


def _worker_filter(machine: str) -> list[bytes]:
    """What is not named is refused, and with it what later kernels will have. Raises OSError."""
    # An interpreter of 32 bits runs on such machines too, and all that it calls has other numbers.
    if machine not in _WORKER_CALLS or sys.maxsize < 2**32:
        raise OSError(f"no filter is known for {machine}")
    calls = _WORKER_CALLS[machine]
    refused = instruction(RETURN, REFUSE | errno.EACCES)
    return [
        instruction(LOAD, ARCHITECTURE),
        instruction(EQUAL, ARCHITECTURES[machine], then=1),
        refused,
        instruction(LOAD, NUMBER),
        *(instruction(EQUAL, call, then=len(calls) - at) for at, call in enumerate(calls)),
        refused,
        instruction(RETURN, ALLOW),
    ]
