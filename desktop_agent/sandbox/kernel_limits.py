"""Restrict a process in the kernel: Landlock rules, seccomp filters (kernel_limits.toml), setrlimit(2).

Imported by each child process: modules that few functions need are imported in these.
"""

import contextlib
import ctypes
import errno
import os
import re
import struct
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any


def limit_process(*, for_good: bool, **most: int) -> None:
    """Limit each of `most`, named as in `resource` without RLIMIT_, where the system has limits.

    `for_good`: the process cannot raise them again. A process that uses up its processor time is then killed.
    """
    try:
        import resource
    except ImportError:
        return
    for name, value in most.items():
        limit: int = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(limit)[1]
        soft = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (soft, soft if for_good else hard))


def counts_per_namespace() -> bool:
    """Return whether NPROC counts the processes of one user namespace (since Linux 5.14), not all of the user's."""
    import platform

    version = re.match(r"(\d+)\.(\d+)", platform.release())
    return version is not None and tuple(map(int, version.groups())) >= (5, 14)


EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
TRUNCATE, IOCTL = 1 << 14, 1 << 15
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38
# How many bits of rights to files there are, from each version on.
_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
_TCP = 0b11
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"  # what `_pack_` has always meant; Python 3.14 requires it
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def no_new_privileges(libc: ctypes.CDLL) -> None:
    """Set what the kernel requires before a process restricts itself. Raises OSError."""
    check_syscall(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))


def landlock_version(libc: ctypes.CDLL) -> int:
    """Return the version of Landlock of this kernel. Raises OSError where it has none."""
    return check_syscall(libc.syscall(_CREATE, None, 0, _VERSION_FLAG))


def all_rights(version: int) -> int:
    """Return every right to files that a version knows."""
    return (1 << max(bits for since, bits in _RIGHTS.items() if since <= version)) - 1


class LandlockRules:
    """A ruleset that denies files, TCP, signals and sockets without a path, as far as the version can,
    except what is allowed.

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
        """Allow rights to an open file, and to everything in an open folder."""
        beneath = _Beneath(allowed, place)
        check_syscall(self._libc.syscall(_ADD, self._rules, _PATH_BENEATH, ctypes.byref(beneath), 0))

    def enforce(self) -> None:
        """Restrict this process and its future children, for good."""
        check_syscall(self._libc.syscall(_RESTRICT, self._rules, 0))
        os.close(self._rules)


def paths_except(folder: Path, closed: tuple[Path, ...]) -> Iterator[Path]:
    """Return the fewest files and folders that together are everything below a folder except what is closed."""
    closed_below = tuple(path for path in closed if folder in path.parents)
    if folder in closed:
        return
    if not closed_below:
        yield folder
        return
    try:
        with os.scandir(folder) as entries:
            children = [Path(entry.path) for entry in entries if not entry.is_symlink()]
    except OSError:
        return  # not ours to read
    for path in children:
        yield from paths_except(path, closed_below)


def check_syscall(answer: int) -> int:
    """Return what the kernel answered. Raises OSError for a refusal."""
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return answer


ALLOW, REFUSE = 0x7FFF0000, 0x00050000
"""Results of a filter; the number of the error is added to a refusal."""

X32 = 0x40000000
"""Numbers of the x32 calls of an x86-64 kernel begin here."""

LOAD, EQUAL, AT_LEAST, RETURN, KEEP_BITS = 0x20, 0x15, 0x35, 0x06, 0x54
NUMBER, ARCHITECTURE, FIRST_ARGUMENT, SECOND_ARGUMENT = 0, 4, 16, 24
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""As in audit.h. The same number means another call on each."""

_SET_SECCOMP, _FILTER = 22, 2


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def install_filter(libc: ctypes.CDLL, steps: list[bytes]) -> None:
    """Install a seccomp filter for this process and its future children, for good. Raises OSError."""
    buffer = ctypes.create_string_buffer(b"".join(steps))
    program = _Program(len(steps), ctypes.addressof(buffer))
    check_syscall(libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(program)))


