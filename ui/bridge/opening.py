"""Opens pages and folders in the program that the person has for them, and says when that does not work."""

import shutil
import subprocess
import sys
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, QUrl, Signal
from PySide6.QtGui import QDesktopServices

from desktop_agent.vocabulary.errors import Sentence

_SOON_MS, _LATER_MS, _OFTEN = 250, 30_000, 60
"""A program that cannot open an address ends soon; one that stays is the browser itself."""


class AddressOpener(QObject):
    """On Linux by xdg-open itself: Qt starts it too, and never hears how it ended."""

    failed = Signal(object)
    """A Sentence."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        # Held until they have ended, so that none of them stays behind as a zombie.
        self._running: dict[subprocess.Popen[bytes], str] = {}
        self._looks = 0
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._poll_programs)

    def open_link(self, target: str) -> None:
        """In the person's browser or mail program; what a model wrote leads nowhere else."""
        if target.lower().startswith(("http://", "https://", "mailto:")):
            self._open(QUrl(target), target)

    def open_page(self, address: str) -> None:
        """A page whose address was checked: read as strictly here as there."""
        self._open(QUrl(address, QUrl.ParsingMode.StrictMode), address)

    def open_folder(self, folder: Path) -> None:
        """In the person's file manager."""
        self._open(QUrl.fromLocalFile(str(folder)), str(folder))

    def _open(self, url: QUrl, address: str) -> None:
        program = shutil.which("xdg-open") if sys.platform.startswith("linux") else None
        if program is None:
            if not QDesktopServices.openUrl(url):
                self._report_failure(address)
            return
        encoded = bytes(url.toEncoded().data()).decode("ascii")
        # Late: nothing is opened before the first click.
        from desktop_agent.tools.processes.own_part import original_environment

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
        self._looks = 0
        self._timer.start(_SOON_MS)

    def _poll_programs(self) -> None:
        for process, address in list(self._running.items()):
            code = process.poll()
            if code is not None:
                del self._running[process]
            if code:
                self._report_failure(address)
        self._looks += 1
        if not self._running:
            self._timer.stop()
        elif self._looks == _OFTEN:
            self._timer.start(_LATER_MS)

    def _report_failure(self, address: str) -> None:
        template = "“{address}” could not be opened. Copy it, and open it yourself."
        self.failed.emit(Sentence(template, {"address": address if len(address) <= 200 else f"{address[:199]}…"}))
