"""An answer in real time: 200 deltas a second from another process, through the frame clock, into a conversation.

A 16 ms timer runs, first alone and then with the answer: its gaps show how much the answer delays the loop.
`python -m tests.bench.transcript.realtime` is the other process. It writes after a line of input: each delta is a
record of the time at which it was written, of the clock that all processes share, and of its characters.
"""

import os
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from PySide6.QtCore import QEventLoop, QSocketNotifier, Qt, QTimer

from desktop_agent.conversation.items import Change
from desktop_agent.types.provider_events import ContentDelta
from tests.bench.transcript.sides import Ours, both_sides
from tests.bench.transcript.texts import DELTA, deltas_of, messages, text_of
from tests.bench.transcript.window import Window
from ui.bridge.event_loop import FrameClock

TICK = 16
"""Milliseconds of the timer."""
IDLE, STREAMED = 5.0, 10.0
"""Both in seconds."""
MESSAGES = 100
RATE = 200
"""Deltas a second."""
_RECORD = struct.Struct(f"<d{DELTA}s")
_PIPE = 1 << 16


def measured() -> dict[str, Any]:
    """Return milliseconds: the gaps of the timer alone and during the answer, those of the frames, and the time from a
    delta to its painting."""
    with both_sides() as (window, sides):
        shown = sides.ours()
        shown.open(messages(MESSAGES, sides.pictures))
        window.until_quiet()
        idle = _ticks(window, lambda end: QTimer.singleShot(int(IDLE * 1000), end))
        arriving = _Arriving(window, shown)
        ticks = _ticks(window, arriving.begin)
        figures = _figures(idle, ticks, arriving)
        shown.close()
        return {**figures, "longest_in": window.watchdog.where}


def _figures(idle: list[float], ticks: list[float], arriving: "_Arriving") -> dict[str, Any]:
    gaps = [b - a for a, b in pairwise(arriving.frames)]
    alone, busy = _spread(idle), _spread(ticks)
    return {
        "idle": alone,
        "ticks": {**busy, "p99_over_idle": round(busy["p99"] / alone["p99"], 2)},
        "frames": _spread(gaps),
        "to_paint": {"first": round(arriving.waited[0] * 1000, 1), **_spread(arriving.waited)},
        "cpu_share": round(arriving.spent / STREAMED, 3),
        "deltas": len(arriving.waited),
    }


def _spread(seconds: list[float]) -> dict[str, float]:
    return {
        "p50": round(statistics.median(seconds) * 1000, 1),
        "p99": round(statistics.quantiles(seconds, n=100)[-1] * 1000, 1),
        "longest": round(max(seconds) * 1000, 1),
    }


def _ticks(window: Window, begin: Callable[[Callable[[], None]], object]) -> list[float]:
    """Return the gaps between ticks from `begin` until it calls back."""
    loop, timer = QEventLoop(), QTimer()
    timer.setTimerType(Qt.TimerType.PreciseTimer)
    timer.timeout.connect(window.watchdog.beat)
    timer.start(TICK)
    begin(loop.quit)
    window.watchdog.reset()
    loop.exec()
    timer.stop()
    return window.watchdog.gaps


class _Arriving:
    """Reads what the other process writes, and notes when it is painted."""

    def __init__(self, window: Window, shown: Ours) -> None:
        self._window, self._shown = window, shown
        self._clock = FrameClock(window)
        self._clock.tick.connect(self._apply)
        command = [sys.executable, "-m", "tests.bench.transcript.realtime"]
        self._writer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._writer.stdout is not None
        self._pipe = self._writer.stdout.fileno()
        self._rest = b""
        self._changes: list[Change] = []
        self._unpainted: list[float] = []
        self._applied = 0
        self.waited: list[float] = []
        self.frames: list[float] = []
        self.spent = 0.0

    def begin(self, end: Callable[[], None]) -> None:
        """Ask the other process to write; `end` is called when it has ended."""
        self._end = end
        self._shown.begin()
        self._window.until_quiet()
        self._window.on_painted = self._painted
        self._notifier = QSocketNotifier(self._pipe, QSocketNotifier.Type.Read, self._window)
        self._notifier.activated.connect(self._read)
        self._cpu_began = time.process_time()
        assert self._writer.stdin is not None
        self._writer.stdin.write(b"go\n")
        self._writer.stdin.flush()

    def _read(self) -> None:
        data = os.read(self._pipe, _PIPE)
        if not data:
            self._close()
            return
        self._rest += data
        whole = len(self._rest) - len(self._rest) % _RECORD.size
        for written_at, text in _RECORD.iter_unpack(self._rest[:whole]):
            self._changes += self._shown.take(ContentDelta(text.decode("ascii")))
            self._unpainted.append(written_at)
        self._rest = self._rest[whole:]
        self._clock.request()

    def _apply(self) -> None:
        changes, self._changes = self._changes, []
        self._shown.view.apply(list(dict.fromkeys(changes)))
        self._applied = len(self._unpainted)

    def _painted(self) -> None:
        now = time.monotonic()
        if self._applied:
            self.frames.append(now)
            self.waited += [now - written_at for written_at in self._unpainted[: self._applied]]
            del self._unpainted[: self._applied]
            self._applied = 0

    def _close(self) -> None:
        self.spent = time.process_time() - self._cpu_began
        self._notifier.setEnabled(False)
        self._clock.stop()
        self._window.on_painted = lambda: None
        self._writer.communicate()
        self._end()


def _write() -> None:
    """Write all deltas at an even pace."""
    deltas = deltas_of(text_of(int(STREAMED * RATE) * DELTA))
    sys.stdin.readline()
    began = time.monotonic()
    for number, delta in enumerate(deltas):
        time.sleep(max(0.0, began + number / RATE - time.monotonic()))
        sys.stdout.buffer.write(_RECORD.pack(time.monotonic(), delta.encode("ascii")))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    _write()
