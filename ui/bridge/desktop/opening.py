"""Open links and folders in other programs."""

import shutil
import subprocess
import sys
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, QUrl, Signal
from PySide6.QtGui import QDesktopServices

from desktop_agent.types.errors import Sentence

_POLL_MS, _SLOW_POLL_MS, _FAST_POLLS = 250, 30_000, 60
"""A program that cannot open an address exits soon; one that stays is the browser itself, and is polled slowly."""


class AddressOpener(QObject):
    """Opens links and folders. On Linux by xdg-open itself: Qt starts that too, but does not report its exit code."""

    failed = Signal(object)
    """A Sentence."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        # Kept until they have ended, so that none becomes a zombie.
        self._running: dict[subprocess.Popen[bytes], str] = {}
        self._polls = 0
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._poll_programs)

    def open_link(self, target: str) -> None:
        """Open a web or mail address that a model wrote; ignore every other kind."""
        if target.lower().startswith(("http://", "https://", "mailto:")):
            self._open(QUrl(target), target)

    def open_page(self, address: str) -> None:
        """Open an address that was checked; it is parsed as strictly here as in the check."""
        self._open(QUrl(address, QUrl.ParsingMode.StrictMode), address)

    def open_folder(self, folder: Path) -> None:
        """Open a folder in the file manager."""
        self._open(QUrl.fromLocalFile(str(folder)), str(folder))

    def _open(self, url: QUrl, address: str) -> None:
        program = shutil.which("xdg-open") if sys.platform.startswith("linux") else None
        if program is None:
            if not QDesktopServices.openUrl(url):
                self._report_failure(address)
            return
        encoded = bytes(url.toEncoded().data()).decode("ascii")
        # Late: nothing is opened before the first click.
        from desktop_agent.sandbox.child_command import original_environment

        nowhere = subprocess.DEVNULL
        try:
            process = subprocess.Popen(  # noqa: S603  a program of the system, and an address
                [program, encoded],
                env=original_environment(),
                stdin=nowhere,
                stdout=nowhere,
                stderr=nowhere,
                start_new_session=True,
            )
        except OSError:
            self._report_failure(address)
            return
        self._running[process] = address
        self._polls = 0
        self._timer.start(_POLL_MS)

    def _poll_programs(self) -> None:
        for process, address in list(self._running.items()):
            code = process.poll()
            if code is not None:
                del self._running[process]
            if code:
                self._report_failure(address)
        self._polls += 1
        if not self._running:
            self._timer.stop()
        elif self._polls == _FAST_POLLS:
            self._timer.start(_SLOW_POLL_MS)

    def _report_failure(self, address: str) -> None:
        template = "“{address}” could not be opened. Copy it, and open it yourself."
        self.failed.emit(Sentence(template, {"address": address if len(address) <= 200 else f"{address[:199]}…"}))
