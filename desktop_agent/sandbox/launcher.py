"""The child process that confines itself and then becomes another program, with a supervisor around it.

Landlock (Linux, Documentation/userspace-api/landlock.rst) for files, TCP and signals; a seccomp filter for what
Landlock does not cover. If any of it fails, the program is not started. The supervisor is a subreaper (prctl(2),
PR_SET_CHILD_SUBREAPER): it adopts every process that lost its parent, and ends what the program leaves running.
"""

import ctypes
import json
import os
import resource
import select
import signal
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from desktop_agent.sandbox.child_command import original_environment
from desktop_agent.sandbox.expected_mounts import check_mounts
from desktop_agent.sandbox.kernel_limits import (
    EXECUTE,
    IOCTL,
    READ_DIR,
    READ_FILE,
    TRUNCATE,
    WRITE_FILE,
    LandlockRules,
    all_rights,
    check_syscall,
    install_command_filter,
    landlock_version,
    limit_process,
    no_new_privileges,
    paths_except,
)

_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36
# For processes that are asked to end, and for those born during the killing, in seconds.
_GRACE = 1.0
_KILL_SECONDS = 5.0
_POLL_SECONDS = 0.005


def fork_supervisor(
    libc: ctypes.CDLL, count_file: str | None = None, release: Callable[[], None] = lambda: None
) -> None:
    """Fork; returns in the child only, the parent becomes its supervisor. Raises OSError.

    `count_file` will hold how many processes were left running, if any were. The parent calls `release`.
    """
    check_syscall(libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
    # A request to end reaches all: the program ends by itself, or is killed. Children do not inherit functions.
    for signal_number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signal_number, lambda _number, _frame: None)
    child = os.fork()
    if child:
        release()
        _exit_like(_wait_for_all(child, count_file))
    for signal_number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signal_number, signal.SIG_DFL)
    # A signal to the program's group must not reach the supervisor.
    os.setpgid(0, 0)


def _end_with_parent(libc: ctypes.CDLL) -> None:
    """End all descendants when the parent ends, also by a kill: not every program ends with its input. Raises OSError.

    The system sends the signal, see PR_SET_PDEATHSIG in prctl(2); a forked child does not get it.
    """

    def end_all(_number: int, _frame: object) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        _end_descendants()
        os._exit(1)

    signal.signal(signal.SIGUSR1, end_all)
    check_syscall(libc.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGUSR1, 0, 0, 0))


def read_left_running(count_file: Path) -> int:
    """Read the count that the supervisor has written."""
    try:
        return int(count_file.read_bytes()[:20])
    except (OSError, ValueError):
        return 0


def _wait_for_all(child: int, count_file: str | None) -> int:
    """Return how the program ended, after all its descendants have ended too."""
    while True:
        pid, status = os.wait()
        if pid == child:
            break
    # With SIGCHLD blocked, sigtimedwait can wait for the end of a child, with a time limit.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    if not _has_children():
        return status
    _end_descendants(count_file)
    return status


def _end_descendants(count_file: str | None = None) -> None:
    """Ask all descendants to end, and kill those that do not."""
    left_running = _signal_descendants(signal.SIGTERM)
    if left_running and count_file is not None:
        _write_count(count_file, left_running)
    _wait_until_gone(_GRACE)
    _wait_until_gone(_KILL_SECONDS, lambda: _signal_descendants(signal.SIGKILL))


def _wait_until_gone(seconds: float, repeat: Callable[[], object] = lambda: None) -> None:
    deadline = time.monotonic() + seconds
    while _has_children() and time.monotonic() < deadline:
        repeat()
        signal.sigtimedwait({signal.SIGCHLD}, _POLL_SECONDS)


