"""A fast clock for other processes that can be set, by libfaketime. The machine's own clock is not changed."""

import asyncio
import time
from datetime import UTC, datetime
from pathlib import Path

MISSING = (
    "libfaketime is missing: install Debian's package faketime, or unpack libfaketime with `apt-get download` and"
    " `dpkg -x`, and name its folder with --faketime."
)
_LIBRARY = "libfaketime.so.1"
_EVERY = 0.05
"""Seconds between two steps of the clock."""


def find_library(folder: Path | None = None) -> Path | None:
    """Return libfaketime below this folder, or below the system's; None where it is not there."""
    return next((folder or Path("/usr/lib")).glob(f"**/faketime/{_LIBRARY}"), None)


class SetClock:
    """A clock that begins at `start`. While `run` runs, it advances in steps, `speed` times as fast as the machine's.

    Timers of the processes, which ask the monotonic clock, keep the machine's pace, as with a clock that is set.
    """

    def __init__(self, library: Path, folder: Path, start: datetime, speed: float) -> None:
        self._library = library
        self._file = folder / "clock"
        self._speed = speed
        self._began = time.monotonic()
        self._ahead = self._written = start.timestamp() - time.time()
        self._write()

    def environment(self, zone: str) -> dict[str, str]:
        """Return the environment variables that give a process this clock and the time zone `zone`."""
        return {
            "LD_PRELOAD": str(self._library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            # libfaketime expects a decimal point in the file.
            "LC_ALL": "C.UTF-8",
            "TZ": zone,
        }

    def now(self) -> datetime:
        """Return the time that the processes see."""
        return datetime.fromtimestamp(time.time() + self._written, UTC)

    def jump(self, seconds: float) -> None:
        """Set the clock forward, or back."""
        self._ahead += seconds
        self._write()

    def set_speed(self, speed: float) -> None:
        """Change the pace from now on."""
        self._write()
        self._ahead, self._began, self._speed = self._written, time.monotonic(), speed

    async def run(self) -> None:
        """Advance the clock until cancelled."""
        while True:
            self._write()
            await asyncio.sleep(_EVERY)

    def _write(self) -> None:
        self._written = self._ahead + (time.monotonic() - self._began) * (self._speed - 1)
        unfinished = self._file.with_suffix(".new")
        unfinished.write_text(f"{self._written:+.3f}")
        unfinished.replace(self._file)
