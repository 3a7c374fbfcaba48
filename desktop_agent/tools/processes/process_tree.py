"""All processes that came of one: its children and theirs, and those that tried to get away."""

import contextlib
import os
import secrets
import signal
import sys
import threading
from collections.abc import Callable, Iterator

import psutil

# One name for each program, and no common one, so that what a program starts through us is found from there too.
_MARK = "DESKTOP_AGENT_CALL_"
# A process that does nothing but fork and die lives a millisecond or two; a look sees it more often than not.
_QUICK_LOOKS = 100
_MAX_EMPTY_LOOKS = 4


def new_mark() -> str:
    """The name of an environment variable by which the descendants of one program are known."""
    return _MARK + secrets.token_hex(16)


class ProcessTree:
    """The processes that came of the one with `pid`, which leads a session and whose environment holds `mark`.

    A process belongs to it as a descendant, as a member of the session, or by the mark, which is inherited. Only one
    that gave up all three before it was seen gets away, and not even that one where the root `is_supervised`: it
    adopts all who
    lost their parents, ends by itself when the last of them has, and is killed only when it is alone. Every method but
    `ids` reads the system's whole list of processes: call them in a thread.
    """

    def __init__(self, pid: int, mark: str, *, is_supervised: bool = False) -> None:
        self._session = pid
        self._mark = mark
        self._root = _process(pid)
        self._spared = self._root if is_supervised else None
        self._looks_alone = 0
        # Those that were seen stay known: who has lost its parent by the second look may have lost its mark before.
        self._known: set[psutil.Process] = {self._root} if self._root else set()
        # A cancel does not end the thread in which a look is still going on.
        self._lock = threading.Lock()

    @property
    def ids(self) -> list[int]:
        """Of those that lived when last looked at."""
        return sorted(process.pid for process in self._known)

    def terminate(self) -> int:
        """Ask all to end (SIGTERM; on Windows there is only killing); how many there were."""
        with self._lock:
            return self._signal_all(psutil.Process.terminate)

    def is_alive(self) -> bool:
        """Whether any that was seen still runs."""
        with self._lock:
            return any(_is_alive(process) for process in self._known)

    def kill(self) -> int:
        """Kill all; how many there were. Until it answers 0, some may have been born meanwhile."""
        with self._lock:
            in_vain = 0
            for _ in range(_QUICK_LOOKS):
                in_vain = 0 if self._kill_session() else in_vain + 1
                if in_vain == _MAX_EMPTY_LOOKS:
                    break
            self._signal_all(self._kill)
            killed = sum(each != self._spared for each in self._known)
            if killed or self._spared is None or not _is_alive(self._spared):
                return killed
            # Who is born between two looks would be lost with it.
            self._looks_alone += 1
            if self._looks_alone > _MAX_EMPTY_LOOKS:
                self._spared = None
            return 1

    def _signal_all(self, send: Callable[[psutil.Process], None]) -> int:
        """Tell each at once when it is seen: who is born again and again is gone a moment later."""
        told: set[psutil.Process] = set()
        for seen in (*self._known, *self._find_strays()):
            family = (seen, *_descendants(seen)) if seen not in told else ()
            # Looked at before any is told: some end with the first of them, and count all the same.
            for process in [each for each in family if each not in told and _is_alive(each)]:
                if process not in told:
                    told.add(process)
                    with contextlib.suppress(psutil.Error):
                        send(process)
        self._known = told
        return len(told)

    def _kill(self, process: psutil.Process) -> None:
        if process == self._spared:
            return
        with contextlib.suppress(OSError):
            self._kill_group(process.pid)
        process.kill()

    def _kill_group(self, pid: int) -> None:
        """With all of its process group: the system lets none of that fork meanwhile, so nobody in it outruns this."""
        if sys.platform == "win32" or os.getsid(pid) == os.getsid(0):
            return
        group = os.getpgid(pid)
        if self._spared is not None and group == self._spared.pid:
            os.kill(pid, signal.SIGKILL)
        else:
            os.killpg(group, signal.SIGKILL)

    def _find_strays(self) -> Iterator[psutil.Process]:
        """Who is of the session, or has the mark, whoever its parent is by now; the youngest first."""
        session_is_ours = self._session_is_ours()
        for pid in reversed(psutil.pids()):
            with contextlib.suppress(psutil.Error, OSError):
                process = psutil.Process(pid)
                if (session_is_ours and _session_of(pid) == self._session) or self._mark in process.environ():
                    yield process

    def _kill_session(self) -> bool:
        """Look for the session and nothing else, which is quick; whether anybody was there."""
        found = False
        for pid in reversed(psutil.pids()) if self._session_is_ours() else ():
            with contextlib.suppress(OSError):
                is_spared = self._spared is not None and pid == self._spared.pid
                if not is_spared and _session_of(pid) == self._session and not _is_zombie(pid):
                    found = True
                    self._kill_group(pid)
        return found

    def _session_is_ours(self) -> bool:
        """A session is known by the number of its leader, which a stranger may get when all of ours have ended."""
        leader = _process(self._session)
        return leader is None or leader == self._root


def _process(pid: int) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except psutil.Error:
        return None


def _descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []


def _is_alive(process: psutil.Process) -> bool:
    """A zombie has ended; only its parent has not looked yet."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True


def _is_zombie(pid: int) -> bool:
    process = _process(pid)
    return process is None or not _is_alive(process)


def _session_of(pid: int) -> int:
    return os.getsid(pid) if sys.platform != "win32" else 0