def _has_children() -> bool:
    """Reap ended children; return whether any are left."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    return False


def _signal_descendants(signal_number: signal.Signals) -> int:
    """Signal all descendants; those whose parent ends become children of this process. Return how many there were."""
    descendants = _descendants(os.getpid())
    for pid in descendants:
        with suppress(OSError):
            os.kill(pid, signal_number)
    return len(descendants)


def _descendants(ancestor: int) -> list[int]:
    """List descendants without zombies, by the parent of each process: not every kernel lists children."""
    children: dict[int, list[int]] = {}
    zombies: set[int] = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError, IndexError):
                # The name may have spaces and brackets in it.
                state, parent = (folder / "stat").read_bytes().rpartition(b")")[2].split()[:2]
                children.setdefault(int(parent), []).append(int(folder.name))
                if state == b"Z":
                    zombies.add(int(folder.name))
    family = children.get(ancestor, [])[:]
    for pid in family:
        # The list grows during the loop: children are appended.
        family += children.get(pid, ())
    return [pid for pid in family if pid not in zombies]


def _write_count(place: str, count: int) -> None:
    """Write the count, but not through a link that somebody put there."""
    with suppress(OSError):
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        os.write(descriptor, str(count).encode())
        os.close(descriptor)


def _exit_like(status: int) -> None:
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError, ValueError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


_CANNOT_RUN = 126
_PIECE = 65_536


def start_from_socket(libc: ctypes.CDLL, descriptor: int) -> NoReturn:
    """Read words and environment as JSON from the socket `descriptor`, and start them.

    Sends back the number of the error where the program cannot be started, and its end in any case. Raises OSError,
    ValueError, LookupError, TypeError before anything is started.
    """
    # Closed when the program starts: the process at the other end then sees the end of the stream.
    os.set_inheritable(descriptor, False)  # noqa: FBT003 - takes no names
    spec = json.loads(_receive_all(descriptor))
    argv, environment = [str(word) for word in spec["argv"]], dict[str, str](spec["environment"])
    _end_with_parent(libc)
    if _is_hung_up(descriptor):
        # The parent ended before this process could notice.
        os._exit(_CANNOT_RUN)
    fork_supervisor(libc, release=lambda: _release(descriptor))
    restore_signals()
    try:
        os.execvpe(argv[0], argv, environment)  # noqa: S606 - that is what it is for
    except (OSError, ValueError) as error:
        os.write(descriptor, str(getattr(error, "errno", None) or 0).encode())
    os._exit(_CANNOT_RUN)


def restore_signals() -> None:
    """Restore signals that Python ignores: the program would inherit that, but expects them to end it."""
    for signal_number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(signal_number, signal.SIG_DFL)


def _receive_all(descriptor: int) -> bytes:
    received = bytearray()
    while piece := os.read(descriptor, _PIECE):
        received += piece
    return bytes(received)


def _is_hung_up(descriptor: int) -> bool:
    """Return whether the other end of a socket is closed altogether, not only for sending."""
    waiting = select.poll()
    waiting.register(descriptor, 0)
    return any(events & select.POLLHUP for _, events in waiting.poll(0))


def _release(descriptor: int) -> None:
    """Close the supervisor's copies, so that the program's own closing takes effect."""
    os.close(descriptor)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nothing, standard)
    os.close(nothing)


NOT_CONFINED = 125
# TCP can be closed since version 4; files can be cut short past the rules before version 3.
_MIN_LANDLOCK = 4
# Older versions refuse to move files from one folder to another, whatever is allowed.
_MIN_LANDLOCK_FOR_MOVES = 2

_READ = EXECUTE | READ_FILE | READ_DIR
_FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL
# Numbers of capabilities(7) and prctl(2).
_READ_BOUNDING, _DROP_BOUNDING, _AMBIENT, _CLEAR_AMBIENT = 23, 24, 47, 4
_CAPABILITY_VERSION = 0x20080522
# Not pts: the person's other terminals are in there.
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


def main() -> int:
    """Start a program; the words are a policy as JSON, expected mounts, the program, its arguments. Return on failure.

    Where no namespace ends what the program leaves running, a supervisor stays outside of the sandbox to do that.
    Without a sandbox there is only the supervisor, which writes to the file `count_in` how many processes it ended;
    likewise for a program that the socket `channel` names.
    """
    words = sys.argv[3:]
    try:
        spec = json.loads(words[0])
        checked = 1 + spec.get("mounts", 0)
        check_mounts(words[1:checked])
        words = words[checked:]
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
        # So that a program can report that a file gets too large, and is not just killed.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        os.execve(words[0], words, original_environment())  # noqa: S606 - that is what it is for
    except OSError as error:
        sys.stderr.write(f"“{words[0]}” could not be started: {error.strerror}.\n")
        return _CANNOT_RUN


def _confine(spec: dict[str, Any]) -> None:
    """Apply the policy; without `writable` only system calls are filtered. Raises OSError, LookupError."""
    if "listener" in spec:
        _send_listener(*spec["listener"])
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
    capability = 0
    # A process that may not drop them has none, and starting a program adds none (no_new_privileges).
    while libc.prctl(_READ_BOUNDING, capability, 0, 0, 0) >= 0:
        libc.prctl(_DROP_BOUNDING, capability, 0, 0, 0)
        capability += 1
    nothing = (ctypes.c_uint32 * 6)()
    check_syscall(libc.capset(ctypes.byref(_Header(_CAPABILITY_VERSION, 0)), nothing))


def _send_listener(channel: int, port: int) -> None:
    """Send a socket that listens on this port of 127.0.0.1 over `channel`, for the proxy outside.

    A socket stays in the network in which it was made. The program gets neither of the two.
    """
    import socket

    with socket.socket(fileno=channel) as channel_socket, socket.create_server(("127.0.0.1", port)) as listener:
        socket.send_fds(channel_socket, [b"."], [listener.fileno()])


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
        for path in paths_except(place, tuple(hidden_path for hidden_path in hidden if place in hidden_path.parents)):
            _allow(rules, path, _READ)
    for name in _DEVICES:
        _allow(rules, Path("/dev", name), (READ_FILE | WRITE_FILE | TRUNCATE | IOCTL) & everything)
    for folder in writable:
        for path in paths_except(folder, tuple(hidden_path for hidden_path in hidden if folder in hidden_path.parents)):
            _allow(rules, path, everything)
    rules.enforce()


def _restrict_writes(libc: ctypes.CDLL, writes: list[str]) -> None:
    """Allow writing to these paths alone. Devices and pipes can be written although their mount is read-only."""
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
    """Allow a path; one that is gone, or cannot be opened, needs no rule."""
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