def instruction(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    """Return one BPF instruction; `then` and `otherwise` are how many to skip."""
    return struct.pack("HBBI", code, then, otherwise, value)


_MACHINES = ("x86_64", "aarch64")
_SOCKET, _PAIR = (41, 198), (53, 199)
_CLONE, _UNSHARE, _IOCTL = (56, 220), (272, 97), (16, 29)
_PRLIMIT, _SET_PRIORITY, _SET_IO_PRIORITY = (302, 261), (141, 140), (251, 30)
_INET, _INET6, _NETLINK = 2, 10, 16
_STREAM, _SEQUENCE = 1, 5
# The higher bits are SOCK_NONBLOCK and SOCK_CLOEXEC.
_TYPE_BITS = 0xF
# CLONE_NEWNS, -CGROUP, -UTS, -IPC, -USER, -PID, -NET.
_NAMESPACES = 0x7E020000
# CLONE_THREAD.
_THREAD = 0x10000
# TIOCSTI types into a terminal, TIOCLINUX pastes there (ioctl_tty(2)).
_TERMINAL_INPUT = (0x5412, 0x541C)
# PRIO_USER and IOPRIO_WHO_USER: all processes of the user.
_WHOLE_USER, _WHOLE_USER_IO = 2, 3


def install_command_filter(libc: ctypes.CDLL, *, internet: bool, in_namespaces: bool) -> None:
    """Install the filter of commands. `internet`: sockets of the internet may be made. Raises OSError.

    `in_namespaces`: what other programs share with this one lies in namespaces of its own.
    """
    install_filter(libc, command_filter(os.uname().machine, internet=internet, in_namespaces=in_namespaces))


def command_filter(machine: str, *, internet: bool, in_namespaces: bool, starts_processes: bool = True) -> list[bytes]:
    """Return the steps of the filter of commands. Raises OSError for a machine whose calls are not known.

    Without `starts_processes` threads can still be started.
    """
    if machine not in _MACHINES:
        raise OSError(f"no filter is known for {machine}")
    column, tables = _MACHINES.index(machine), _tables()
    names = {"refused": True, "without_namespaces": not in_namespaces, "without_processes": not starts_processes}
    refused = [tables[name] for name, is_refused in names.items() if is_refused]
    steps = [
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
                steps += _when(numbers[column], [instruction(RETURN, REFUSE | getattr(errno, error))])
    steps += _when(_SOCKET[column], _unless_one_of((_INET, _INET6, _NETLINK) if internet else (), FIRST_ARGUMENT))
    steps += _when(_PAIR[column], _unless_one_of((_STREAM, _SEQUENCE), SECOND_ARGUMENT, _TYPE_BITS))
    only_threads = [] if starts_processes else _unless(_THREAD, FIRST_ARGUMENT, _THREAD)
    for call, further_checks in ((_CLONE, only_threads), (_UNSHARE, [])):
        checks = [*_unless(0, FIRST_ARGUMENT, _NAMESPACES), *further_checks]
        steps += _when(call[column], [*checks, instruction(RETURN, ALLOW)])
    steps += _when(_IOCTL[column], [*_if_one_of(_TERMINAL_INPUT, SECOND_ARGUMENT), instruction(RETURN, ALLOW)])
    if not in_namespaces:
        steps += _when(_PRLIMIT[column], [*_unless(0, FIRST_ARGUMENT), instruction(RETURN, ALLOW)])
        for call, of_all in ((_SET_PRIORITY, _WHOLE_USER), (_SET_IO_PRIORITY, _WHOLE_USER_IO)):
            only_own = [
                *_if_one_of((of_all,), FIRST_ARGUMENT),
                *_unless(0, SECOND_ARGUMENT),
                instruction(RETURN, ALLOW),
            ]
            steps += _when(call[column], only_own)
    return [*steps, instruction(RETURN, ALLOW)]


@lru_cache(maxsize=1)
def _tables() -> dict[str, Any]:
    import tomllib

    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _when(call: int, then: list[bytes]) -> list[bytes]:
    """Return steps for one call, which end in an answer."""
    return [instruction(EQUAL, call, otherwise=len(then)), *then]


def _unless_one_of(values: tuple[int, ...], argument: int, bits: int = 0xFFFFFFFF) -> list[bytes]:
    """Return steps that refuse as a kernel without these calls would: programs can handle that."""
    comparisons = [instruction(EQUAL, value, then=len(values) - index) for index, value in enumerate(values)]
    refused = instruction(RETURN, REFUSE | errno.EAFNOSUPPORT)
    return [
        instruction(LOAD, argument),
        instruction(KEEP_BITS, bits),
        *comparisons,
        refused,
        instruction(RETURN, ALLOW),
    ]


def _unless(value: int, argument: int, bits: int = 0xFFFFFFFF) -> list[bytes]:
    refused = instruction(RETURN, REFUSE | errno.EPERM)
    return [instruction(LOAD, argument), instruction(KEEP_BITS, bits), instruction(EQUAL, value, then=1), refused]


def _if_one_of(values: tuple[int, ...], argument: int) -> list[bytes]:
    refused = instruction(RETURN, REFUSE | errno.EPERM)
    comparisons = [part for value in values for part in (instruction(EQUAL, value, otherwise=1), refused)]
    return [instruction(LOAD, argument), *comparisons]


# read write close fstat lseek; mmap mprotect munmap brk mremap madvise; sigaction sigprocmask sigreturn sigaltstack;
# readv writev; sched_yield futex restart_syscall; gettimeofday clock_gettime; getitimer setitimer; getpid gettid;
# exit exit_group; getrandom
_WORKER_CALLS = {
    "x86_64": (
        *(0, 1, 3, 5, 8, 9, 10, 11, 12, 25, 28, 13, 14, 15, 131),
        *(19, 20, 24, 202, 219, 96, 228, 36, 38, 39, 186, 60, 231, 318),
    ),
    "aarch64": (
        *(63, 64, 57, 80, 62, 222, 226, 215, 214, 216, 233, 134, 135, 139, 132),
        *(65, 66, 124, 98, 128, 169, 113, 102, 103, 172, 178, 93, 94, 278),
    ),
}


def confine_worker(*, reads_files: bool) -> None:
    """Deny files, sockets, programs and processes from now on, where the system can enforce it. Never fails.

    With `reads_files` it can still read all files, and start threads.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    # Each is tried by itself: a container may allow one and not the other.
    with contextlib.suppress(OSError):
        no_new_privileges(libc)
        rules = LandlockRules(libc, landlock_version(libc), network=False)
        if reads_files:
            root = os.open("/", os.O_PATH)
            rules.allow(root, READ_FILE | READ_DIR)
            os.close(root)
        rules.enforce()
    with contextlib.suppress(OSError):
        install_filter(libc, _worker_filter(os.uname().machine, reads_files=reads_files))


def _worker_filter(machine: str, *, reads_files: bool = False) -> list[bytes]:
    """Return the steps of the filter of workers. Raises OSError.

    Without `reads_files` only the listed calls are allowed, and so none that later kernels add.
    """
    # A 32-bit interpreter runs on such machines too, and its calls have other numbers.
    if machine not in _WORKER_CALLS or sys.maxsize < 2**32:
        raise OSError(f"no filter is known for {machine}")
    if reads_files:
        return command_filter(machine, internet=False, in_namespaces=False, starts_processes=False)
    calls = _WORKER_CALLS[machine]
    refused = instruction(RETURN, REFUSE | errno.EACCES)
    return [
        instruction(LOAD, ARCHITECTURE),
        instruction(EQUAL, ARCHITECTURES[machine], then=1),
        refused,
        instruction(LOAD, NUMBER),
        *(instruction(EQUAL, call, then=len(calls) - index) for index, call in enumerate(calls)),
        refused,
        instruction(RETURN, ALLOW),
    ]
