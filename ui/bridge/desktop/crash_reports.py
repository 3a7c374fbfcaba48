"""Crash reports: written by a process that crashes, read by the person at the next start. Nothing sends them."""

import faulthandler
import os
from contextlib import suppress
from pathlib import Path
from typing import IO

_MARKS = ("Fatal Python error", "Windows fatal exception")
"""The beginnings of a report of the module `faulthandler` (docs.python.org/3/library/faulthandler.html)."""
_MAX_BYTES = 200_000


class CrashLog:
    """The file into which Python writes a traceback if this process crashes, and the report of the last process.

    Such a report holds names of files and functions of the program, never values. A process that was killed leaves no
    report. Only one process at a time may have a CrashLog in a folder.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "crash-report.txt"
        self.last_path = folder / "last-crash-report.txt"
        """Where the latest report stays until the next crash."""
        self.last_report = ""
        """The report of the last process, or "" if it did not crash."""
        self._file: IO[bytes] | None = None

    def begin(self) -> None:
        """Read the report of the last process, and begin this one's file. Do nothing if the folder cannot be written.

        It blocks, for less than a millisecond if there is no report.
        """
        with suppress(OSError):
            self._take_report()
            self._file = self._path.open("wb", buffering=0)
            faulthandler.enable(self._file)

    def note_versions(self, versions: str) -> None:
        """Write a line about the program and the system, the first line of a report."""
        if self._file is not None:
            with suppress(OSError):
                self._file.write(f"{versions}\n\n".encode())

    def close(self) -> None:
        """Remove the file: this process ends as it should."""
        if self._file is not None:
            faulthandler.disable()
            self._file.close()
            with suppress(OSError):
                self._path.unlink()

    def _take_report(self) -> None:
        try:
            with self._path.open("rb") as file:
                text = file.read(_MAX_BYTES).decode(errors="replace")
        except FileNotFoundError:
            return
        if any(mark in text for mark in _MARKS):
            # Unlike Path.home() it never raises: a start must not fail for a report.
            home = os.path.expanduser("~")  # noqa: PTH111
            self.last_report = text.replace(f"{home}{os.sep}", f"~{os.sep}").strip()
            self.last_path.write_text(f"{self.last_report}\n", encoding="utf-8")
