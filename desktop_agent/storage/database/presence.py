"""Which processes have the database of a folder open.

Each holds the lock of a file of its own in `locks/open`, which is taken and looked at only under the lock of opening.
Such a file that nobody holds is of a process that was killed: a log that is missing beside it was removed, for only
closing the database takes the log away ("Write-Ahead Logging", section 4).
"""

import weakref
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from desktop_agent.storage.conversation_locks import Program, holder_text
from desktop_agent.storage.file_lock import FileLock, Holder, lock_path
from desktop_agent.vocabulary.errors import DatabaseBusy, Sentence
from desktop_agent.vocabulary.messages import new_id

_PRESENCE_FOLDER = "open"


class Presence:
    """This process has the database open, until `end` or until it dies."""

    def __init__(self, folder: Path, program: Program) -> None:
        """Take the lock. Raises StorageFailed."""
        path = lock_path(folder, f"{_PRESENCE_FOLDER}/{new_id()}")
        lock = FileLock(path, folder)
        lock.acquire(Holder.this_process(program))
        self._end = weakref.finalize(self, _release_presence, lock, path)
        # A process that was forked must not end its parent's.
        self._end.atexit = False

    def end(self) -> None:
        """The database is closed: its log is in it then, or with others that have it open. Harmless when repeated."""
        self._end()


def _release_presence(lock: FileLock, path: Path) -> None:
    if not lock.is_held:
        return
    with suppress(OSError):
        path.unlink()
    lock.release()
    with suppress(OSError):
        # On Windows an open file cannot be deleted.
        path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class OtherProcesses:
    """`present` has the processes that have the database open; None for one whose name is not known."""

    present: tuple[Holder | None, ...]
    killed: tuple[Path, ...]

    def refuse(self) -> None:
        """Raise DatabaseBusy where somebody is present: a file must not be replaced or upgraded under them."""
        if not self.present:
            return
        holder = self.present[0]
        words = Sentence("another program") if holder is None else holder_text(holder)
        raise DatabaseBusy(
            Sentence("The saved conversations must be repaired or upgraded, but {who} has them open.", {"who": words}),
            "Close it, then start again.",
        )

    def forget_killed(self) -> None:
        """What a process that was killed left has been seen to."""
        for path in self.killed:
            with suppress(OSError):
                path.unlink()


def find_other_processes(folder: Path) -> OtherProcesses:
    """All that are registered, present or killed. Raises StorageFailed."""
    present: list[Holder | None] = []
    killed: list[Path] = []
    for path in sorted(lock_path(folder, _PRESENCE_FOLDER).with_suffix("").glob("*.lock")):
        lock = FileLock(path, folder)
        holder = lock.holder()
        if lock.acquire():
            killed.append(path)
            lock.release()
        else:
            present.append(holder)
    return OtherProcesses(tuple(present), tuple(killed))
