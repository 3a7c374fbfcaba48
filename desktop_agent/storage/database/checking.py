"""Whether the database is whole, looked at on a connection of its own, and what of it can be repaired in place."""

import re
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from desktop_agent.storage.database.connection import is_damage
from desktop_agent.storage.database.messages import NOT_A_BRANCH, has_misplaced_messages

_MAX_FINDINGS = 100
# What `integrity_check` says of an index that disagrees with its table. The table is right then: an index is made from
# it. Everything else is left to a rescue: REINDEX frees pages, which a damaged file may still need.
_INDEX_FINDING = re.compile(
    r"row \d+ missing from index .*|wrong # of entries in index .*|non-unique entry in index .*"
    r"|row \d+ values differ from index .*"
)


class IntegrityCheck:
    """One look at the whole database. `run` belongs to a thread; `cancel` may be called from any."""

    def __init__(self, path: Path, *, full: bool) -> None:
        self._path = path
        self._pragma = "integrity_check" if full else "quick_check"
        self._mutex = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self.is_cancelled = False

    def run(self) -> list[str] | None:
        """What is wrong; empty where all is well, None when it was cancelled. Raises sqlite3.Error.

        The full check compares every index with its table, which takes several times as long.
        """
        uri = self._path.absolute().as_uri() + "?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, check_same_thread=False)) as connection:
            with self._mutex:
                if self.is_cancelled:
                    return None
                self._connection = connection
            try:
                found = [str(row[0]) for row in connection.execute(f"PRAGMA {self._pragma}({_MAX_FINDINGS})")]
                if found == ["ok"]:
                    found = [NOT_A_BRANCH] if has_misplaced_messages(connection) else []
            except sqlite3.Error as error:
                if self.is_cancelled:
                    return None
                if is_damage(error):
                    return [str(error)]
                raise
            finally:
                with self._mutex:
                    self._connection = None
        return found

    def cancel(self) -> None:
        """End it early."""
        with self._mutex:
            self.is_cancelled = True
            if self._connection is not None:
                self._connection.interrupt()


def is_only_indexes(found: Sequence[str]) -> bool:
    """Whether only indexes are wrong, so that REINDEX repairs all of it and loses nothing."""
    lines = [line for each in found for line in each.splitlines() if line and not line.startswith("*** in database")]
    # As many as were asked for may be followed by others.
    return 0 < len(lines) < _MAX_FINDINGS and all(_INDEX_FINDING.fullmatch(line) for line in lines)
